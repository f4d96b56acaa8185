"""Counts numbers and codes missing in translations, with and without the check after translation (greedy search).

python train/studies/kept_numbers.py outputs/finetuned test.jsonl --source_column en [--json kept_numbers.json]
"""

import sys
from dataclasses import MISSING, dataclass
from typing import Any

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.evaluation.report import LanguageOptions, write_report
from modeling_gtransformer.numbers_and_codes import numbers_and_codes
from modeling_gtransformer.runtime.atomic_file import check_outputs
from modeling_gtransformer.runtime.translator import Translator
from modeling_gtransformer.terminology import missing
from modeling_gtransformer.translation_options import option


@dataclass(frozen=True)
class NumberOptions(LanguageOptions):
    model: str = option(MISSING, "Folder or Hub name of a G-Transformer.", argument=True)
    files: list[str] = option(MISSING, "Documents to translate.", argument=True)
    source_column: str = option("source", "Column with the source sentences.")


def count_kept_numbers(options: NumberOptions) -> dict[str, Any]:
    """Prints and returns the counts of numbers and codes, of lost ones, and of warnings about them."""
    check_outputs([options.json], options.files)
    documents = read_documents(options.files, [options.source_column])
    sources = [document[options.source_column] for document in documents]
    sources = [source for source in sources if any(map(numbers_and_codes, source))]
    translate = Translator(options.model, options.src_lang, options.tgt_lang, num_beams=1)
    results: dict[str, Any] = {"documents": len(sources)}
    for name, checked in (("unchecked", False), ("checked", True)):
        outputs = translate(sources, keep_placeholders=checked)
        pairs = [pair for output in outputs for pair in output["sentences"]]
        required = [numbers_and_codes(pair["source_text"]) for pair in pairs]
        lost = [missing(words, pair["translation_text"]) for words, pair in zip(required, pairs, strict=True)]
        results["numbers"] = sum(map(len, required))
        results[name] = {"lost": sum(map(len, lost)), "warnings": sum(len(output["warnings"]) for output in outputs)}
    print(results)
    write_report(None, options, {"results": results})
    return results


if __name__ == "__main__":
    sys.exit(run_script((NumberOptions, count_kept_numbers)))
