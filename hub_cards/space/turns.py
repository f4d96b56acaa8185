"""Turns at the model: every job gets its share, and none goes on for ever."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, local
from typing import Any


class JobStopped(ValueError):
    """A job was cancelled, or has used up its time."""


@dataclass(eq=False)
class Job:
    """
    A job of the session `owner`.

    Attributes:
        used: seconds that it has computed in earlier turns.
        since: when its turn began.
    """

    owner: str
    used: float = 0.0
    since: float = 0.0
    cancelled: bool = False


class Turns:
    """
    Lets jobs, each in a thread of its own, share a model. One computes at a time; before each of its batches, the jobs
    that are waiting get their turn. So a long document delays a short one by one batch, not by all of its batches.

    Args:
        seconds: time that a job may compute, without what it waits.
        clock: gives the time in seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic):
        self.seconds, self.clock = seconds, clock
        self._condition = Condition()
        self._waiting: deque[Job] = deque()
        self._running: Job | None = None
        self._jobs: set[Job] = set()
        self._own = local()

    def watch(self, model: Any) -> None:
        """Takes turns wherever an encoder begins a batch, and stops jobs at any step of a decoder."""
        model.model.encoder.register_forward_pre_hook(lambda *_: self.between_batches())
        model.model.decoder.register_forward_pre_hook(lambda *_: self.check())

    @contextmanager
    def job(self, owner: str) -> Iterator[Job]:
        """
        Waits for the model, and has it until the end of the block.

        Raises:
            JobStopped: the job was cancelled.
        """
        job = Job(owner)
        with self._condition:
            self._jobs.add(job)
        try:
            self._begin(job)
            self._own.job = job
            yield job
        finally:
            self._own.job = None
            self._end(job)
            with self._condition:
                self._jobs.discard(job)

    def between_batches(self) -> None:
        """
        Lets the waiting jobs compute first, if this thread runs a job.

        Raises:
            JobStopped: this job was cancelled, or has used up its time.
        """
        self.check()
        job = getattr(self._own, "job", None)
        if job is not None and self._waiting:
            self._end(job)
            self._begin(job)

    def check(self) -> None:
        """
        Ends a job that has to stop.

        Raises:
            JobStopped: the job of this thread was cancelled, or has used up its time.
        """
        job = getattr(self._own, "job", None)
        if job is None:
            return
        if job.cancelled:
            raise JobStopped("The translation was cancelled.")
        if job.used + self.clock() - job.since > self.seconds:
            raise JobStopped(
                f"The translation took more than {self.seconds:.0f} seconds and was stopped: translate the document "
                "in parts, or with fewer beams."
            )

    def cancel(self, owner: str) -> None:
        """Stops the jobs of a session."""
        with self._condition:
            for job in self._jobs:
                if job.owner == owner:
                    job.cancelled = True
            self._condition.notify_all()

    def _begin(self, job: Job) -> None:
        with self._condition:
            self._waiting.append(job)
            self._condition.wait_for(lambda: job.cancelled or (self._running is None and self._waiting[0] is job))
            self._waiting.remove(job)
            if job.cancelled:
                self._condition.notify_all()
                raise JobStopped("The translation was cancelled.")
            self._running, job.since = job, self.clock()

    def _end(self, job: Job) -> None:
        with self._condition:
            if self._running is job:
                job.used += self.clock() - job.since
                self._running = None
                self._condition.notify_all()
