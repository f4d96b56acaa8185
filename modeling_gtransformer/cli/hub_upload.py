"""Shared parts of the commands that write cards: their options, and the upload of datasets and metrics."""

import argparse
from collections.abc import Sequence

from huggingface_hub import HfApi


def add_card_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a checkpoint's card."""
    parser.add_argument("--license", help="Licence of the weights, e.g. mit.")
    parser.add_argument("--dataset", help="Name on the Hub of the dataset that the checkpoint was scored on.")
    parser.add_argument(
        "--overwrite_card",
        action="store_true",
        help="Replace a README.md that was edited by hand, or that knows more about the training than the folder.",
    )


def parse_with_upload(parser: argparse.ArgumentParser, argv: list[str], kind: str) -> argparse.Namespace:
    """
    Parses arguments, including the options of an upload.

    Args:
        kind: what is uploaded, as the help texts call it.
    """
    parser.add_argument("--repository", help=f"Name of the {kind} on the Hub, e.g. user/name.")
    parser.add_argument("--push", action="store_true", help=f"Upload the {kind} to the Hub.")
    parser.add_argument("--private", action="store_true", help="Create a private repository.")
    parser.add_argument(
        "--overwrite_card", action="store_true", help="Replace a README.md that was written or edited by hand."
    )
    args = parser.parse_args(argv)
    if args.push and not args.repository:
        parser.error("--push needs --repository")
    if args.private and not args.push:
        parser.error("--private needs --push")
    return args


def upload(args: argparse.Namespace, names: Sequence[str], repo_type: str, space_sdk: str | None = None) -> None:
    """
    Uploads files of a folder in one commit, and prints its address. The repository is created if there is none.

    Args:
        args: arguments with `folder`, `repository` and `private`.
        names: names of the files.
        repo_type: type of the repository, as `HfApi` names it.
        space_sdk: kind of app, if a new repository is a Space.
    """
    api = HfApi()
    api.create_repo(
        args.repository, repo_type=repo_type, space_sdk=space_sdk, private=args.private or None, exist_ok=True
    )
    print(
        api.upload_folder(
            repo_id=args.repository, repo_type=repo_type, folder_path=args.folder, allow_patterns=list(names)
        )
    )
