"""Serves requests: checks the client and the languages, and gets the translation from the scheduler."""

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from fastapi import Request

from ..document_translation import batch_tokens
from ..pipeline_gtransformer import NamedDocument
from ..runtime.translator import Translator
from ..runtime.usage_error import UsageError, user_message
from .api_error import ApiError, as_api_error
from .document_files import TranslatedFiles
from .monitoring import Monitor
from .options import ServerOptions
from .protocol import PairFields
from .request_languages import Languages, Pair
from .request_limits import ApiKeys, ClientLimit
from .scheduler import Job, Scheduler


# Factor by which a text with markup may be longer than its sentences.
MARKUP = 10


class Service:
    """
    Translates for the routes of a server.

    Raises:
        UsageError: the model or the API keys cannot be used, or no splitter knows the language.
    """

    def __init__(self, translator: Translator, options: ServerOptions):
        pipeline = translator.pipeline
        try:
            pipeline.prepare(NamedDocument("", "A."))  # a wrong splitter fails now instead of in the first request
        except (ImportError, ValueError) as error:
            raise UsageError(f"{user_message(error)} (--splitter line takes every line as a sentence)") from error
        self.options = options
        self.keys = ApiKeys(options.api_keys)
        self.clients = ClientLimit(options.max_per_client)
        self.languages = Languages(pipeline)
        self.files = TranslatedFiles()
        self.monitor = Monitor()
        num_beams = translator.options.get("num_beams") or pipeline.model.generation_config.num_beams or 1
        self.scheduler = Scheduler(
            pipeline,
            translator.options.get("max_tokens") or batch_tokens(num_beams),
            options.max_characters,
            options.max_seconds,
            self._count_batch,
        )
        self.under_way = 0
        self._terms_between = cache(translator.terms_between)

    def check(self, fields: dict[str, Any]) -> None:
        """
        Refuses the fields of a request before they are checked one by one.

        Raises:
            ApiError: the client has no permission, or sends too many texts.
        """
        self.keys.check(fields.get("api_key"))
        texts = max((len(value) for value in fields.values() if isinstance(value, list)), default=0)
        if texts > self.options.max_texts:
            message = f"The request has {texts:,} texts or sentences: at most {self.options.max_texts:,}."
            raise ApiError(413, message)

    async def translate(
        self,
        request: Request,
        fields: PairFields,
        documents: Sequence[str | bytes | list[str]],
        format: str = "text",
        confidence: bool = False,
        on_sentence: Callable[[dict[str, str]], None] | None = None,
    ) -> tuple[Pair, list[dict[str, Any]]]:
        """
        Returns the languages of a request, and what the pipeline returns for each of the documents.

        Raises:
            ApiError: the client has no permission, or the documents cannot be translated now or at all.
        """
        self._check_characters(documents, format)
        pair = self.languages.pair(fields.source, fields.target, _texts_of(documents))
        options: dict[str, Any] = {"src_lang": pair.src_lang, "tgt_lang": pair.tgt_lang, "confidence": confidence}
        # A key that is not checked would make a client as many as it likes.
        address = request.client.host if request.client else ""
        client = fields.api_key if self.keys.required and fields.api_key else address
        try:
            options["glossary"] = self._terms_between(pair.src_lang, pair.tgt_lang)
            with self.clients.request(client):
                return pair, await self._result_of(Job([*documents], options, format, on_sentence))
        except Exception as error:
            raise as_api_error(error) from error

    def _check_characters(self, documents: Sequence[str | bytes | list[str]], format: str) -> None:
        """
        Refuses texts whose splitting into sentences would keep the thread of the model busy. Only after that is it
        known how much of a text with markup is sentences.

        Raises:
            ApiError: there are too many characters.
        """
        characters = sum(map(len, _texts_of(documents)))
        max_characters = self.options.max_characters * (1 if format == "text" else MARKUP)
        if characters > max_characters:
            raise ApiError(413, f"The request has {characters:,} characters: at most {max_characters:,}.")

    async def _result_of(self, job: Job) -> list[dict[str, Any]]:
        """
        Waits for the result of a job. If the caller is cancelled, so is the job.

        Raises:
            ApiError: too many jobs wait, or what the scheduler raises.
        """
        if self.under_way >= self.options.max_waiting:
            seconds = max(1, math.ceil(self.scheduler.last_seconds))
            raise ApiError(503, "The server is busy: try again later.", retry_after=seconds)
        self.under_way += 1
        self.monitor.waiting.set(self.under_way)
        try:
            return await asyncio.wrap_future(self.scheduler.submit(job))
        finally:
            self.under_way -= 1
            self.monitor.waiting.set(self.under_way)

    def _count_batch(self, jobs: list[Job]) -> None:
        self.monitor.batches.observe(len(jobs))
        self.monitor.tokens.inc(sum(job.tokens for job in jobs))


def _texts_of(documents: Sequence[str | bytes | list[str]]) -> list[str]:
    lists = [[document] if isinstance(document, str) else document for document in documents]
    return [text for each in lists if isinstance(each, list) for text in each]
