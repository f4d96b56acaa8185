"""Options of a translation. Pipeline, commands, server and documentation share these fields."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal


def option(default: Any, help: str, min: float = -math.inf, max: float = math.inf, **metadata: Any) -> Any:
    """
    Declares a field of a dataclass of options, with its default (`dataclasses.MISSING` for a required option), one
    sentence of help, and bounds.
    """
    metadata = {"help": help, "min": min, "max": max, **metadata}
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def check_bounds(options: Any) -> None:
    """
    Checks the numbers of a dataclass of options; `None` is within all bounds.

    Raises:
        ValueError: a number is out of bounds.
    """
    for each in fields(options):
        if {"min", "max"} <= each.metadata.keys():
            check_bound(each.name, getattr(options, each.name), each.metadata["min"], each.metadata["max"])


def check_bound(name: str, value: Any, low: float, high: float) -> None:
    """
    Checks a value if it is a number.

    Raises:
        ValueError: the number is out of bounds.
    """
    if isinstance(value, int | float) and not low <= value <= high:
        bounds = f"at least {low}" if high == math.inf else f"between {low} and {high}"
        raise ValueError(f"{name} must be {bounds}, not {value}.")


@dataclass(frozen=True)
class TranslationOptions:
    """
    Options of a translation, the keyword arguments of [`DocumentTranslationPipeline`]. `None` leaves a choice to the
    model or the format.

    Raises:
        ValueError: a number is out of bounds.
    """

    src_lang: str | None = option(None, "Code of the source language; default: from the processor.")
    tgt_lang: str | None = option(None, "Code of the target language, e.g. de_DE; default: from the processor.")
    splitter: Literal["line", "sentencex"] | Callable[[str], list[str]] | None = option(
        None, "One sentence per line, or split running text with the package sentencex; default: line for text."
    )
    glossary: Mapping[str, str] | None = option(
        None, "Terms and their required translations: tab-separated, .csv or .tbx."
    )
    keep_placeholders: bool = option(True, "Require the placeholders of the source; copy sentences without words.")
    mark_fuzzy: bool = option(False, "Mark new translations in PO and XLIFF files for review.")
    bilingual: bool = option(False, "Keep every paragraph and put its translation after it (text, HTML, DOCX, EPUB).")
    segment_tokens: int = option(512, "Keep segments, the inputs of the model, below this many source tokens.", 1)
    segment_sentences: int | None = option(None, "Maximum number of sentences in a segment; default: no limit.", 1)
    max_tokens: int | None = option(
        None, "Source tokens per batch, padding included; default: 16384 / num_beams, but at least 4096.", 1
    )
    num_beams: int | None = option(None, "Number of beams; default: from the model's generation config.", 1, 100)
    parallel_sentences: bool | None = option(
        None, "Decode the sentences of a segment in parallel; default: if it is likely to be faster."
    )
    alternatives: int = option(
        0, "Return this many other hypotheses; the search needs one beam more.", 0, 9, on_command_line=False
    )
    confidence: bool = option(False, "Return the mean log-probability of every sentence's tokens, in nats.")
    word_alignment: bool = option(
        False, "Return the weights between the words of every sentence and its translation.", on_command_line=False
    )

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def given(self) -> dict[str, Any]:
        """Options with other values than their defaults, as keyword arguments of the pipeline."""
        values = {each.name: (getattr(self, each.name), each.default) for each in fields(TranslationOptions)}
        return {name: value for name, (value, default) in values.items() if value != default}


@dataclass(frozen=True)
class CorpusOptions(TranslationOptions):
    """
    Options of the translation of a corpus.

    Raises:
        ValueError: a number is out of bounds, or `free` excludes another option.
    """

    source_column: str = option("source", "Column with the source: a text or a list of sentences.")
    chunk_documents: int = option(64, "Translate and save this many documents of a corpus at once.", 1)
    free: bool = option(
        False, "Let the model choose the number of target sentences, like the paper's Transformer on documents."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.free and (self.confidence or self.parallel_sentences or self.glossary):
            raise ValueError("free excludes confidence, parallel_sentences and glossary.")
