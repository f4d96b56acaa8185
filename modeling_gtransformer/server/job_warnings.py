"""Sends warnings of the code to the request that they are about, and not into a log."""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakValueDictionary

from .job import Job


PACKAGE = __name__.partition(".")[0]


class JobWarnings(logging.Handler):
    """
    Finds the job of a warning by the number in the names of its documents. A warning without such a number is about
    everything that is being translated.

    Args:
        running: batches that are being translated; the last one interrupts the others.
    """

    def __init__(self, running: Sequence[Sequence[Job]] = ()) -> None:
        super().__init__(logging.WARNING)
        self._running = running
        self._jobs: WeakValueDictionary[int, Job] = WeakValueDictionary()

    def collect(self, job: Job) -> None:
        """Lets a job receive its warnings from now on."""
        self._jobs[job.number] = job

    def emit(self, record: logging.LogRecord) -> None:
        found = re.match(r"\[(\d+)\] (.*)", record.getMessage(), re.DOTALL)
        if not found:
            for at_work in self._running[-1] if self._running else ():
                at_work.warnings.append(record.getMessage())
        elif job := self._jobs.get(int(found[1])):
            job.warnings.append(found[2])

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hides the warnings of the package from all other handlers in this context."""
        logger = logging.getLogger(PACKAGE)
        propagates, logger.propagate = logger.propagate, False
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.propagate = propagates
