"""Score translated documents: s-BLEU, d-BLEU, chrF, and the significance of the difference to a second system.

    python train/score_translations.py talks.translated.jsonl --reference talks.jsonl.xz --reference_column de \\
        [--baseline other.translated.jsonl] [--json outputs/mbart25/scores/talks.json]

Translations are what `translate.py` writes, or text with `<d>` lines; so are the references. With a baseline,
documents are the unit of the tests: approximate randomization for the p-value, paired bootstrap for the interval.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from modeling_gtransformer.training.corpus import read_documents
from modeling_gtransformer.training.metrics import compare_systems, score_documents
from modeling_gtransformer.training.provenance import provenance


# Files whose names are written down with the scores.
SOURCES = ("translations", "reference", "baseline")


def main(argv: list[str]) -> dict[str, dict[str, Any]]:
    """Prints the table and returns what it holds."""
    args = parse_arguments(argv)
    column = args.translation_column
    translated = read_documents([args.translations], [column], blank_ok=True)
    hypotheses = [document[column] for document in translated]
    with_segments = all("segments" in document.record for document in translated)
    segments = [document.record["segments"] for document in translated] if with_segments else None
    references = [d[args.reference_column] for d in read_documents([args.reference], [args.reference_column])]

    scores = score_documents(hypotheses, references, segments, args.tokenize)
    if args.baseline:
        baseline = [document[column] for document in read_documents([args.baseline], [column], blank_ok=True)]
        compared = compare_systems(hypotheses, baseline, references, segments, args.tokenize)
        scores = {name: {**score, **compared[name]} for name, score in scores.items()}

    print(table(scores))
    if args.json:
        file = Path(args.json)
        file.parent.mkdir(parents=True, exist_ok=True)
        sources = {name: Path(path).name for name, path in vars(args).items() if name in SOURCES and path}
        content = {"scores": scores, **sources, **provenance(["train/score_translations.py", *argv])}
        file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return scores


def table(scores: dict[str, dict[str, Any]]) -> str:
    """The scores as lines of text, one per score."""
    lines = []
    for name, score in scores.items():
        line = f"{name:16} {score['score']:6.2f}   {score['units']} {score['unit']}   {score['signature']}"
        if "difference" in score:
            low, high = score["interval"]
            line += f"\n{'':16} {score['difference']:+6.2f}   against the baseline, 95 % [{low:+.2f}, {high:+.2f}]"
            line += f", p = {score['p_value']:.4f}"
        lines.append(line)
    return "\n".join(lines)


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("translations", help="Documents as translate.py writes them.")
    parser.add_argument("--reference", required=True, help="Reference translations of the documents.")
    parser.add_argument("--reference_column", default="target", help="Column that holds the references.")
    parser.add_argument("--translation_column", default="translation", help="Column that holds the translations.")
    parser.add_argument("--baseline", help="Translations of the same documents by a second system.")
    parser.add_argument("--tokenize", default="13a", help="Tokenizer of sacrebleu for BLEU, e.g. zh or ja-mecab.")
    parser.add_argument("--json", help="File for the scores; the model card reads FOLDER/scores/NAME.json.")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main(sys.argv[1:])
