"""Writes translations in the formats that other tools read: d-COMET, SLIDE, CTXPRO, and any that score line by line.

    python train/studies/write_scoring_files.py talks.translated.jsonl outputs/scoring --source_column en \\
        [--reference talks.jsonl.xz --reference_column de] [--window 6 [--stride 6]]

The files in the folder have one sentence per line:

    source.txt, hypothesis.txt, reference.txt, document_ids.txt    sentences, and the document of each
    last.txt                            the last sentence of every document, which `ctxpro score` reads
    identify.tsv                        document, source and reference, which `ctxpro identify` searches
    windows.source.txt ...              with --window: that many sentences per line, moved by --stride, as SLIDE
                                        passes them to a sentence-level metric

reference.txt and identify.tsv need `--reference`. White space inside a sentence becomes a space.
"""

import sys
from collections.abc import Iterable
from dataclasses import MISSING, dataclass
from pathlib import Path

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.corpora.corpus import Document, read_documents
from modeling_gtransformer.evaluation.translations import read_translations
from modeling_gtransformer.runtime.atomic_file import check_outputs, write_atomic
from modeling_gtransformer.translation_options import check_bounds, option


@dataclass(frozen=True)
class ScoringOptions:
    translations: str = option(MISSING, "Documents as gtransformer translate writes them.", argument=True)
    output: Path = option(MISSING, "Folder for the files.", argument=True)
    reference: str | None = option(None, "Reference translations of the documents.")
    source_column: str = option("source", "Column that holds the source sentences.")
    reference_column: str = option("target", "Column that holds the references.")
    translation_column: str = option("translation", "Column that holds the translations.")
    window: int | None = option(None, "Number of sentences in a window.", 1)
    stride: int | None = option(None, "Number of sentences between the starts of windows; default: window.", 1)

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.stride and self.stride > (self.window or 0):
            raise ValueError("stride must not exceed window: sentences between two windows would be left out.")


def write_scoring_files(args: ScoringOptions) -> None:
    """Writes the files."""
    translations = read_translations(args.translations, args.translation_column)
    if not translations.aligned:
        raise ValueError(f"{args.translations} was decoded freely: its sentences do not belong to source sentences.")
    documents = read_documents([args.translations], [args.source_column])
    texts = {"source": [document[args.source_column] for document in documents], "hypothesis": translations.documents}
    if args.reference:
        read = read_documents([args.reference], [args.reference_column])
        texts["reference"] = [document[args.reference_column] for document in read]
    texts = {name: [list(map(in_one_line, document)) for document in side] for name, side in texts.items()}
    refuse_unaligned(texts, args.translations)

    ids = document_ids(documents)
    columns = {name: [sentence for document in side for sentence in document] for name, side in texts.items()}
    columns["document_ids"] = [name for name, source in zip(ids, texts["source"], strict=True) for _ in source]
    columns["last"] = [document[-1] for document in texts["hypothesis"]]
    if args.window:
        columns |= windows(texts, ids, args.window, args.stride or args.window)
    files: dict[str, Iterable[str]] = {f"{name}.txt": lines for name, lines in columns.items()}
    if args.reference:
        rows = zip(columns["document_ids"], columns["source"], columns["reference"], strict=True)
        files["identify.tsv"] = map("\t".join, rows)
    inputs = [args.translations, *([args.reference] if args.reference else [])]
    check_outputs([args.output / name for name in files], inputs)
    for name, lines in files.items():
        write_atomic(args.output / name, "".join(f"{line}\n" for line in lines))
    print(f"{len(ids)} documents, {len(columns['source'])} sentences in {args.output}")


def in_one_line(sentence: str) -> str:
    return " ".join(sentence.split())


def refuse_unaligned(texts: dict[str, list[list[str]]], file: str) -> None:
    """
    Refuses sides that are not parallel.

    Raises:
        ValueError: the sides do not have the same documents and sentences.
    """
    sizes = {name: list(map(len, side)) for name, side in texts.items()}
    for name, size in sizes.items():
        if size != sizes["source"]:
            raise ValueError(
                f"{file} has {len(sizes['source'])} documents of {sum(sizes['source'])} source sentences, its {name} "
                f"{len(size)} of {sum(size)}, or they are divided differently."
            )


def document_ids(documents: list[Document]) -> list[str]:
    """Gives the `id` of every document if all have different ones, and otherwise their numbers."""
    ids = [in_one_line(str(document.record.get("id", ""))) for document in documents]
    return ids if all(ids) and len(set(ids)) == len(ids) else [str(n) for n in range(1, len(documents) + 1)]


def windows(texts: dict[str, list[list[str]]], ids: list[str], window: int, stride: int) -> dict[str, list[str]]:
    """Cuts windows of that many sentences, with the document of each. The last window of a document overlaps the one
    before if need be, and a short document is one window."""
    columns: dict[str, list[str]] = {f"windows.{name}": [] for name in (*texts, "document_ids")}
    for number, name in enumerate(ids):
        last = max(len(texts["source"][number]) - window, 0)
        for start in [*range(0, last, stride), last]:
            for side, documents in texts.items():
                columns[f"windows.{side}"].append(" ".join(documents[number][start : start + window]))
            columns["windows.document_ids"].append(name)
    return columns


if __name__ == "__main__":
    sys.exit(run_script((ScoringOptions, write_scoring_files)))
