"""Messages of a run on standard error: failures and warnings with their places, and a summary."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..files import Consistency
from ..files.aligned_pairs import Pairs
from ..runtime.usage_error import UsageError, user_message
from .errors import DONE, FAILED, REFUSED


PACKAGE = __name__.partition(".")[0]
PROGRAM = "gtransformer translate"


class Report(logging.Handler):
    """
    Counts and prints failures of files and records, and warnings of the package.

    Attributes:
        files: number of inputs.
        consistency: collects translations for the consistency report, if requested.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.consistency: Consistency | None = None
        self.files = self.skipped = self.warnings = self.refused = 0
        self.failed: set[str] = set()

    def write(self, message: str) -> None:
        print(f"{PROGRAM}: {message}", file=sys.stderr)

    def skip(self, file: str, why: str) -> None:
        self.write(f"{file}: skipped, {why}")
        self.skipped += 1

    def fail(self, file: str, error: Exception, line: int | None = None) -> None:
        place = file if line is None else f"{file}, line {line}"
        self.write(f"{place}: {user_message(error).removeprefix(f'{file}: ')}")
        self.failed.add(file)
        self.refused += isinstance(error, UsageError)

    def note(self, name: str, pairs: Pairs) -> None:
        """Adds the sentence pairs of a document to the consistency report."""
        if self.consistency is not None:
            self.consistency.add(name, pairs, [pair["alignment"] for pair in pairs])

    def warn(self, message: str) -> None:
        self.write(f"warning: {message}")
        self.warnings += 1

    def emit(self, record: logging.LogRecord) -> None:
        self.warn(record.getMessage())

    @contextmanager
    def counting_warnings(self) -> Iterator[None]:
        """Reports and counts the warnings of the package in this context."""
        logger = logging.getLogger(PACKAGE)
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)

    def summarize(self, fail_on_warning: bool) -> int:
        """Prints the summary of a run, and returns its exit status: 2 if no input could be started."""
        counts = {"file": self.files, "failed": len(self.failed), "skipped": self.skipped, "warning": self.warnings}
        parts = [
            f"{number} {name}{'s' if name in ('file', 'warning') and number != 1 else ''}"
            for name, number in counts.items()
        ]
        self.write(", ".join(parts))
        if self.refused == self.files > 0:
            return REFUSED
        return FAILED if self.failed or (fail_on_warning and self.warnings) else DONE
