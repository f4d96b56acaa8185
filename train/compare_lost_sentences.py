"""Compare how many sentences of paragraphs get lost with a sentence-level translator, which reads each as one input,
and ours.

    python train/compare_lost_sentences.py test.jsonl --source_column en --target_column de \\
        --plain Helsinki-NLP/opus-mt-en-de --model outputs/finetuned [--paragraph_sentences 5] [--output lost.jsonl]

Both translate the same text: documents whose lines are paragraphs. The sentence-level translator reads a paragraph as
if it were a sentence; the other model finds the sentences of a paragraph (sentencex) and translates each of them. The
outputs of both are counted in the same way: the text of a paragraph is cut into sentences (sentencex) and aligned with
the reference sentences, and a sentence is missing if nothing is aligned with its reference. The row of the reference
itself shows the error of the counter. The file of `--output` has every paragraph with its missing sentences, for you
to read.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from modeling_gtransformer.atomic_file import atomic_file, check_outputs, write_json
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.script_options import add_column_options, at_least
from modeling_gtransformer.cli.translator_options import add_language_options
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.evaluation.lost_sentences import Paragraph, compare_paragraph
from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.pipeline_gtransformer import DocumentTranslationPipeline, NamedDocument
from modeling_gtransformer.plain_text import sentencex_splitter
from modeling_gtransformer.segment_plan import SegmentLimits
from modeling_gtransformer.training.study_results import markdown
from modeling_gtransformer.translator import Translator


def main(argv: list[str]) -> dict[str, dict[str, int]]:
    """Prints the counts of every system and returns them."""
    args = parse_arguments(argv)
    check_outputs([args.json, args.output], args.files)
    columns = [args.source_column, args.target_column]
    corpus = read_documents(args.files, columns)
    size = args.paragraph_sentences
    sources, references = ([paragraphs(document[column], size) for document in corpus] for column in columns)
    texts = [[" ".join(paragraph) for paragraph in document] for document in sources]

    languages = (args.src_lang, args.tgt_lang)
    ours = Translator(args.model, *languages).pipeline
    splitter = sentencex_splitter(args.tgt_lang or ours.languages[1])
    outputs = {"reference": [[" ".join(paragraph) for paragraph in document] for document in references]}
    outputs[f"plain: {args.plain}"] = as_one_input(Translator(args.plain, *languages).pipeline, texts, args.num_beams)
    outputs[f"ours: {args.model}"] = as_documents(ours, texts, args.num_beams)
    compared = {
        name: [
            compare_paragraph(*pair, splitter)
            for document in zip(references, output, strict=True)
            for pair in zip(*document, strict=True)
        ]
        for name, output in outputs.items()
    }
    counts = {name: count(each) for name, each in compared.items()}
    print(table(counts))
    if args.output:
        write(args.output, texts, compared)
    if args.json:
        write_json(args.json, {"counts": counts, **provenance(["train/compare_lost_sentences.py", *argv])})
    return counts


def paragraphs(sentences: list[str], size: int) -> list[list[str]]:
    """Cuts a document into paragraphs of so many sentences; the last one may be shorter."""
    lines = [" ".join(sentence.split()) for sentence in sentences]
    return [lines[start : start + size] for start in range(0, len(lines), size)]


def as_one_input(
    translate: DocumentTranslationPipeline, documents: list[list[str]], num_beams: int
) -> list[list[str]]:
    """
    Translations of paragraphs that are read as one sentence each.

    Raises:
        ValueError: a paragraph is longer than the model's positions.
    """
    settings = translate.processor.generation_settings(translate.model)
    settings["num_beams"] = num_beams
    limits = SegmentLimits(translate.model, translate.processor, 512, None, settings)
    texts = [paragraph for document in documents for paragraph in document]
    lengths = [len(words) for words in translate.processor.encode_sentences(texts)]
    if too_long := sum(limits.max_length(length) > limits.positions for length in lengths):
        raise ValueError(
            f"{too_long} of {len(texts)} paragraphs do not fit the {limits.positions} positions of "
            f"{translate.model.name_or_path}: make them shorter with --paragraph_sentences."
        )
    translated = translate_documents(
        translate.model, translate.processor, [[text] for text in texts], progress=True, **settings
    )
    rest = iter(translated)
    return [[next(rest).texts[0] for _ in document] for document in documents]


def as_documents(
    translate: DocumentTranslationPipeline, documents: list[list[str]], num_beams: int
) -> list[list[str]]:
    """Translations of documents whose lines are paragraphs."""
    named = (NamedDocument(f"Document {number}", "\n".join(lines)) for number, lines in enumerate(documents, 1))
    # Only the model's own translation counts, without copied placeholders.
    outputs = translate.translate_all(
        named, splitter="sentencex", progress=True, keep_placeholders=False, num_beams=num_beams
    )
    return [output["translation_text"].split("\n") for output in outputs]


def count(paragraphs: Iterable[Paragraph]) -> dict[str, int]:
    """Counts the sentences in, out and missing."""
    counts = {"in": 0, "out": 0, "missing": 0}
    for paragraph in paragraphs:
        counts["in"] += len(paragraph.references)
        counts["out"] += len(paragraph.output)
        counts["missing"] += len(paragraph.missing)
    return counts


def table(counts: dict[str, dict[str, int]]) -> str:
    """Formats the counts as a Markdown table."""
    rows = [["system", "sentences in", "out", "missing"]]
    for name, each in counts.items():
        missing = f"{each['missing']} ({100 * each['missing'] / each['in']:.1f} %)"
        rows.append([name, str(each["in"]), str(each["out"]), missing])
    return markdown(rows)


def write(file: Path, texts: list[list[str]], compared: dict[str, list[Paragraph]]) -> None:
    """Writes a line of JSON for every paragraph: its source, and what each system made of it."""
    sources = [paragraph for document in texts for paragraph in document]
    with atomic_file(file) as lines:
        for number, source in enumerate(sources):
            row = {"source": source, **{name: asdict(each[number]) for name, each in compared.items()}}
            lines.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="Documents in a format that train.py reads.")
    add_column_options(parser, "source", "target")
    parser.add_argument("--plain", required=True, help="Folder or Hub name of the sentence-level translator.")
    parser.add_argument("--model", required=True, help="Folder or Hub name of the document translator.")
    add_language_options(parser)
    parser.add_argument(
        "--paragraph_sentences", type=at_least(1), default=5, help="Number of sentences in a paragraph."
    )
    parser.add_argument("--num_beams", type=at_least(1), default=5, help="Number of beams.")
    parser.add_argument("--output", type=Path, help="JSON-lines file for the paragraphs and their missing sentences.")
    parser.add_argument("--json", type=Path, help="File for the counts.")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run("compare_lost_sentences.py", lambda: main(sys.argv[1:])))
