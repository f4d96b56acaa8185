"""What a run says on standard error: failures and warnings, each with its place, and at the end a summary."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..files import Consistency, align_words
from ..pipeline_gtransformer import DocumentTranslationPipeline
from ..usage_error import in_a_sentence
from .errors import DONE, FAILED


PACKAGE = __name__.partition(".")[0]


class Report(logging.Handler):
    """
    Counts and prints the failures of files and records, and the warnings of the package.

    Attributes:
        consistency: collects translations for a report on their consistency, if there is to be one.
    """

    def __init__(self, program: str):
        super().__init__(logging.WARNING)
        self.program = program
        self.consistency: Consistency | None = None
        self.skipped = self.warnings = 0
        self.failed: set[str] = set()

    def say(self, message: str) -> None:
        print(f"{self.program}: {message}", file=sys.stderr)

    def skip(self, file: str, why: str) -> None:
        """Notes that a file is left out on purpose."""
        self.say(f"{file}: skipped, {why}")
        self.skipped += 1

    def fail(self, file: str, error: Exception, line: int | None = None) -> None:
        """Notes that a file or a line of it has failed."""
        place = file if line is None else f"{file}, line {line}"
        self.say(f"{place}: {in_a_sentence(error).removeprefix(f'{file}: ')}")
        self.failed.add(file)

    def note(self, name: str, pairs: Sequence[dict[str, Any]], translate: DocumentTranslationPipeline) -> None:
        """Notes the sentence pairs of a document, which a pipeline has translated."""
        if self.consistency is not None:
            texts = [(pair["source_text"], pair["translation_text"]) for pair in pairs]
            self.consistency.add(name, pairs, align_words(translate.model, translate.processor, texts))

    def emit(self, record: logging.LogRecord) -> None:
        self.say(f"warning: {record.getMessage()}")
        self.warnings += 1

    @contextmanager
    def counting_warnings(self) -> Iterator[None]:
        """While it lasts, the warnings of the package are reported here."""
        logger = logging.getLogger(PACKAGE)
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)

    def summarize(self, files: int, fail_on_warning: bool) -> int:
        """Prints the summary of a run over so many files, and returns its exit status."""
        counts = {"file": files, "failed": len(self.failed), "skipped": self.skipped, "warning": self.warnings}
        parts = [
            f"{number} {name}{'s' if name in ('file', 'warning') and number != 1 else ''}"
            for name, number in counts.items()
        ]
        self.say(", ".join(parts))
        return FAILED if self.failed or (fail_on_warning and self.warnings) else DONE
