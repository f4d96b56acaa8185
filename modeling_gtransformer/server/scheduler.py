"""One thread owns the model. Jobs take turns, a batch of segments at a time, and jobs that wait share batches."""

import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from ..files.zip_package import MAX_BYTES
from ..pipeline_gtransformer import DocumentTranslationPipeline, NamedDocument, PreparedDocument
from ..runtime.usage_error import UsageError, user_message
from ..sentence import TranslatedSentence
from .api_error import ApiError, unforeseen


# Maximum size of the unpacked text of a package, in bytes: per character, for Word's long markup, and for styles.
BYTES_OF_CHARACTER, BYTES_OF_STYLES = 50, 2_000_000

# A generator that computes one batch at each step, and returns the result of each of its jobs.
Steps = Generator[Any, None, list[Any]]


@dataclass(eq=False)
class Call:
    """
    A function that needs the model, as a job of one step.

    Attributes:
        result: the value of the function, or an error.
    """

    function: Callable[[], Any]
    result: "Future[Any]" = field(default_factory=Future)


@dataclass(eq=False)
class Job:
    """
    The documents of one request.

    Attributes:
        documents: texts, contents of files or lists of sentences.
        options: keyword arguments of the pipeline. Jobs of equal options share batches.
        format: format of the documents, under its name in the pipeline.
        on_sentence: called with every sentence of the single document and its translation, as soon as it is certain.
            Such a job shares no batches.
        result: result of the pipeline for each document, or an error. Cancelling it ends the job after its batch.
        prepared: the documents, split into sentences.
        tokens: number of source tokens of all documents.
    """

    documents: list[str | bytes | list[str]]
    options: dict[str, Any] = field(default_factory=dict)
    format: str = "text"
    on_sentence: Callable[[dict[str, str]], None] | None = None
    result: "Future[list[dict[str, Any]]]" = field(default_factory=Future)
    prepared: list[PreparedDocument] = field(default_factory=list)
    tokens: int = 0


