"""Prepare a dataset of documents, with its card, for the Hub.

    python hub_cards/dataset_card.py outputs/my-corpus --columns en de --train train.jsonl --validation dev.jsonl \\
        [--test test.jsonl] [--languages en de] [--license cc-by-4.0] \\
        [--repository user/my-corpus --push [--private]]

Reads the files that `train/train.py` reads, checks them, and writes a file per split and `README.md` into the folder.
"""

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from huggingface_hub import DatasetCard, DatasetCardData

from modeling_gtransformer.atomic_file import check_outputs, check_own_folder, write_atomic
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.hub_upload import parse_with_upload, upload
from modeling_gtransformer.corpora.corpus import Document, read_documents
from modeling_gtransformer.training.card_file import save_card


TEMPLATE = Path(__file__).parent / "templates" / "dataset.md"
SPLITS = ("train", "validation", "test")


def main(argv: list[str]) -> None:
    args = parse_arguments(argv)
    files = {split: getattr(args, split) for split in SPLITS if getattr(args, split)}
    check_outputs([args.folder / f"{split}.jsonl" for split in files], itertools.chain.from_iterable(files.values()))
    check_own_folder(args.folder, [f"{split}.jsonl" for split in files], "README.md")
    splits = {split: read_documents(names, args.columns) for split, names in files.items()}
    for split, documents in splits.items():
        lines = [
            json.dumps({name: document[name] for name in args.columns}, ensure_ascii=False) for document in documents
        ]
        write_atomic(args.folder / f"{split}.jsonl", "".join(f"{line}\n" for line in lines))
    repository = args.repository or f"your-name/{args.folder.resolve().name}"
    card = dataset_card(splits, args.columns, repository, args.languages or args.columns, args.license)
    save_card(card, args.folder / "README.md", args.overwrite_card)
    if args.push:
        upload(args, ["README.md", *(f"{split}.jsonl" for split in splits)], "dataset")


def dataset_card(
    splits: dict[str, list[Document]],
    columns: list[str],
    repository: str,
    languages: list[str],
    license: str | None,
) -> DatasetCard:
    """
    Makes the card of a dataset.

    Args:
        columns: columns of the source and the target sentences.
        languages: languages of the columns; the card declares those with a code of two letters.
        license: SPDX identifier, if known.
    """
    data = DatasetCardData(
        language=[language for language in languages if len(language) == 2] or None,
        license=license,
        task_categories=["translation"],
        pretty_name=repository.rpartition("/")[2],
        tags=["document-translation"],
        configs=[
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": f"{split}.jsonl"} for split in splits],
            }
        ],
    )
    return DatasetCard.from_template(
        data,
        template_path=str(TEMPLATE),
        name=repository.rpartition("/")[2],
        address=repository,
        columns=columns,
        source=languages[0],
        target=languages[1],
        splits=[_counts(name, documents, columns) for name, documents in splits.items()],
    )


def _counts(name: str, documents: list[Document], columns: list[str]) -> dict[str, Any]:
    lengths = [len(document[columns[0]]) for document in documents]
    words = [sum(len(text.split()) for document in documents for text in document[column]) for column in columns]
    return {
        "name": name,
        "documents": len(documents),
        "sentences": sum(lengths),
        "words": words,
        "lengths": [f"{value:.0f}" for value in np.percentile(lengths, [5, 50, 95])],
    }


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder to write.")
    parser.add_argument(
        "--columns", nargs=2, required=True, help="Columns that hold the source and the target sentences, e.g. en de."
    )
    for split in SPLITS:
        parser.add_argument(f"--{split}", nargs="+", required=split == "train", help="Files of this split.")
    parser.add_argument("--languages", nargs=2, help="Languages of the columns; default: the names of the columns.")
    parser.add_argument("--license", help="Licence of the data, e.g. cc-by-4.0.")
    return parse_with_upload(parser, argv, "dataset")


if __name__ == "__main__":
    sys.exit(run("dataset_card.py", lambda: main(sys.argv[1:])))
