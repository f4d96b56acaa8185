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
from ..sentence import TranslatedSentence
from ..usage_error import UsageError, user_message
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
        result: what the function returns, or an error. Cancelling it ends the job at the end of a batch.
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
        result: result of the pipeline for each document, or an error. Cancelling it ends the job at the end of a batch.
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
        is_shared: whether other jobs may join before the first batch.
        steps: their batches, from the first turn on.
        seconds: seconds that the steps took.
    """

    jobs: list[Any]
    is_shared: bool = False
    steps: Steps | None = None
    seconds: float = 0.0

    def can_take(self, job: Job, max_tokens: int) -> bool:
        """Tells whether a job can share the batches of this task."""
        return (
            self.is_shared
            and self.steps is None
            and self.jobs[0].options == job.options
            and sum(own.tokens for own in self.jobs) + job.tokens <= max_tokens
        )


class Scheduler:
    """
    Runs jobs on the model of a pipeline, which belongs to the thread of the scheduler from now on. At each turn, a job
    computes one batch; then every other job has its turn. So a long document delays a short one by one batch, and
    nobody is overtaken twice by the same job. Jobs of equal options that wait at the same time become one task.

    Args:
        max_tokens: source tokens of jobs that share batches.
        max_characters: characters in the sentences of a job.
        max_seconds: seconds that a job may compute, without its time in the queue.
        on_batch: called with the jobs of a task that is done.
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
        """Tells whether the thread is running."""
        return self._thread.is_alive()

    def submit(self, job: Job | Call) -> "Future[Any]":
        """Queues a job, and returns its result, which may be an [`ApiError`]."""
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
        """Gives new jobs their places."""
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
            elif not job.result.cancelled() and self._prepare(job):
                self._place(job)

    def _prepare(self, job: Job) -> bool:
        """Splits the documents of a job into sentences; a job that cannot be translated fails alone."""
        named = [NamedDocument(f"Document {number}", each) for number, each in enumerate(job.documents, 1)]
        try:
            try:
                job.prepared = [self.pipeline.prepare(each, format=job.format, **job.options) for each in named]
            except ImportError:
                raise
            except ValueError as error:
                raise ApiError(400, f"The document cannot be read: {user_message(error)}") from error
            job.tokens = self._count_tokens(job)
        except BaseException as error:  # panics of Rust libraries are not subclasses of Exception
            _fail(job, error if isinstance(error, ApiError | ImportError) else unforeseen(error))
            return False
        return True

    def _count_tokens(self, job: Job) -> int:
        """
        Counts the source tokens of a job.

        Raises:
            ApiError: the job has too many characters, or some that cannot be translated.
        """
        sentences = [sentence for prepared in job.prepared for sentence in prepared.sentences]
        if (characters := sum(len(sentence.text) for sentence in sentences)) > self.max_characters:
            raise ApiError(413, f"The request has {characters:,} characters: at most {self.max_characters:,}.")
        processor = self.pipeline.processor
        try:
            encoded = processor.encode_sentences([each.text for each in sentences if each.is_translated])
        except ValueError as error:
            raise ApiError(400, f"The document cannot be translated: {user_message(error)}") from error
        return sum(len(tokens) + processor.sentence_tokens for tokens in encoded)

    def _place(self, job: Job) -> None:
        """Adds a job to a task that has not begun, or else to the end of the queue."""
        task = next((task for task in self._tasks if task.can_take(job, self.max_tokens)), None)
        if task is not None and job.on_sentence is None:
            task.jobs.append(job)
        else:
            self._tasks.append(Task([job], is_shared=job.on_sentence is None))

    def _advance(self, task: Task) -> bool:
        """Computes a batch of a task; returns whether there are more."""
        if all(job.result.cancelled() for job in task.jobs):
            if task.steps is not None:
                task.steps.close()
            return False
        begun = time.monotonic()
        try:
            task.steps = task.steps or self._translate(task.jobs)
            next(task.steps)
        except StopIteration as end:
            self.on_done(task.jobs)
            for job, result in zip(task.jobs, end.value, strict=True):
                _finish(job, result)
            return False
        except BaseException as error:
            self._failed(task, error)
            return False
        finally:
            self.last_seconds = time.monotonic() - begun
            task.seconds += self.last_seconds
        if task.seconds <= self.max_seconds:
            return True
        task.steps.close()
        message = f"The translation took more than {self.max_seconds:g} seconds and was stopped: send less at a time."
        for job in task.jobs:
            _fail(job, ApiError(504, message))
        return False

    def _failed(self, task: Task, error: BaseException) -> None:
        """Fails a job; jobs that shared batches are tried again alone, before those that came after them."""
        if len(task.jobs) == 1:
            _fail(task.jobs[0], error if isinstance(error, ApiError | UsageError) else unforeseen(error))
            return
        self._tasks.extendleft(Task([job]) for job in reversed(task.jobs))

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


def _finish(job: Job | Call, result: Any) -> None:
    """Passes a result to the caller, if it still waits."""
    if job.result.set_running_or_notify_cancel():
        job.result.set_result(result)


def _fail(job: Job | Call, error: BaseException) -> None:
    """Passes an error to the caller, if it still waits."""
    if job.result.set_running_or_notify_cancel():
        job.result.set_exception(error)


def _pairs_of(on_sentence: Callable[[dict[str, str]], None]) -> Callable[[TranslatedSentence], None]:
    """Reports sentences that the model translates as clients get them."""

    def report(sentence: TranslatedSentence) -> None:
        if sentence.source.is_translated:
            on_sentence({"source_text": sentence.source.text, "translation_text": sentence.text})

    return report
