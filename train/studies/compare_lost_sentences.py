"""Compares how many sentences of paragraphs two translators lose: a sentence-level one, which reads each paragraph as
one input, and a document translator, which finds the sentences of a paragraph (sentencex) and translates each.

    python train/studies/compare_lost_sentences.py test.jsonl --source_column en --target_column de \\
        --plain Helsinki-NLP/opus-mt-en-de --model outputs/finetuned [--paragraph_sentences 5] [--output lost.jsonl]

`gtransformer evaluate lost-sentences` counts the output of any system; this script also makes the paragraphs.
"""

import sys
from dataclasses import MISSING, dataclass
from pathlib import Path

from modeling_gtransformer.cli.script import run_script
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.evaluation.lost_sentences import count_lost
from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.evaluation.report import LanguageOptions
from modeling_gtransformer.pipeline_gtransformer import DocumentTranslationPipeline, NamedDocument
from modeling_gtransformer.plain_text import sentencex_splitter
from modeling_gtransformer.runtime.atomic_file import check_outputs, write_json
from modeling_gtransformer.runtime.translator import Translator
from modeling_gtransformer.segment_plan import SegmentLimits
from modeling_gtransformer.translation_options import check_bounds, option


@dataclass(frozen=True)
class ComparisonOptions(LanguageOptions):
    files: list[str] = option(MISSING, "Documents with their reference translations.", argument=True)
    plain: str = option(MISSING, "Folder or Hub name of the sentence-level translator.")
    model: str = option(MISSING, "Folder or Hub name of the document translator.")
    source_column: str = option("source", "Column that holds the source sentences.")
    target_column: str = option("target", "Column that holds the reference translations.")
    paragraph_sentences: int = option(5, "Number of sentences in a paragraph.", 1)
    num_beams: int = option(5, "Number of beams.", 1)
    output: Path | None = option(None, "JSON-lines file for the paragraphs and their missing sentences.")

    def __post_init__(self) -> None:
        check_bounds(self)


def compare_lost_sentences(options: ComparisonOptions) -> dict[str, dict[str, int]]:
    """Translates the paragraphs with both systems, and prints and returns the counts."""
    check_outputs([options.json, options.output], options.files)
    columns, size = [options.source_column, options.target_column], options.paragraph_sentences
    corpus = read_documents(options.files, columns)
    sources, references = ([paragraphs(document[column], size) for document in corpus] for column in columns)
    documents = [[" ".join(paragraph) for paragraph in document] for document in sources]

    inputs = [paragraph for document in documents for paragraph in document]
    languages = (options.src_lang, options.tgt_lang)
    ours = Translator(options.model, *languages).pipeline
    plain = Translator(options.plain, *languages).pipeline
    expected = [paragraph for document in references for paragraph in document]
    texts = {
        "reference": [" ".join(paragraph) for paragraph in expected],
        f"plain: {options.plain}": as_one_input(plain, inputs, options.num_beams),
        f"ours: {options.model}": as_documents(ours, documents, options.num_beams),
    }
    counts = count_lost(texts, expected, sentencex_splitter(options.tgt_lang or ours.languages[1]), options.output)
    if options.json:
        write_json(options.json, {"counts": counts, **provenance(sys.argv)})
    return counts


def paragraphs(sentences: list[str], size: int) -> list[list[str]]:
    """Cuts a document into paragraphs of this many sentences; the last one may be shorter."""
    lines = [" ".join(sentence.split()) for sentence in sentences]
    return [lines[start : start + size] for start in range(0, len(lines), size)]


def as_one_input(translate: DocumentTranslationPipeline, texts: list[str], num_beams: int) -> list[str]:
    """
    Translates paragraphs that are read as one sentence each.

    Raises:
        ValueError: a paragraph is longer than the model's positions.
    """
    settings = {**translate.processor.generation_settings(translate.model), "num_beams": num_beams}
    limits = SegmentLimits(translate.model, translate.processor, 512, None, settings)
    lengths = [len(words) for words in translate.processor.encode_sentences(texts)]
    if too_long := sum(limits.max_length(length) > limits.positions for length in lengths):
        raise ValueError(
            f"{too_long} of {len(texts)} paragraphs do not fit the {limits.positions} positions of "
            f"{translate.model.name_or_path}: make them shorter with --paragraph_sentences."
        )
    translated = translate_documents(
        translate.model, translate.processor, [[text] for text in texts], progress=True, **settings
    )
    return [document.texts[0] for document in translated]


def as_documents(translate: DocumentTranslationPipeline, documents: list[list[str]], num_beams: int) -> list[str]:
    """Translates documents whose lines are paragraphs, and returns the paragraphs."""
    named = (NamedDocument(f"Document {number}", "\n".join(lines)) for number, lines in enumerate(documents, 1))
    # Only the model's own translation counts, without copied placeholders.
    outputs = translate.translate_all(
        named, splitter="sentencex", progress=True, keep_placeholders=False, num_beams=num_beams
    )
    return [paragraph for output in outputs for paragraph in output["translation_text"].split("\n")]


if __name__ == "__main__":
    sys.exit(run_script((ComparisonOptions, compare_lost_sentences)))
