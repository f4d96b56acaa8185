"""Serves requests: checks client and languages, and submits jobs to the scheduler."""

import asyncio
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from starlette.exceptions import HTTPException

from ..document_translation import batch_tokens
from ..pipeline_gtransformer import NamedDocument
from ..runtime.translator import Translator
from ..runtime.usage_error import UsageError, user_message
from ..sentence import TranslatedSentence
from .document_files import TranslatedFiles
from .monitoring import Monitor
from .options import ServerOptions
from .protocol import PairFields
from .request_languages import Languages, Pair
from .request_limits import ApiKeys, ClientLimit, check_number
from .scheduler import Job, Scheduler


# A request of FastAPI or Gradio.
AnyRequest = Any
# Maximum ratio of characters of a text with markup to characters of its sentences.
MARKUP = 10


class Service:
    """
    Translates for the routes of a server.

    Raises:
        UsageError: the model or the API keys are unusable, or the splitter does not support the language.
    """

    def __init__(self, translator: Translator, options: ServerOptions):
        pipeline = translator.pipeline
        try:
            pipeline.prepare(NamedDocument("", "A."))  # fails now for a wrong splitter, instead of in a request
        except (ImportError, ValueError) as error:
            raise UsageError(f"{user_message(error)} (or use --splitter line, for a sentence per line)") from error
        self.options = options
        self.keys = ApiKeys(options.api_keys)
        self.clients = ClientLimit(options.max_per_client)
        self.languages = Languages(pipeline)
        self.files = TranslatedFiles()
        self.monitor = Monitor()
        self.scheduler = Scheduler(
            pipeline,
            translator.options.get("max_tokens") or batch_tokens(pipeline.model, translator.options.get("num_beams")),
            options,
            self.monitor,
        )
        self.monitor.waiting.set_function(lambda: self.under_way)
        self._terms_between = cache(translator.terms_between)

    def check(self, fields: dict[str, Any]) -> None:
        """Raises `HTTPException` if the client is not authorised or sends too many texts, before field validation."""
        self.keys.check(fields.get("api_key"))
        texts = max((len(value) for value in fields.values() if isinstance(value, list)), default=0)
        check_number(texts, self.options.max_texts, "texts or sentences")

    async def translate(
        self,
        request: AnyRequest,
        fields: PairFields,
        documents: Sequence[str | bytes | list[str]],
        format: str = "text",
        **options: Any,
    ) -> tuple[Pair, list[dict[str, Any]]]:
        """
        Returns the languages of a request, and the pipeline's result for each document.

        Args:
            options: keyword arguments of the pipeline.

        Raises:
            HTTPException: a limit is exceeded, or the documents are not translatable.
            UsageError: the glossary is ambiguous in these languages.
        """
        texts = _texts_of(documents)
        # Splitting a long text would block the model. The exact limit applies after splitting, without markup.
        max_characters = self.options.max_characters * (1 if format == "text" else MARKUP)
        check_number(sum(map(len, texts)), max_characters, "characters")
        pair = self.languages.pair(fields.source, fields.target, texts)
        options |= {"src_lang": pair.src_lang, "tgt_lang": pair.tgt_lang}
        options["glossary"] = self._terms_between(pair.src_lang, pair.tgt_lang)
        return pair, await self.run(request, Job([*documents], options, format), fields.api_key)

    def start(
        self, request: AnyRequest, fields: PairFields, document: Any, format: str, **options: Any
    ) -> tuple["asyncio.Queue[dict[str, str] | None]", "asyncio.Task[tuple[Pair, list[dict[str, Any]]]]"]:
        """Starts the translation of a document. Returns a queue of its sentences, each as soon as it is final and
        without copied ones, with `None` at the end, and the task of [`translate`]."""
        sentences: asyncio.Queue[dict[str, str] | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def on_sentence(sentence: TranslatedSentence) -> None:
            if sentence.source.is_translated:
                pair = {"source_text": sentence.source.text, "translation_text": sentence.text}
                loop.call_soon_threadsafe(sentences.put_nowait, pair)

        options["on_sentence"] = on_sentence
        task = asyncio.create_task(self.translate(request, fields, [document], format, **options))
        task.add_done_callback(lambda _: sentences.put_nowait(None))
        return sentences, task

    async def run(self, request: AnyRequest, job: Job, api_key: str | None = None) -> Any:
        """
        Returns the result of a job. Cancelling the caller cancels the job.

        Raises:
            HTTPException: too many jobs wait, of this client or in total, or the job failed.
        """
        # Unchecked keys would let a client pose as several.
        address = request.client.host if request.client else ""
        with self.clients.request(api_key if self.keys.required and api_key else address):
            if self.under_way > self.options.max_waiting:
                seconds = max(1, math.ceil(self.scheduler.last_seconds))
                raise HTTPException(503, "The server is busy: try again later.", headers={"Retry-After": str(seconds)})
            return await asyncio.wrap_future(self.scheduler.submit(job))

    @property
    def under_way(self) -> int:
        """Number of requests in the queue or in translation."""
        return self.clients.under_way.total()


def _texts_of(documents: Sequence[str | bytes | list[str]]) -> list[str]:
    lists = [[document] if isinstance(document, str) else document for document in documents]
    return [text for each in lists if isinstance(each, list) for text in each]
