"""Uploads chosen files of a folder to the Hub."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi

from ..runtime.usage_error import UsageError
from ..translation_options import option


@dataclass(frozen=True, kw_only=True)
class UploadOptions:
    """
    Options of an upload.

    Raises:
        UsageError: an option needs another one.
    """

    repository: str | None = option(None, "Name on the Hub, e.g. user/name.")
    push: bool = option(False, "Upload to the Hub.")
    private: bool = option(False, "Create a private repository.")
    overwrite_card: bool = option(False, "Replace a README.md that was written or edited by hand.")

    def __post_init__(self) -> None:
        if self.push and not self.repository:
            raise UsageError("push needs --repository.")
        if self.private and not self.push:
            raise UsageError("private needs --push.")


def upload(
    options: UploadOptions, folder: Path, names: Sequence[str], repo_type: str, space_sdk: str | None = None
) -> None:
    """
    Uploads files of a folder in one commit and prints its address, if the options ask for it. Creates the repository
    if there is none.

    Args:
        names: names of the files.
        repo_type: type of the repository, as `HfApi` names it.
        space_sdk: kind of app, if a new repository is a Space.
    """
    if options.push:
        api, name = HfApi(), str(options.repository)
        api.create_repo(name, repo_type=repo_type, space_sdk=space_sdk, private=options.private or None, exist_ok=True)
        print(api.upload_folder(repo_id=name, repo_type=repo_type, folder_path=folder, allow_patterns=list(names)))
