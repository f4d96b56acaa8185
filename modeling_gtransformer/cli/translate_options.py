"""Options of `gtransformer translate`."""

import codecs
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..translation_options import CorpusOptions, option
from .model_options import ModelOptions


STDIN = "-"
# The names of `FILE_FORMATS`, which takes seconds to import, and those of corpora.
Format = Literal[
    "text", "wrapped", "markdown", "html", "subtitles", "ass", "po", "xliff", "docx", "pptx", "odf", "epub", "jsonl",
    "documents",
]  # fmt: skip


@dataclass(frozen=True)
class TranslateOptions(ModelOptions, CorpusOptions):
    """
    Options of `gtransformer translate`.

    Raises:
        ValueError: an option is out of its bounds, or contradicts another one.
    """

    files: list[str] | None = option(
        None, "Files, datasets and folders of them to translate; default: standard input.", argument=True
    )
    output: str | None = option(
        None, "Folder for the results, or the file for a single one; default: standard output."
    )
    overwrite: bool = option(
        False, "Replace results that exist, and the fields of an earlier translation in documents."
    )
    skip_existing: bool = option(False, "Leave out files whose results exist, to continue a batch.")
    output_format: Literal["same", "jsonl", "tsv", "tmx"] = option(
        "same", "Format of the results: that of the input, or aligned sentence pairs."
    )
    format: Format | None = option(
        None,
        "Format of the files; documents is text with `<d>` lines between documents; default: from the extension, and "
        "text for standard input.",
    )
    encoding: str = option(
        "utf-8", "Encoding of text files and subtitles, and of their results, e.g. cp1252; auto detects it."
    )
    consistency_report: Path | None = option(
        None, "TSV file that lists the sentences and words that were translated in several ways."
    )
    fail_on_warning: bool = option(False, "Exit with status 1 if there is a warning.")
    engine: Literal["process", "ray"] = option(
        "process", "Translate in this process, or on the GPUs and cores of a Ray cluster into a folder of chunks."
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
        if self.skip_existing and (self.overwrite or self.output is None):
            raise ValueError("skip_existing needs --output, and excludes --overwrite.")
        if self.bilingual and self.output_format != "same":
            raise ValueError("bilingual needs --output_format same: sentence pairs are bilingual.")
        if self.engine == "ray" and (self.output is None or len(self.inputs) != 1 or self.inputs == [STDIN]):
            raise ValueError("engine ray needs one input, a file or a folder, and --output.")
        if self.engine == "ray" and (self.consistency_report or self.skip_existing):
            raise ValueError("engine ray excludes --consistency_report and --skip_existing: it continues by itself.")

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs; `-` is standard input."""
        return self.files or [STDIN]
