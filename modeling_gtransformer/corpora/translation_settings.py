"""Settings for the translation of a corpus: options of the commands, and keys of a study."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from transformers import HfArgumentParser

from ..translation_options import TranslationOptions


INPUT = "Documents: .jsonl[.gz|.xz], .parquet or text with <d> lines, or a folder of such files or of a dataset."
OUTPUT = "File to write, .jsonl[.gz|.xz] or .parquet, or the folder of a dataset."


@dataclass
class TranslationSettings:
    """Settings for the translation of a corpus: options of `translate.py` and `translate_ray.py`, and keys of a study
    under `generation`."""

    source_column: str = field(default="source", metadata={"help": "Column that holds the list of source sentences."})
    src_lang: str | None = field(
        default=None, metadata={"help": "Code of the source language; default: that of the processor."}
    )
    tgt_lang: str | None = field(
        default=None, metadata={"help": "Code of the target language; default: that of the processor."}
    )
    segment_tokens: int = field(
        default=512,
        metadata={"help": "Segments, the inputs of the model, have fewer source tokens than this."},
    )
    segment_sentences: int | None = field(
        default=None, metadata={"help": "Upper bound on the sentences of a segment; 1 for a sentence-level model."}
    )
    max_tokens: int | None = field(
        default=None,
        metadata={
            "help": "Upper bound on the source tokens of a batch, padding included; "
            "default: 16384 divided by the number of beams, but at least 4096."
        },
    )
    num_beams: int | None = field(
        default=None, metadata={"help": "Number of beams; default: that of the model's generation config."}
    )
    parallel_sentences: bool | None = field(
        default=None,
        metadata={
            "help": "Decode the sentences of a segment side by side; default: if that is likely to be faster.",
            "nargs": "?",
            "const": True,
        },
    )

    align_sentences: bool = field(
        default=True,
        metadata={
            "help": "Write one sentence for every source sentence; false: decode freely, as the paper's Transformer "
            "on documents, which leaves only d-BLEU to score by."
        },
    )

    chunk_documents: int = field(
        default=64, metadata={"help": "Number of documents that are translated and written at once."}
    )

    def __post_init__(self) -> None:
        numbers = ("segment_tokens", "segment_sentences", "max_tokens", "num_beams")
        TranslationOptions(**{name: getattr(self, name) for name in numbers})
        if not self.align_sentences and self.parallel_sentences:
            raise ValueError("align_sentences false excludes parallel_sentences.")
        if self.chunk_documents < 1:
            raise ValueError(f"chunk_documents must be at least 1, not {self.chunk_documents}.")

    def translation_arguments(self) -> dict[str, Any]:
        """Keyword arguments for [`Translator`], without those that the model's own settings decide."""
        arguments = asdict(self)
        for name in ("source_column", "align_sentences", "chunk_documents"):
            del arguments[name]
        undecided = {"max_tokens": None, "num_beams": None, "parallel_sentences": None}
        return {name: value for name, value in arguments.items() if (name, value) not in undecided.items()}

    def free_arguments(self) -> dict[str, Any]:
        """Keyword arguments for [`translate_freely`]; the pipeline already has the languages."""
        others = ("src_lang", "tgt_lang")
        return {name: value for name, value in self.translation_arguments().items() if name not in others}


def parse_translation(
    argv: Sequence[str], description: str | None = None, output: str = OUTPUT, engine: type | None = None
) -> tuple[Any, ...]:
    """
    Parses `model input output [--overwrite] [--option value ...]`; an error ends the process with status 2.

    Args:
        output: help text of the output.
        engine: dataclass with the options of the engine that runs the translation.

    Returns:
        model, input, output, settings, settings of the engine if there is one, and whether to overwrite.
    """
    kinds = [TranslationSettings, *([engine] if engine else [])]
    parser = HfArgumentParser(
        kinds, description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("model", help="Folder or Hub name of a G-Transformer, or of a sentence-level translator.")
    parser.add_argument("input", help=INPUT)
    parser.add_argument("output", help=output)
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="Replace the fields of an earlier translation and, with translate.py, an existing output.",
    )
    values = vars(parser.parse_args(argv))
    try:
        settings = [kind(**{each.name: values[each.name] for each in fields(kind)}) for kind in kinds]
    except ValueError as error:
        parser.error(f"--{error}")
    return values["model"], values["input"], values["output"], *settings, values["overwrite"]
