"""Serves requests: checks the client and the languages, and gets the translation from the queue."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from fastapi import Request

from ..files import EXTENSIONS, FILE_FORMATS, decode
from ..pipeline_gtransformer import DocumentTranslationPipeline, NamedDocument
from ..translator import Translator
from ..usage_error import UsageError, user_message
from .api_error import ApiError, as_api_error
from .api_keys import ApiKeys
from .client_limit import ClientLimit
from .job import Job, JobSettings
from .language_detection import LanguageDetector
from .language_pairs import AUTO, LanguagePairs, name_of
from .monitoring import Monitor
from .request_fields import Fields, PairFields, Upload
from .server_settings import ServerSettings
from .translated_files import TranslatedFiles
from .translation_queue import TranslationQueue


# Factor by which a text with markup may be longer than its sentences.
MARKUP = 10


@dataclass(frozen=True)
class Pair:
    """
    The languages of a request.

    Attributes:
        source, target: codes of clients.
        src_lang, tgt_lang: codes of the processor; `None` for its own.
        detected: probability of the source in percent, if it was detected.
    """

    source: str
    target: str
    src_lang: str | None
    tgt_lang: str | None
    detected: float | None = None


class Service:
    """
    Translates for the routes of a server.

    Raises:
        UsageError: the model or the API keys cannot be used, or no splitter knows the language.
    """

    def __init__(self, translator: Translator, settings: ServerSettings):
        translate = translator.pipeline
        check_splitter(translate)
        self.settings = settings
        self.keys = ApiKeys(settings.api_keys)
        self.clients = ClientLimit(settings.limits.max_per_client)
        self.languages = LanguagePairs(translate)
        self.detector = LanguageDetector(self.languages.sources)
        self.monitor = Monitor()
        self.queue = TranslationQueue(translator, settings.limits, self.monitor)
        self.files = TranslatedFiles()

    def check(self, fields: dict[str, Any]) -> None:
        """
        Refuses the fields of a request before they are checked one by one.

        Raises:
            ApiError: the client has no permission, or sends too many texts.
        """
        key, most = fields.get("api_key"), self.settings.limits.max_texts
        self.keys.check(key if isinstance(key, str) else None)
        texts = max((len(value) for value in fields.values() if isinstance(value, list)), default=0)
        if texts > most:
            raise ApiError(413, f"The request has {texts:,} texts or sentences: at most {most:,}.")

    def _check_characters(self, documents: Sequence[str | bytes | list[str]], format: str) -> None:
        """
        Refuses texts whose splitting into sentences would keep the thread of the model busy. Only after that is it
        known how much of a text with markup is sentences.

        Raises:
            ApiError: there are too many characters.
        """
        texts = [document for document in documents if not isinstance(document, bytes)]
        characters = sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts)
        most = self.settings.limits.max_characters * (1 if format == "text" else MARKUP)
        if characters > most:
            raise ApiError(413, f"The request has {characters:,} characters: at most {most:,}.")

    def pair_of(self, fields: PairFields, texts: Sequence[str]) -> Pair:
        """
        Finds the languages of a request; if the source is `auto`, it is detected from the texts, if there are any.

        Raises:
            ApiError: the model does not translate between these languages.
        """
        source, probability = fields.source, None
        if source == AUTO and not texts and len(self.languages.sources) > 1:
            raise ApiError(400, "The language of such a file is not detected: name the source.")
        if source == AUTO:
            source, probability = self.detector.detect("\n".join(texts))[0]
        if fields.source == AUTO and len(codes := self.languages.sources_of(source)) > 1:
            raise ApiError(400, f"The text is {name_of(source)}: name the source, {' or '.join(codes)}.")
        source, src_lang = self.languages.source(source)
        target, tgt_lang = self.languages.target(fields.target or self.languages.own_target)
        return Pair(
            source,
            target,
            src_lang,
            tgt_lang,
            in_per_cent(probability),
        )

    async def translate(
        self,
        request: Request,
        fields: Fields,
        pair: Pair,
        documents: Sequence[str | bytes | list[str]],
        format: str = "text",
        confidence: bool = False,
        on_sentence: Callable[[dict[str, str]], None] | None = None,
    ) -> tuple[list[dict[str, Any]], list[str]]:
        """
        What the pipeline gives for each of the documents, and its warnings.

        Raises:
            ApiError: who asks may not, or the documents cannot be translated now or at all.
        """
        self._check_characters(documents, format)
        settings = JobSettings(pair.src_lang, pair.tgt_lang, confidence)
        job = Job([*documents], settings, format, on_sentence)
        try:
            with self.clients.request(self.client_of(request, fields)):
                return await self.queue.result_of(job), job.warnings
        except Exception as error:
            raise as_api_error(error) from error

    def client_of(self, request: Request, fields: Fields) -> str:
        """Identifies a client by its key or, if none is needed, by its address."""
        if self.keys.required and fields.api_key:
            return fields.api_key
        return request.client.host if request.client else ""


def in_per_cent(probability: float | None) -> float | None:
    """Formats a probability for clients, if there is one."""
    return None if probability is None else round(100 * probability, 1)


def check_splitter(translate: DocumentTranslationPipeline) -> None:
    """
    Splits a text once, so that a wrong splitter fails at the start instead of in the first request.

    Raises:
        UsageError: the splitter cannot find sentences.
    """
    try:
        translate.prepare(NamedDocument("", "A."))
    except (ImportError, ValueError) as error:
        raise UsageError(f"{user_message(error)} (--splitter line takes every line as a sentence)") from error


def content_of(upload: Upload) -> tuple[str | bytes, str]:
    """
    Reads the content of a file, and finds its format.

    Raises:
        ApiError: the ending of the name belongs to no known format.
        ValueError: a file in a text format is not text.
    """
    ending = PurePosixPath(upload.name).suffix.lower()
    if ending not in EXTENSIONS:
        raise ApiError(400, f"Files are known by their endings: {' '.join(EXTENSIONS)}.")
    format = EXTENSIONS[ending]
    binary = format != "text" and FILE_FORMATS[format].binary
    return upload.content if binary else decode(upload.content), format


def translated_name(name: str, target: str) -> str:
    """Names a translated file after its source, with the language added.

    >>> translated_name("C:\\\\letters\\\\to Ann.docx", "de")
    'to Ann.de.docx'
    """
    path = PurePosixPath(name.replace("\\", "/"))
    return f"{path.stem}.{target}{path.suffix}"
