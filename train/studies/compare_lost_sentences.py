"""Compares the sentences that two translators lose in paragraphs. A sentence-level translator reads each paragraph as
one input. A document translator splits a paragraph into sentences (sentencex) and translates each.

    python train/studies/compare_lost_sentences.py test.jsonl outputs/lost --source_column en --target_column de \\
        --plain Helsinki-NLP/opus-mt-en-de --model outputs/finetuned [--paragraph_sentences 5]

Writes the paragraphs and both translations into the folder, where `gtransformer evaluate lost-sentences` counts.
"""

import sys
from dataclasses import MISSING, dataclass
from pathlib import Path

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.evaluation.lost_sentences import LostSentencesOptions, evaluate_lost_sentences
from modeling_gtransformer.pipeline_gtransformer import DocumentTranslationPipeline, NamedDocument
from modeling_gtransformer.runtime.atomic_file import atomic_file, check_outputs
from modeling_gtransformer.runtime.json_line import json_line
from modeling_gtransformer.runtime.translator import Translator
from modeling_gtransformer.segment_plan import SegmentLimits
from modeling_gtransformer.translation_options import option


@dataclass(frozen=True)
class ComparisonOptions:
    file: str = option(MISSING, "Documents with their reference translations.", argument=True)
    output: Path = option(MISSING, "Folder for paragraphs, translations and counts.", argument=True)
    plain: str = option(MISSING, "Folder or Hub name of the sentence-level translator.")
    model: str = option(MISSING, "Folder or Hub name of the document translator.")
    src_lang: str | None = option(None, "Code of the source language; default: from the processor.")
    tgt_lang: str | None = option(None, "Code of the target language; default: from the processor.")
    source_column: str = option("source", "Column with the source sentences.")
    target_column: str = option("target", "Column with the reference translations.")
    paragraph_sentences: int = option(5, "Number of sentences in a paragraph.", 1)
    num_beams: int = option(5, "Number of beams.", 1)


def compare_lost_sentences(options: ComparisonOptions) -> dict[str, dict[str, int]]:
    """Translates the paragraphs with both systems, and prints and returns the counts."""
    files = {name: options.output / f"{name}.jsonl" for name in ("paragraphs", "plain", "ours", "lost")}
    check_outputs([*files.values()], [options.file])
    columns, size = [options.source_column, options.target_column], options.paragraph_sentences
    corpus = read_documents([options.file], columns)
    sources, references = ([paragraphs(document[column], size) for document in corpus] for column in columns)
    documents = [[" ".join(paragraph) for paragraph in document] for document in sources]
    languages = (options.src_lang, options.tgt_lang)
    ours, plain = (Translator(name, *languages).pipeline for name in (options.model, options.plain))

    inputs = [paragraph for document in documents for paragraph in document]
    targets = [paragraph for document in references for paragraph in document]
    texts = {
        "plain": as_one_input(plain, inputs, options.num_beams),
        "ours": as_documents(ours, documents, options.num_beams),
    }
    records = {name: [{"translation": [text]} for text in translated] for name, translated in texts.items()}
    records["paragraphs"] = [{"target": each} for each in targets]
    for name, rows in records.items():
        with atomic_file(files[name]) as file:
            file.writelines(map(json_line, rows))
    language = options.tgt_lang or ours.languages[1]
    assert language is not None
    return evaluate_lost_sentences(
        LostSentencesOptions(
            translations=[str(files["plain"]), str(files["ours"])],
            reference=str(files["paragraphs"]),
            tgt_lang=language,
            output=files["lost"],
            json=options.output / "counts.json",
        )
    )


def paragraphs(sentences: list[str], size: int) -> list[list[str]]:
    """Cuts a document into paragraphs of `size` sentences; the last one may be shorter."""
    lines = [" ".join(sentence.split()) for sentence in sentences]
    return [lines[start : start + size] for start in range(0, len(lines), size)]


def as_one_input(translate: DocumentTranslationPipeline, texts: list[str], num_beams: int) -> list[str]:
    """Translates each paragraph as one sentence. Raises `ValueError` if any is longer than the model's positions."""
    settings = {**translate.processor.generation_settings(translate.model), "num_beams": num_beams}
    limits = SegmentLimits(translate.model, translate.processor, 512, None, settings)
    lengths = [len(words) for words in translate.processor.encode_sentences(texts)]
    if too_long := sum(limits.max_length(length) > limits.positions for length in lengths):
        raise ValueError(
            f"{too_long} of {len(texts)} paragraphs do not fit the {limits.positions} positions of "
            f"{translate.model.name_or_path}: lower --paragraph_sentences."
        )
    translated = translate_documents(
        translate.model, translate.processor, [[text] for text in texts], progress=True, **settings
    )
    return [document.texts[0] for document in translated]


def as_documents(translate: DocumentTranslationPipeline, documents: list[list[str]], num_beams: int) -> list[str]:
    """Translates documents with one paragraph per line, and returns the paragraphs."""
    named = (NamedDocument(f"Document {number}", "\n".join(lines)) for number, lines in enumerate(documents, 1))
    # Count the model's own translation, without copied placeholders.
    outputs = translate.translate_all(
        named, splitter="sentencex", progress=True, keep_placeholders=False, num_beams=num_beams
    )
    return [paragraph for output in outputs for paragraph in output["translation_text"].split("\n")]


if __name__ == "__main__":
    sys.exit(run_script((ComparisonOptions, compare_lost_sentences)))
