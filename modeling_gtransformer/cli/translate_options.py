"""Options of `gtransformer translate`."""

import codecs
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..translation_options import CorpusOptions, option
from .model_options import ModelOptions


STDIN = "-"
# The keys of `FILE_FORMATS`, which takes seconds to import, and formats of corpora.
Format = Literal[
    "text", "wrapped", "markdown", "html", "subtitles", "ass", "po", "xliff", "docx", "pptx", "odf", "epub", "jsonl",
    "documents",
]  # fmt: skip


@dataclass(frozen=True)
class TranslateOptions(ModelOptions, CorpusOptions):
    """Options of `gtransformer translate`. Raises `ValueError` for options that contradict each other."""

    files: list[str] | None = option(
        None, "Files and datasets to translate, or folders of corpora; default: standard input.", argument=True
    )
    output: str | None = option(None, "Folder for results, or file for a single result; default: standard output.")
    overwrite: bool = option(False, "Replace existing results, and fields of earlier translations in documents.")
    skip_existing: bool = option(False, "Skip files with existing results, to continue a batch.")
    output_format: Literal["same", "jsonl", "tsv", "tmx"] = option(
        "same", "Format of the results: the input's, or aligned sentence pairs."
    )
    format: Format | None = option(
        None,
        "Format of the files; documents is text with `<d>` lines between documents; default: by extension, or text "
        "for standard input.",
    )
    encoding: str = option(
        "utf-8", "Encoding of text files and subtitles and their results, e.g. cp1252; auto detects it."
    )
    consistency_report: Path | None = option(
        None, "Write sentences and words with several translations to this TSV file."
    )
    fail_on_warning: bool = option(False, "Exit with status 1 after any warning.")
    engine: Literal["process", "ray"] = option(
        "process", "Translate in this process, or on a Ray cluster into a folder of chunks."
    )
    actors: int | None = option(
        None, "Number of Ray actors, each with a model; default: one per GPU or per four cores.", 1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            codecs.lookup(self.encoding if self.encoding.lower() != "auto" else "utf-8")
        except LookupError as error:
            raise ValueError(f"Unknown encoding {self.encoding}: use e.g. utf-8 or cp1252.") from error
        if self.output == STDIN:
            raise ValueError("output: omit it for standard output.")
        if self.skip_existing and (self.overwrite or self.output is None):
            raise ValueError("skip_existing needs --output, and excludes --overwrite.")
        if self.bilingual and self.output_format != "same":
            raise ValueError("bilingual needs --output_format same: aligned pairs are always bilingual.")
        if self.free and self.consistency_report:
            raise ValueError("consistency_report needs aligned sentences, which --free does not produce.")
        if self.engine == "ray" and (self.output is None or len(self.inputs) != 1 or self.inputs == [STDIN]):
            raise ValueError("engine ray needs one input, a file or a folder, and --output.")
        plain = (self.format in (None, "jsonl", "documents"), self.encoding == "utf-8", self.output_format == "same")
        if self.engine == "ray" and (not all(plain) or self.bilingual or self.mark_fuzzy):
            raise ValueError("engine ray translates corpora: omit format, encoding, output_format and bilingual.")
        if self.engine == "ray" and (self.consistency_report or self.skip_existing):
            raise ValueError("engine ray excludes --consistency_report and --skip_existing: it resumes automatically.")

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs; `-` is standard input."""
        return self.files or [STDIN]
