"""Count the forms of address in German translations, and the documents that do not keep to one of them.

    python train/score_address.py sentences.jsonl documents.jsonl --reference test.jsonl \\
        --reference_column de [--json address.json]

The English "you" says neither "Sie" nor "du"; an earlier sentence may. The first row is that of the references.
Translations are what `translate.py` writes, one sentence for every source sentence. Intervals are 95 % of a bootstrap
over documents.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from modeling_gtransformer.atomic_file import write_json
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.evaluation.address import consistency_of_address
from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.evaluation.translations import read_translations


def main(argv: list[str]) -> dict[str, dict[str, Any]]:
    """Prints the table and returns what it holds, by file."""
    args = parse_arguments(argv)
    references = [d[args.reference_column] for d in read_documents([args.reference], [args.reference_column])]
    documents = {"reference": references}
    documents |= {file: read_aligned(file, args.translation_column, references) for file in args.translations}
    scores = {name: consistency_of_address(sentences, references) for name, sentences in documents.items()}
    print(table(scores))
    if args.json:
        write_json(args.json, {"scores": scores, **provenance(["train/score_address.py", *argv])})
    return scores


def read_aligned(file: str, column: str, references: list[list[str]]) -> list[list[str]]:
    """
    The documents of a file of translations.

    Raises:
        ValueError: their sentences are not those of the references.
    """
    translations = read_translations(file, column)
    if not translations.aligned or list(map(len, translations.documents)) != list(map(len, references)):
        raise ValueError(
            f"{file} does not have a sentence for every sentence of the references, document by document."
        )
    return translations.documents


def table(scores: dict[str, dict[str, Any]]) -> str:
    """The scores as lines of text, one per file."""
    lines = [f"{'formal':>8} {'informal':>8}   documents that mix them     sentences as in the reference"]
    for name, score in scores.items():
        shares = "   ".join(f"{in_words(score[kind]):>26}" for kind in ("mixed", "as_reference"))
        lines.append(f"{score['formal']:8} {score['informal']:8} {shares}   {name}")
    return "\n".join(lines)


def in_words(share: dict[str, Any]) -> str:
    if share["share"] is None:
        return "none"
    low, high = share["interval"]
    return f"{share['share']:.1%} [{low:.1%}, {high:.1%}] of {share['of']}"


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("translations", nargs="+", help="Documents as translate.py writes them, a file per system.")
    parser.add_argument("--reference", required=True, help="Reference translations of the documents.")
    parser.add_argument("--reference_column", default="target", help="Column that holds the references.")
    parser.add_argument("--translation_column", default="translation", help="Column that holds the translations.")
    parser.add_argument("--json", type=Path, help="File for the scores.")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run("score_address.py", lambda: main(sys.argv[1:])))
