"""Compares translations of sentences in their documents and in isolation (greedy search).

    python train/studies/context_examples.py outputs/finetuned test.jsonl --source_column en --target_column de \\
        [--json context_examples.json]

A translation is better in its document if its sentence chrF against the reference is higher. The report lists the
first 40 sentences that equal their reference in only one of the two translations, for each of them.
"""

import itertools
import sys
from dataclasses import MISSING, dataclass
from typing import Any

from sacrebleu import CHRF

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.evaluation.report import LanguageOptions, write_report
from modeling_gtransformer.runtime.atomic_file import check_outputs
from modeling_gtransformer.runtime.translator import Translator
from modeling_gtransformer.translation_options import option


LISTED = 40


@dataclass(frozen=True)
class ExampleOptions(LanguageOptions):
    model: str = option(MISSING, "Folder or Hub name of a G-Transformer.", argument=True)
    files: list[str] = option(MISSING, "Documents with their reference translations.", argument=True)
    source_column: str = option("source", "Column with the source sentences.")
    target_column: str = option("target", "Column with the reference translations.")


def context_examples(options: ExampleOptions) -> dict[str, Any]:
    """Prints and returns the numbers of sentences that are better and worse in their document, with examples."""
    check_outputs([options.json], options.files)
    documents = read_documents(options.files, [options.source_column, options.target_column])
    sources = [document[options.source_column] for document in documents]
    references = [sentence for document in documents for sentence in document[options.target_column]]
    # Compare the model's own translations, without copied numbers and placeholders.
    translate = Translator(options.model, options.src_lang, options.tgt_lang, num_beams=1, keep_placeholders=False)
    together = translations(translate, sources)
    alone = translations(translate, [[sentence] for document in sources for sentence in document])

    rows: list[dict[str, Any]] = []
    translated = zip(references, together, alone, strict=True)
    for number, source in enumerate(sources, 1):
        for position, (previous, sentence) in enumerate(itertools.pairwise([None, *source]), 1):
            reference, in_document, by_itself = next(translated)
            place = {"document": number, "sentence": position, "source": sentence, "reference": reference}
            rows.append({**place, "previous": previous, "in_document": in_document, "alone": by_itself})
    gains = [chrf(row["in_document"], row["reference"]) - chrf(row["alone"], row["reference"]) for row in rows]
    examples = {
        "only_in_document": [row for row in rows if row["in_document"] == row["reference"] != row["alone"]],
        "only_alone": [row for row in rows if row["alone"] == row["reference"] != row["in_document"]],
    }
    counts = {
        "sentences": len(rows),
        "same": sum(row["in_document"] == row["alone"] for row in rows),
        "better": sum(gain > 0 for gain in gains),
        "worse": sum(gain < 0 for gain in gains),
        **{f"equal_{name}": sum(row[name] == row["reference"] for row in rows) for name in ("in_document", "alone")},
        **{name: len(found) for name, found in examples.items()},
    }
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    report = {"results": counts, "examples": {name: found[:LISTED] for name, found in examples.items()}}
    write_report(None, options, report)
    return report


def translations(translate: Translator, documents: list[list[str]]) -> list[str]:
    """Translates documents, and returns all sentences."""
    return [sentence["translation_text"] for output in translate(documents) for sentence in output["sentences"]]


def chrf(translation: str, reference: str) -> float:
    return CHRF().sentence_score(translation, [reference]).score


if __name__ == "__main__":
    sys.exit(run_script((ExampleOptions, context_examples)))
