"""Publishes a checkpoint in one commit."""

from dataclasses import MISSING, dataclass
from pathlib import Path

from ..pipeline_gtransformer import DocumentTranslationPipeline
from ..runtime.translator import check_folder, load_checkpoint
from ..runtime.usage_error import UsageError
from ..translation_options import option
from .model_card import write_model_card


@dataclass(frozen=True)
class PublishOptions:
    """Options of [`publish`]."""

    folder: Path = option(MISSING, "Folder of a trained checkpoint.", argument=True)
    repository: str | None = option(None, "Repository on the Hub, e.g. user/name; created if it does not exist.")
    license: str | None = option(None, "Licence of the weights; default: from the earlier card or the base.")
    dataset: str | None = option(None, "Hub name of the dataset that the checkpoint was scored on.")
    notes: Path | None = option(None, "Markdown file with notes for the card, e.g. the attribution of the data.")
    overwrite_card: bool = option(
        False, "Replace a README.md that was edited by hand, or describes a training without a record."
    )
    card_only: bool = option(False, "Write the card into the folder and upload nothing.")
    private: bool = option(False, "Create a private repository.")


def publish(options: PublishOptions) -> None:
    """
    Writes the card of a checkpoint and uploads weights, processor, code and card in one commit.

    The card reports the training and all scores in the folder. A README.md written or edited by hand is published
    unchanged. Users of the repository need only Transformers: `pipeline(model="user/name", trust_remote_code=True)`.

    Raises:
        UsageError: the folder has no G-Transformer or a broken one, or `repository` is missing.
        ValueError: the initial checkpoint does not permit the licence.
    """
    folder, repository = options.folder, options.repository
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: pass the folder of a trained checkpoint.")
    if repository is None and not options.card_only:
        raise UsageError("--repository is missing: name a repository, or write the card only (--card_only).")
    check_folder(str(folder))
    if not options.card_only:
        model, processor = load_checkpoint(str(folder))
        if (kind := model.config.model_type) != "gtransformer":
            raise UsageError(f"{folder} is not a G-Transformer but a sentence-level {kind}: fine-tune it first.")
    notes = options.notes.read_text(encoding="utf-8") if options.notes else ""
    write_model_card(folder, options.license, options.dataset, repository, options.overwrite_card, notes)
    if options.card_only:
        print(folder / "README.md")
    else:
        pipeline = DocumentTranslationPipeline(model, processor=processor)
        print(
            pipeline.push_to_hub(str(repository), commit_message="Upload checkpoint", private=options.private or None)
        )
