"""Score translated documents: s-BLEU, d-BLEU, chrF, and the significance of the difference to a second system.

    python train/score_translations.py talks.translated.jsonl --reference talks.jsonl.xz --reference_column de \\
        [--baseline other.translated.jsonl] [--tokenizer outputs/mbart25] [--json outputs/mbart25/scores/talks.json]

Translations and references are files that `translate.py` writes, or text with `<d>` lines. Documents that were decoded
freely have only a d-BLEU. With a baseline, documents are the unit of the tests: approximate randomization gives the
p-value, and a paired bootstrap gives the interval.

d-BLEU per segment is computed on the segments in which the first system translated. With `--tokenizer`, it is computed
on the segments of the paper, cut by the longer of source and reference, for any system whose sentences are aligned.

With `--train_files`, s-BLEU/unseen is the s-BLEU of the sentences whose source is not in these files: stock phrases
that occur in both training and test data can hide how well a system translates anything else.
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU

from modeling_gtransformer import GTransformerProcessor
from modeling_gtransformer.atomic_file import check_outputs, write_json
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.script_options import add_column_options, at_least
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.evaluation.metrics import compare_systems, score_documents
from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.evaluation.seen_sentences import at_positions, positions_of_unseen
from modeling_gtransformer.evaluation.translations import Translations, in_common_segments, read_translations
from modeling_gtransformer.training.segments import segment_sizes


# Options whose file names are written with the scores.
SOURCES = ("translations", "reference", "baseline")


def main(argv: list[str]) -> dict[str, dict[str, Any]]:
    """Prints the table and returns its content."""
    args = parse_arguments(argv)
    inputs = [args.translations, args.reference, args.baseline, args.source, *(args.train_files or ())]
    check_outputs([args.json], filter(None, inputs))
    ours = read_translations(args.translations, args.translation_column)
    references = [d[args.reference_column] for d in read_documents([args.reference], [args.reference_column])]
    if args.tokenizer:
        ours = in_segments_of_paper(ours, args)
    theirs = read_translations(args.baseline, args.translation_column) if args.baseline else None
    if args.tokenizer and theirs and not theirs.aligned:
        raise ValueError(f"{args.baseline} was decoded freely, in segments of its own: leave --tokenizer out.")
    pair = in_common_segments(ours, theirs) if theirs else None
    if pair:  # the table shows exactly the scores that are compared
        ours, theirs = pair
    scores = score_documents(ours.documents, references, ours.segments, args.tokenize, ours.aligned)
    if theirs:
        one, other = pair or (ours.as_documents(), theirs.as_documents())
        compared = compare(one, other, references, args.tokenize)
        if not pair:  # the two systems have different segments
            compared.pop("d-BLEU/segment", None)
        scores = {name: {**score, **compared.get(name, {})} for name, score in scores.items()}
    if args.train_files:
        scores["s-BLEU/unseen"] = score_unseen(ours, theirs, references, args)

    print(table(scores))
    print(ours.counts)
    if args.json:
        sources = {name: Path(path).name for name, path in vars(args).items() if name in SOURCES and path}
        content = {
            "scores": scores,
            "sentences": asdict(ours.counts),
            **sources,
            **provenance(["train/score_translations.py", *argv]),
        }
        write_json(args.json, content)
    return scores


def in_segments_of_paper(translations: Translations, args: argparse.Namespace) -> Translations:
    """
    Cuts the translations into segments as training does.

    Raises:
        ValueError: they were decoded freely, so it is unknown which sentences belong to such a segment.
    """
    if not translations.aligned:
        raise ValueError(
            f"{args.translations} was decoded freely: it has only the segments in which it was translated."
        )
    columns = [args.source_column, args.reference_column]
    documents = read_documents([args.source or args.reference], columns[:1])
    sources = [document[args.source_column] for document in documents]
    targets = [document[columns[1]] for document in read_documents([args.reference], columns[1:])]
    processor = GTransformerProcessor.from_pretrained(args.tokenizer)
    return translations.cut(segment_sizes(processor, sources, targets, args.segment_tokens))


def score_unseen(
    ours: Translations, theirs: Translations | None, references: list[list[str]], args: argparse.Namespace
) -> dict[str, Any]:
    """
    Computes the s-BLEU of the sentences that training has not seen, and the significance of its difference.

    Raises:
        ValueError: a system decoded freely, or there is no such sentence.
    """
    systems = {args.translations: ours} | ({args.baseline: theirs} if theirs else {})
    if free := [name for name, each in systems.items() if not each.aligned]:
        raise ValueError(f"{free[0]} was decoded freely and has no sentences to compare: leave --train_files out.")
    test, training = (
        [document[args.source_column] for document in read_documents(files, [args.source_column])]
        for files in ([args.source or args.reference], args.train_files)
    )
    positions = positions_of_unseen(test, training)
    if not any(positions):
        raise ValueError(f"All test sentences are in {', '.join(args.train_files)}.")
    unseen, expected = (at_positions(each, positions) for each in (ours.documents, references))
    score = score_documents(unseen, expected, tokenize=args.tokenize)["s-BLEU"]
    if theirs:
        baseline = at_positions(theirs.documents, positions)
        score |= compare_systems(unseen, baseline, expected, tokenize=args.tokenize)["s-BLEU"]
    return {**score, "unit": "unseen sentences"}


def compare(
    ours: Translations, theirs: Translations, references: list[list[str]], tokenize: str
) -> dict[str, dict[str, Any]]:
    """Compares two systems that have the same segments."""
    return compare_systems(
        ours.documents,
        theirs.documents,
        references,
        ours.segments,
        tokenize,
        aligned=ours.aligned,
        baseline_aligned=theirs.aligned,
    )


def table(scores: dict[str, dict[str, Any]]) -> str:
    """Formats the scores as lines of text, one per score."""
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
    add_column_options(parser, "source", "reference", "translation")
    parser.add_argument("--baseline", help="Translations of the same documents by a second system, the baseline.")
    parser.add_argument("--tokenizer", help="Folder or Hub name of the model whose tokenizer cuts the segments.")
    parser.add_argument(
        "--segment_tokens",
        type=at_least(1),
        default=512,
        help="Upper bound on the tokens of a segment that --tokenizer cuts.",
    )
    parser.add_argument(
        "--source", help="Source documents for --tokenizer and --train_files; default: the file of the references."
    )
    parser.add_argument("--train_files", nargs="+", help="Training documents, whose sentences count as seen.")
    parser.add_argument(
        "--tokenize", default="13a", choices=sorted(BLEU.TOKENIZERS), help="Tokenizer of sacrebleu for BLEU."
    )
    parser.add_argument("--json", type=Path, help="File for the scores; the model card reads FOLDER/scores/NAME.json.")
    args = parser.parse_args(argv)
    try:
        BLEU(tokenize=args.tokenize)
    except (ImportError, RuntimeError) as error:
        parser.error(f"--tokenize {args.tokenize}: {error}")
    return args


if __name__ == "__main__":
    sys.exit(run("score_translations.py", lambda: main(sys.argv[1:])))
