"""Count the forms of address in German translations, and the documents that do not keep to one of them.

    python train/score_address.py sentences.jsonl documents.jsonl --reference test.jsonl \\
        --reference_column de [--json address.json]
    python train/score_address.py finetuned/seed*/test.jsonl --baseline alone/seed*/test.jsonl --reference test.jsonl

The English "you" decides for neither "Sie" nor "du"; an earlier sentence may. The first row is for the references.
Translations are files that `translate.py` writes, with one sentence for every source sentence. Intervals are 95 %
bootstrap intervals over documents. With a baseline, all translations together, from one system trained with several
seeds, are compared with all of the baseline: approximate randomization over documents gives the p-value, and a paired
bootstrap gives the interval.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from modeling_gtransformer.atomic_file import check_outputs, write_json
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.script_options import add_column_options
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.evaluation.address import compare_address, consistency_of_address
from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.evaluation.translations import read_translations


def main(argv: list[str]) -> dict[str, Any]:
    """Prints the table and returns its content: `scores` by file and, with a baseline, `differences`."""
    args = parse_arguments(argv)
    check_outputs([args.json], [args.reference, *args.translations, *args.baseline])
    references = [d[args.reference_column] for d in read_documents([args.reference], [args.reference_column])]
    files = [*args.translations, *args.baseline]
    documents = {file: read_aligned(file, args.translation_column, references) for file in files}
    rows = {"reference": references, **documents}
    results: dict[str, Any] = {"scores": {name: consistency_of_address(row, references) for name, row in rows.items()}}
    print(table(results["scores"]))
    if args.baseline:
        ours, theirs = ([documents[file] for file in side] for side in (args.translations, args.baseline))
        results["differences"] = compare_address(ours, theirs, references)
        print(table_of_differences(results["differences"]))
    if args.json:
        write_json(args.json, {**results, **provenance(["train/score_address.py", *argv])})
    return results


def read_aligned(file: str, column: str, references: list[list[str]]) -> list[list[str]]:
    """
    Reads the documents of a file of translations.

    Raises:
        ValueError: their sentences are not those of the references.
    """
    translations = read_translations(file, column)
    if not translations.aligned or list(map(len, translations.documents)) != list(map(len, references)):
        raise ValueError(
            f"{file} does not have one sentence for every sentence of the references, document by document."
        )
    return translations.documents


def table(scores: dict[str, dict[str, Any]]) -> str:
    """Formats the scores as lines of text, one per file."""
    lines = [f"{'formal':>8} {'informal':>8}   documents that mix them     sentences as in the reference"]
    for name, score in scores.items():
        shares = "   ".join(f"{in_words(score[kind]):>26}" for kind in ("mixed", "as_reference"))
        lines.append(f"{score['formal']:8} {score['informal']:8} {shares}   {name}")
    return "\n".join(lines)


def table_of_differences(differences: dict[str, dict[str, Any]]) -> str:
    """Formats the differences from the baseline as lines of text."""
    lines = []
    for name, label in (("mixed", "documents that mix them"), ("as_reference", "sentences as in the reference")):
        row = differences[name]
        low, high = row["interval"]
        difference = f"{row['difference']:+.1%}, 95 % [{low:+.1%}, {high:+.1%}], p = {row['p_value']:.4f}"
        lines.append(f"{label}, against the baseline: {difference}")
    return "\n".join(lines)


def in_words(share: dict[str, Any]) -> str:
    if share["share"] is None:
        return "none"
    low, high = share["interval"]
    return f"{share['share']:.1%} [{low:.1%}, {high:.1%}] of {share['of']}"


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "translations", nargs="+", help="Translations as translate.py writes them, one file per system."
    )
    parser.add_argument(
        "--baseline", nargs="+", default=[], help="Translations by a system to compare with, one file per seed."
    )
    parser.add_argument("--reference", required=True, help="Reference translations of the documents.")
    add_column_options(parser, "reference", "translation")
    parser.add_argument("--json", type=Path, help="File for the scores.")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run("score_address.py", lambda: main(sys.argv[1:])))
