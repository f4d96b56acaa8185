"""Schedules jobs on the thread of the model. Jobs take turns, a batch at a time, and waiting jobs share batches."""

import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from starlette.exceptions import HTTPException

from ..files.zip_package import MAX_BYTES
from ..pipeline_gtransformer import DocumentTranslationPipeline, NamedDocument, PreparedDocument
from ..runtime.usage_error import UsageError, user_message
from .api_error import unforeseen
from .monitoring import Monitor
from .options import ServerOptions
from .request_limits import check_number


# Maximum bytes of the unpacked text of a package: per character, because Word's markup is verbose, and for styles.
BYTES_OF_CHARACTER, BYTES_OF_STYLES = 50, 2_000_000

# After this many seconds of preparing new jobs, running jobs get a batch.
PREPARATION_SECONDS = 0.1

# A generator that computes one batch per step, and returns the result of each job.
Steps = Generator[Any, None, list[Any]]


@dataclass(eq=False)
class Job:
    """
    The documents of one request, or a call of a function on the thread of the model.

    Attributes:
        documents: texts, contents of files or lists of sentences.
        options: keyword arguments of `translate_in_steps`. Jobs with equal options share batches, so that a job with
            its own function `on_sentence` shares none.
        format: format of the documents, by its name in the pipeline.
        call: the function, for a job of one step without documents.
        result: result of the pipeline for each document, or value of the call, or an error. Cancelling it ends the job
            after its batch.
        prepared: the documents, split into sentences.
        tokens: number of source tokens of all documents.
    """

    documents: list[str | bytes | list[str]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    format: str = "text"
    call: Callable[[], Any] | None = None
    result: "Future[Any]" = field(default_factory=Future)
    prepared: list[PreparedDocument] = field(default_factory=list)
    tokens: int = 0


@dataclass(eq=False)
class Task:
    """
    Jobs that share batches.

    Attributes:
        steps: generator of batches; `None` while other jobs may join.
        seconds: seconds of computation.
    """

    jobs: list[Job]
    steps: Steps | None = None
    seconds: float = 0.0

    def can_take(self, job: Job, max_tokens: int) -> bool:
        tokens = job.tokens + sum(own.tokens for own in self.jobs)
        return self.steps is None and self.jobs[0].options == job.options and tokens <= max_tokens

    def finish(self, results: list[Any]) -> None:
        """Sets the results of jobs that are not cancelled."""
        for job, result in zip(self.jobs, results, strict=True):
            if job.result.set_running_or_notify_cancel():
                job.result.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Sets the error of jobs that are not cancelled."""
        for job in self.jobs:
            if job.result.set_running_or_notify_cancel():
                job.result.set_exception(error)


class Scheduler:
    """
    Runs jobs on the model of a pipeline, in a thread that owns the model. Jobs take turns of one batch each, so a long
    document delays a short one by one batch.

    Args:
        max_tokens: maximum source tokens of jobs that share batches.
        monitor: counts the batches and their tokens.
    """

    def __init__(
        self, pipeline: DocumentTranslationPipeline, max_tokens: int, options: ServerOptions, monitor: Monitor
    ):
        self.pipeline, self.max_tokens, self.options, self.monitor = pipeline, max_tokens, options, monitor
        self.last_seconds = 0.0
        self._incoming: SimpleQueue[Job | None] = SimpleQueue()
        # Used by the thread only.
        self._tasks: deque[Task] = deque()
        self._is_closing = False
        self._thread = Thread(target=self._work, name="translation", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Waits for all accepted jobs."""
        self._incoming.put(None)
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def submit(self, job: Job) -> "Future[Any]":
        self._incoming.put(job)
        return job.result

    def _work(self) -> None:
        """Runs in the thread until `close`."""
        MAX_BYTES.set(BYTES_OF_CHARACTER * self.options.max_characters + BYTES_OF_STYLES)
        while self._tasks or not self._is_closing:
            self._receive(wait=not self._tasks)
            if self._tasks:
                task = self._tasks.popleft()
                if self._advance(task):
                    self._receive(wait=False)  # new jobs precede the next batch of this task
                    self._tasks.append(task)

    def _receive(self, wait: bool) -> None:
        """Moves new jobs to the queue of tasks; the rest follows after a batch if this takes long."""
        begun = time.monotonic()
        while True:
            try:
                job = self._incoming.get(block=wait)
            except Empty:
                return
            begun, wait = (time.monotonic() if wait else begun), False
            if job is None:
                self._is_closing = True
            elif job.call is not None:
                self._tasks.append(Task([job], self._translate([job])))
            elif not job.result.cancelled():
                self._place(job)
            if time.monotonic() > begun + PREPARATION_SECONDS:
                return

    def _place(self, job: Job) -> None:
        """Adds a job to a waiting task, or as a new task. An error in preparation fails only this job."""
        try:
            self._prepare(job)
        except BaseException as error:  # panics of Rust libraries are not subclasses of Exception
            Task([job]).fail(error if isinstance(error, HTTPException | ImportError) else unforeseen(error))
            return
        task = next((each for each in self._tasks if each.can_take(job, self.max_tokens)), None)
        if task is None:
            self._tasks.append(Task([job]))
        else:
            task.jobs.append(job)

    def _prepare(self, job: Job) -> None:
        """Splits the documents of a job into sentences, and counts their tokens."""
        named = [NamedDocument(f"Document {number}", each) for number, each in enumerate(job.documents, 1)]
        processor = self.pipeline.processor
        try:
            job.prepared = [self.pipeline.prepare(each, format=job.format, **job.options) for each in named]
            sentences = [sentence for prepared in job.prepared for sentence in prepared.sentences]
            characters = sum(len(sentence.text) for sentence in sentences)
            check_number(characters, self.options.max_characters, "characters")
            encoded = processor.encode_sentences([each.text for each in sentences if each.is_translated])
        except ValueError as error:
            raise HTTPException(400, f"The document cannot be translated: {user_message(error)}") from error
        job.tokens = sum(len(tokens) + processor.sentence_tokens for tokens in encoded)

    def _advance(self, task: Task) -> bool:
        """Computes a batch of a task, and returns whether the task continues."""
        task.steps = task.steps or self._translate(task.jobs)
        begun = time.monotonic()
        try:
            if all(job.result.cancelled() for job in task.jobs):
                task.steps.close()
                return False
            next(task.steps)
        except StopIteration as end:
            task.finish(end.value)
            return False
        except BaseException as error:
            is_expected = isinstance(error, HTTPException | UsageError) or task.jobs[0].call is not None
            if len(task.jobs) == 1:
                task.fail(error if is_expected else unforeseen(error))
            else:  # retry each job alone, before later jobs
                self._tasks.extendleft(Task([job], self._translate([job])) for job in reversed(task.jobs))
            return False
        finally:
            self.last_seconds = time.monotonic() - begun
            task.seconds += self.last_seconds
        if task.seconds > self.options.max_seconds:
            task.steps.close()
            seconds = f"{self.options.max_seconds:g} seconds"
            task.fail(HTTPException(504, f"The translation took more than {seconds} and was stopped: send less text."))
        return task.seconds <= self.options.max_seconds

    def _translate(self, jobs: list[Job]) -> Steps:
        if (call := jobs[0].call) is not None:
            return [call()]
        prepared = [document for job in jobs for document in job.prepared]
        results = iter((yield from self.pipeline.translate_in_steps(prepared, **jobs[0].options)))
        self.monitor.batches.observe(len(jobs))
        self.monitor.tokens.inc(sum(job.tokens for job in jobs))
        return [[next(results) for _ in job.documents] for job in jobs]