@dataclass(eq=False)
class Task:
    """
    Jobs that share batches.

    Attributes:
        is_open: whether other jobs may join before the first batch.
        steps: their batches, from the first turn on.
        seconds: seconds that the steps took.
    """

    jobs: list[Any]
    is_open: bool = False
    steps: Steps | None = None
    seconds: float = 0.0

    def can_take(self, job: Job, max_tokens: int) -> bool:
        """Returns whether a job may share the batches of this task."""
        is_waiting = self.is_open and self.steps is None
        tokens = job.tokens + sum(own.tokens for own in self.jobs if is_waiting)
        return is_waiting and self.jobs[0].options == job.options and tokens <= max_tokens

    def finish(self, results: list[Any]) -> None:
        """Passes the results to those callers who still wait."""
        for job, result in zip(self.jobs, results, strict=True):
            if job.result.set_running_or_notify_cancel():
                job.result.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Passes an error to those callers who still wait."""
        for job in self.jobs:
            if job.result.set_running_or_notify_cancel():
                job.result.set_exception(error)


class Scheduler:
    """
    Runs jobs on the model of a pipeline, which belongs to the thread of the scheduler from now on. At each turn, a job
    computes one batch; then every other job has its turn. So a long document delays a short one by one batch.

    Args:
        max_tokens: source tokens of jobs that share batches.
        max_characters: characters in the sentences of a job.
        max_seconds: seconds that a job may compute, without its time in the queue.
        on_done: called with the jobs that are done together.
    """

    def __init__(
        self,
        pipeline: DocumentTranslationPipeline,
        max_tokens: int,
        max_characters: int,
        max_seconds: float,
        on_done: Callable[[list[Any]], None] = lambda jobs: None,
    ):
        self.pipeline, self.on_done = pipeline, on_done
        self.max_tokens, self.max_characters, self.max_seconds = max_tokens, max_characters, max_seconds
        self.last_seconds = 0.0
        self._incoming: SimpleQueue[Job | Call | None] = SimpleQueue()
        # Only the thread uses the following attributes.
        self._tasks: deque[Task] = deque()
        self._is_closing = False
        self._thread = Thread(target=self._work, name="translation", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Waits until all accepted jobs are done."""
        self._incoming.put(None)
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Returns whether the thread is running."""
        return self._thread.is_alive()

    def submit(self, job: Job | Call) -> "Future[Any]":
        """Queues a job, and returns its result."""
        self._incoming.put(job)
        return job.result

    def _work(self) -> None:
        """Runs in the thread until the scheduler is closed."""
        MAX_BYTES.set(BYTES_OF_CHARACTER * self.max_characters + BYTES_OF_STYLES)
        while self._tasks or not self._is_closing:
            self._receive(wait=not self._tasks)
            if self._tasks:
                task = self._tasks.popleft()
                if self._advance(task):
                    self._receive(wait=False)  # newcomers have their turn before the next batch of this task
                    self._tasks.append(task)

    def _receive(self, wait: bool) -> None:
        """Gives new jobs their places in the queue."""
        while True:
            try:
                job = self._incoming.get(block=wait)
            except Empty:
                return
            wait = False
            if job is None:
                self._is_closing = True
            elif isinstance(job, Call):
                self._tasks.append(Task([job], steps=_one_step(job.function)))
            elif not job.result.cancelled():
                self._place(job)

    def _place(self, job: Job) -> None:
        """Adds a job to a task that has not begun, or else to the end; a job that cannot be prepared fails alone."""
        try:
            self._prepare(job)
        except BaseException as error:  # panics of Rust libraries are not subclasses of Exception
            Task([job]).fail(error if isinstance(error, ApiError | ImportError) else unforeseen(error))
            return
        is_open = job.on_sentence is None
        task = next((each for each in self._tasks if is_open and each.can_take(job, self.max_tokens)), None)
        if task is None:
            self._tasks.append(Task([job], is_open))
        else:
            task.jobs.append(job)

    def _prepare(self, job: Job) -> None:
        """
        Splits the documents of a job into sentences, and counts their tokens.

        Raises:
            ApiError: a document is too large, or cannot be read or translated.
        """
        named = [NamedDocument(f"Document {number}", each) for number, each in enumerate(job.documents, 1)]
        try:
            job.prepared = [self.pipeline.prepare(each, format=job.format, **job.options) for each in named]
        except ValueError as error:
            raise ApiError(400, f"The document cannot be read: {user_message(error)}") from error
        sentences = [sentence for prepared in job.prepared for sentence in prepared.sentences]
        if (characters := sum(len(sentence.text) for sentence in sentences)) > self.max_characters:
            raise ApiError(413, f"The request has {characters:,} characters: at most {self.max_characters:,}.")
        processor = self.pipeline.processor
        try:
            encoded = processor.encode_sentences([each.text for each in sentences if each.is_translated])
        except ValueError as error:
            raise ApiError(400, f"The document cannot be translated: {user_message(error)}") from error
        job.tokens = sum(len(tokens) + processor.sentence_tokens for tokens in encoded)

    def _advance(self, task: Task) -> bool:
        """Computes a batch of a task; returns whether there are more."""
        task.steps = task.steps or self._translate(task.jobs)
        begun = time.monotonic()
        try:
            if all(job.result.cancelled() for job in task.jobs):
                task.steps.close()
                return False
            next(task.steps)
        except StopIteration as end:
            if not isinstance(task.jobs[0], Call):
                self.on_done(task.jobs)
            task.finish(end.value)
            return False
        except BaseException as error:
            is_expected = isinstance(error, ApiError | UsageError) or isinstance(task.jobs[0], Call)
            if len(task.jobs) == 1:
                task.fail(error if is_expected else unforeseen(error))
            else:  # each is tried again alone, before those that came after them
                self._tasks.extendleft(Task([job]) for job in reversed(task.jobs))
            return False
        finally:
            self.last_seconds = time.monotonic() - begun
            task.seconds += self.last_seconds
        if task.seconds > self.max_seconds:
            task.steps.close()
            seconds = f"{self.max_seconds:g} seconds"
            task.fail(ApiError(504, f"The translation took more than {seconds} and was stopped: send less at a time."))
        return task.seconds <= self.max_seconds

    def _translate(self, jobs: list[Job]) -> Steps:
        options = dict(jobs[0].options)
        if (on_sentence := jobs[0].on_sentence) is not None:
            options["on_sentence"] = _pairs_of(on_sentence)
        prepared = [document for job in jobs for document in job.prepared]
        results = iter((yield from self.pipeline.translate_in_steps(prepared, **options)))
        return [[next(results) for _ in job.documents] for job in jobs]


def _one_step(function: Callable[[], Any]) -> Steps:
    result = function()
    yield
    return [result]


def _pairs_of(on_sentence: Callable[[dict[str, str]], None]) -> Callable[[TranslatedSentence], None]:
    """Reports sentences that the model translates as clients get them."""

    def report(sentence: TranslatedSentence) -> None:
        if sentence.source.is_translated:
            on_sentence({"source_text": sentence.source.text, "translation_text": sentence.text})

    return report
