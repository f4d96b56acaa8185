"""The queue of requests: one thread owns the model and translates waiting requests, many in a batch."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from functools import cache
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from ..document_translation import batch_tokens
from ..files.zip_package import MAX_BYTES
from ..sentence import TranslatedSentence
from ..translator import Translator
from ..usage_error import UsageError, user_message
from .api_error import ApiError, unforeseen
from .job import Job
from .monitoring import Monitor
from .server_settings import Limits


# Upper bound on the unpacked text of a package, in bytes: per character, for Word's long markup, and for styles.
BYTES_OF_CHARACTER, BYTES_OF_STYLES = 50, 2_000_000


class Abandoned(Exception):
    """Nobody waits any longer for the running translation."""


class TranslationQueue:
    """
    Translates jobs in the order in which they came. A batch holds all waiting jobs with the settings of the first one,
    up to the number of tokens that the translator takes in a batch. Jobs that are shorter than a batch are translated
    between two batches of a longer job or of a stream, so a long document delays a short one by only one batch.

    Args:
        translator: translator, whose model belongs to the thread of the queue from now on.
    """

    def __init__(self, translator: Translator, limits: Limits, monitor: Monitor):
        translate = translator.pipeline
        self.translate, self.limits, self.monitor = translate, limits, monitor
        num_beams = translator.options.get("num_beams") or translate.model.generation_config.num_beams or 1
        self.batch_tokens = translator.options.get("max_tokens") or batch_tokens(num_beams)
        self._terms_between = cache(translator.terms_between)
        self.under_way = 0
        self._incoming: SimpleQueue[Job | None] = SimpleQueue()
        # Only the thread uses the following attributes.
        self._waiting: list[Job] = []
        self._running: list[list[Job]] = []
        self._closing = False
        self._seconds = 0.0
        translate.model.model.encoder.register_forward_pre_hook(lambda *_: self._between_batches())
        translate.model.model.decoder.register_forward_pre_hook(lambda *_: self._stop_if_abandoned())
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

    async def result_of(self, job: Job) -> list[dict[str, Any]]:
        """
        What the pipeline gives for each document of a job. If the caller is cancelled, so is the job.

        Raises:
            ApiError: too many jobs wait, the job takes too long, or a document is too large or cannot be read.
        """
        if self.under_way >= self.limits.max_waiting:
            raise ApiError(503, "The server is busy: try again later.", retry_after=max(1, math.ceil(self._seconds)))
        self.under_way += 1
        self.monitor.waiting.set(self.under_way)
        self._incoming.put(job)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job.result), self.limits.max_seconds)
        except asyncio.TimeoutError as error:
            raise ApiError(
                504, f"The translation was not done after {self.limits.max_seconds:g} seconds: send less at a time."
            ) from error
        finally:
            self.under_way -= 1
            self.monitor.waiting.set(self.under_way)

    def _work(self) -> None:
        """Runs in the thread until the queue is closed."""
        MAX_BYTES.set(BYTES_OF_CHARACTER * self.limits.max_characters + BYTES_OF_STYLES)
        while self._waiting or not self._closing:
            self._receive(wait=not self._waiting)
            if batch := self._next_batch():
                self._translate(batch)

    def _receive(self, wait: bool) -> None:
        """Prepares new jobs."""
        while True:
            try:
                job = self._incoming.get(block=wait)
            except Empty:
                return
            wait = False
            if job is None:
                self._closing = True
            elif not job.result.cancelled():
                self._prepare(job)

    def _prepare(self, job: Job) -> None:
        """Splits the documents of a job into sentences, and queues it; a job that cannot be translated fails alone."""
        languages = job.settings.src_lang, job.settings.tgt_lang
        try:
            options: dict[str, Any] = {"format": job.format, "src_lang": languages[0], "tgt_lang": languages[1]}
            options["glossary"] = self._terms_between(*languages)
            job.prepared = [self.translate.prepare(document, **options) for document in job.named()]
        except (ImportError, ApiError) as error:
            job.fail(error)
            return
        except ValueError as error:
            job.fail(ApiError(400, f"The document cannot be read: {user_message(error)}"))
            return
        except BaseException as error:  # panics of Rust libraries are not subclasses of Exception
            job.fail(unforeseen(error))
            return
        try:
            sentences = [sentence for prepared in job.prepared for sentence in prepared.sentences]
            if (characters := sum(len(sentence.text) for sentence in sentences)) > self.limits.max_characters:
                raise ApiError(
                    413, f"The request has {characters:,} characters: at most {self.limits.max_characters:,}."
                )
            processor = self.translate.processor
            encoded = processor.encode_sentences([each.text for each in sentences if each.is_translated])
            job.tokens = sum(len(words) + processor.sentence_tokens for words in encoded)
        except ApiError as error:
            job.fail(error)
            return
        except ValueError as error:
            job.fail(ApiError(400, f"The document cannot be translated: {user_message(error)}"))
            return
        except BaseException as error:
            job.fail(unforeseen(error))
            return
        self._waiting.append(job)

    def _next_batch(self, only_short: bool = False) -> list[Job]:
        """Takes the first waiting job, and all jobs that can share a batch with it."""
        self._waiting = [job for job in self._waiting if not job.result.cancelled()]
        batch: list[Job] = []
        tokens = 0
        for job in self._waiting:
            if only_short and self._takes_several_batches(job):
                continue
            shares = not batch or (tokens + job.tokens <= self.batch_tokens and job.can_share(batch[0]))
            if shares:
                batch.append(job)
                tokens += job.tokens
        self._waiting = [job for job in self._waiting if job not in batch]
        return batch

    def _translate(self, batch: list[Job]) -> None:
        """Translates a batch. If it fails as a whole, each of its jobs is tried alone later."""
        begun = time.monotonic()
        self._running.append(batch)
        try:
            results = iter(self._results(batch))
        except Abandoned:
            return
        except BaseException as error:
            self._failed(batch, error)
            return
        finally:
            self._running.pop()
        self._seconds = time.monotonic() - begun
        self.monitor.batches.observe(len(batch))
        self.monitor.tokens.inc(sum(job.tokens for job in batch))
        for job in batch:
            job.finish([next(results) for _ in job.documents])

    def _failed(self, batch: list[Job], error: BaseException) -> None:
        if len(batch) == 1:
            batch[0].fail(error if isinstance(error, ApiError | UsageError) else unforeseen(error))
            return
        for job in batch:
            job.is_alone = True
        self._waiting = [*batch, *self._waiting]

    def _results(self, batch: Sequence[Job]) -> list[dict[str, Any]]:
        settings, first = batch[0].settings, batch[0]
        options: dict[str, Any] = {"confidence": settings.confidence}
        if first.on_sentence is not None:
            options["on_sentence"] = _pairs_of(first.on_sentence)
        steps = self.translate.translate_in_steps(
            [prepared for job in batch for prepared in job.prepared],
            src_lang=settings.src_lang,
            tgt_lang=settings.tgt_lang,
            **options,
        )
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value

    def _between_batches(self) -> None:
        """Translates new short jobs during a job of several batches."""
        self._stop_if_abandoned()
        if len(self._running) != 1 or not self._takes_several_batches(self._running[0][0]):
            return
        self._receive(wait=False)
        if batch := self._next_batch(only_short=True):
            self._translate(batch)

    def _takes_several_batches(self, job: Job) -> bool:
        return job.on_sentence is not None or job.tokens > self.batch_tokens

    def _stop_if_abandoned(self) -> None:
        """
        Ends the running translation if nobody waits for it any longer.

        Raises:
            Abandoned: nobody waits for the running translation.
        """
        if self._running and all(job.result.cancelled() for job in self._running[-1]):
            raise Abandoned


def _pairs_of(on_sentence: Callable[[dict[str, str]], None]) -> Callable[[TranslatedSentence], None]:
    """Reports sentences that the model translates as clients get them."""

    def report(sentence: TranslatedSentence) -> None:
        if sentence.source.is_translated:
            on_sentence({"source_text": sentence.source.text, "translation_text": sentence.text})

    return report
