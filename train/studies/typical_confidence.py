"""Measures a model's confidence in its translations, and the number of documents with a warning.

python train/studies/typical_confidence.py outputs/finetuned dev.jsonl --source_column en [--save]

--save writes the mean into the processor. The model then warns of documents with a much lower confidence.
"""

import sys
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.evaluation.report import ReportOptions, write_report
from modeling_gtransformer.runtime.atomic_file import check_outputs, read_json, write_json
from modeling_gtransformer.runtime.translator import Translator
from modeling_gtransformer.sentence import FAR_BELOW
from modeling_gtransformer.training.experiment import typical_confidence
from modeling_gtransformer.translation_options import option


@dataclass(frozen=True)
class ConfidenceOptions(ReportOptions):
    model: str = option(MISSING, "Folder of a G-Transformer.", argument=True)
    files: list[str] = option(MISSING, "Documents like the training data of the model.", argument=True)
    source_column: str = option("source", "Column with the source sentences.")
    save: bool = option(False, "Write the mean into the processor of the model.")


def measure_confidence(options: ConfidenceOptions) -> dict[str, Any]:
    """Prints and returns the mean log-probability of tokens, the lowest document mean, and the number of documents
    far below the mean."""
    check_outputs([options.json], options.files)
    documents = [record[options.source_column] for record in read_documents(options.files, [options.source_column])]
    translate = Translator(options.model).pipeline
    translated = translate_documents(translate.model, translate.processor, documents, confidence=True)
    mean = typical_confidence(translated)
    means = [document.log_probability / document.tokens for document in translated]
    results = {
        "documents": len(means),
        "mean": mean,
        "lowest": round(min(means), 3),
        "warned": sum(each < mean - FAR_BELOW for each in means),
    }
    print(results)
    if options.save:
        config = Path(options.model, "processor_config.json")
        write_json(config, {**read_json(config, {}), "typical_confidence": mean})
    write_report(None, options, {"results": results})
    return results


if __name__ == "__main__":
    sys.exit(run_script((ConfidenceOptions, measure_confidence)))
