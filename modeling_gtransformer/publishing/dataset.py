"""Prepares a dataset of documents, with its card, for the Hub."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from huggingface_hub import DatasetCard, DatasetCardData

from ..corpora.corpus import Document, read_documents
from ..runtime.atomic_file import check_outputs, check_own_folder, write_atomic
from ..training.card_file import save_card
from ..translation_options import option
from .upload import UploadOptions, upload


@dataclass(frozen=True, kw_only=True)
class DatasetOptions(UploadOptions):
    """Options of [`publish_dataset`]."""

    folder: Path = option(MISSING, "Folder to write.", argument=True)
    columns: tuple[str, str] = option(MISSING, "Columns of the source and the target sentences, e.g. en de.")
    train: list[str] = option(MISSING, "File of this split; repeat the option for several.")
    validation: list[str] | None = option(None, "File of this split; repeat the option for several.")
    test: list[str] | None = option(None, "File of this split; repeat the option for several.")
    languages: tuple[str, str] | None = option(None, "Languages of the columns; default: the names of the columns.")
    license: str | None = option(None, "Licence of the data, e.g. cc-by-4.0.")
    notes: Path | None = option(None, "Markdown file for the card: source, collection and known limits of the data.")


def publish_dataset(options: DatasetOptions) -> None:
    """
    Checks the files of a corpus, and writes a file per split and the card into a folder.

    Raises:
        ValueError: the corpus has problems, or the folder holds files of others.
    """
    folder, columns = options.folder, list(options.columns)
    given = {"train": options.train, "validation": options.validation, "test": options.test}
    files = {split: names for split, names in given.items() if names}
    written = [f"{split}.jsonl" for split in files]
    check_outputs([folder / name for name in written], itertools.chain.from_iterable(files.values()))
    check_own_folder(folder, written, "README.md")
    splits = {split: read_documents(names, columns) for split, names in files.items()}
    for split, documents in splits.items():
        records = [{name: document[name] for name in columns} for document in documents]
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
        write_atomic(folder / f"{split}.jsonl", "".join(f"{line}\n" for line in lines))
    save_card(dataset_card(options, splits), folder / "README.md", options.overwrite_card)
    upload(options, folder, ["README.md", *written], "dataset")


def dataset_card(options: DatasetOptions, splits: dict[str, list[Document]]) -> DatasetCard:
    """Makes the card of a dataset, which declares languages with a code of two letters."""
    repository = options.repository or f"your-name/{options.folder.resolve().name}"
    languages, name = list(options.languages or options.columns), repository.rpartition("/")[2]
    data_files = [{"split": split, "path": f"{split}.jsonl"} for split in splits]
    data = DatasetCardData(
        language=[language for language in languages if len(language) == 2] or None,
        license=options.license,
        task_categories=["translation"],
        pretty_name=name,
        tags=["document-translation"],
        configs=[{"config_name": "default", "data_files": data_files}],
    )
    return DatasetCard.from_template(
        data,
        template_path=str(Path(__file__).with_suffix(".md")),
        name=name,
        address=repository,
        columns=options.columns,
        source=languages[0],
        target=languages[1],
        notes=options.notes.read_text(encoding="utf-8").strip() if options.notes else "",
        splits=[_counts(split, documents, options.columns) for split, documents in splits.items()],
    )


def _counts(name: str, documents: list[Document], columns: Sequence[str]) -> dict[str, Any]:
    lengths = [len(document[columns[0]]) for document in documents]
    words = [sum(len(text.split()) for document in documents for text in document[column]) for column in columns]
    return {
        "name": name,
        "documents": len(documents),
        "sentences": sum(lengths),
        "words": words,
        "lengths": [f"{value:.0f}" for value in np.percentile(lengths, [5, 50, 95])],
    }
