"""The paper's preprocessing for models from random weights: Moses tokenization and truecasing, and the way back.

    python train/moses.py tokenize outputs/moses --files train.jsonl dev.jsonl test.jsonl --columns en de
    python train/moses.py detokenize translations.jsonl translations.raw.jsonl --column translation --language de

The truecasers learn from the first file. `--paper_corpus news` writes `train.jsonl`, `dev.jsonl` and `test.jsonl`. The
paper's BLEU compares text that is detokenized but still truecased, references included; for such scores, detokenize
the tokenized references as well. The names of the columns are language codes of Moses (en, de, ...).
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from transformers.utils.logging import tqdm

from modeling_gtransformer.atomic_file import atomic_file, check_outputs
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.corpora.corpus import Document, read_documents
from modeling_gtransformer.corpora.corpus_files import JSON_LINES
from modeling_gtransformer.training.moses import detokenizer, learn_truecasing
from modeling_gtransformer.training.paper_corpora import CORPORA, SPLITS, paper_corpus


def main(argv: list[str]) -> None:
    args = parse_arguments(argv)
    args.command(args)


def tokenize(args: argparse.Namespace) -> None:
    """Writes every file with its columns tokenized and truecased."""
    if args.paper_corpus:
        files = {split: paper_corpus(args.paper_corpus, split, args.columns) for split in SPLITS}
        corpora = {split: read_documents(pair, args.columns) for split, pair in files.items()}
    else:
        check_outputs([args.output / f"{stem(file)}.jsonl" for file in args.files], args.files)
        corpora = {stem(file): read_documents([file], args.columns) for file in args.files}
    args.output.mkdir(parents=True, exist_ok=True)
    change: dict[str, Callable[[str], str]] = {}
    for column in args.columns:
        first = next(iter(corpora.values()))
        sentences = [sentence for document in first for sentence in document[column]]
        change[column] = learn_truecasing(sentences, column, args.output / f"truecase.{column}")
    for name, documents in corpora.items():
        write_changed(documents, change, args.output / f"{name}.jsonl")


def detokenize(args: argparse.Namespace) -> None:
    """Writes the documents with the sentences of one column as plain text."""
    check_outputs([args.output], [args.documents])
    documents = read_documents([args.documents], [args.column], blank_ok=True)
    write_changed(documents, {args.column: detokenizer(args.language)}, args.output)


def write_changed(documents: Sequence[Document], change: dict[str, Callable[[str], str]], path: Path) -> None:
    """Writes the documents as JSON lines, with each sentence of a column changed by its function in `change`."""
    with atomic_file(path) as file:
        for document in tqdm(documents, desc=path.name, unit=" documents"):
            changed = {column: [f(sentence) for sentence in document[column]] for column, f in change.items()}
            file.write(json.dumps({**document.record, **changed}, ensure_ascii=False).encode() + b"\n")


def stem(file: str) -> str:
    """Strips the ending from the name of a JSON-lines file."""
    ending = next(ending for ending in JSON_LINES if file.endswith(ending))
    return Path(file).name.removesuffix(ending)


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="tokenize | detokenize")

    forth = commands.add_parser("tokenize", help="Tokenize and truecase documents.")
    forth.set_defaults(command=tokenize)
    forth.add_argument("output", type=Path, help="Folder for the documents and the truecasers.")
    documents = forth.add_mutually_exclusive_group(required=True)
    documents.add_argument("--files", nargs="+", help="JSON-lines files; the truecasers learn from the first.")
    documents.add_argument("--paper_corpus", choices=CORPORA, help="One of the paper's corpora on the Hub.")
    forth.add_argument("--columns", nargs="+", default=["en", "de"], help="Columns that hold lists of sentences.")

    back = commands.add_parser("detokenize", help="Turn translations or references into plain text.")
    back.set_defaults(command=detokenize)
    back.add_argument("documents", help="JSON-lines file to read.")
    back.add_argument("output", type=Path, help="JSON-lines file to write.")
    back.add_argument("--column", default="translation", help="Column to detokenize.")
    back.add_argument("--language", default="de", help="Language of the column.")

    args = parser.parse_args(argv)
    if wrong := [file for file in getattr(args, "files", None) or [] if not file.endswith(JSON_LINES)]:
        parser.error(f"{', '.join(wrong)}: expected files named *.jsonl[.gz|.xz]")
    names = [stem(file) for file in getattr(args, "files", None) or []]
    if len(set(names)) < len(names):
        parser.error(f"{', '.join(args.files)}: files of the same name would overwrite each other")
    return args


if __name__ == "__main__":
    sys.exit(run("moses.py", lambda: main(sys.argv[1:])))
