"""The routes of a server: those of LibreTranslate, and documents with their sentences."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from ..files import EXTENSIONS
from ..translator import as_its_source
from . import answers
from .api_error import ApiError, as_api_error
from .language_pairs import AUTO, name_of
from .request_fields import (
    DetectFields,
    DocumentFields,
    FileFields,
    TranslateFields,
    in_openapi,
    read_fields,
)
from .service import Pair, Service, content_of, in_per_cent, translated_name


FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": answers.Failure} for status in (400, 403, 408, 413, 429, 500, 501, 503, 504)
}
# Milliseconds that a page should wait after a keystroke.
FRONTEND_TIMEOUT = 1000


def make_router(service: Service) -> APIRouter:
    """The routes of a service."""
    router = APIRouter(responses=FAILURES)
    add_translation(router, service)
    add_files(router, service)
    add_documents(router, service)
    add_information(router, service)
    return router


def add_translation(router: APIRouter, service: Service) -> None:
    @router.post("/translate", response_model_exclude_none=True, openapi_extra=in_openapi(TranslateFields))
    async def translate(request: Request) -> answers.Translation:
        """Translates a text, or a list of texts."""
        fields = await read_fields(request, TranslateFields, service.check)
        single = isinstance(fields.q, str)
        texts = [fields.q] if isinstance(fields.q, str) else fields.q
        pair = service.pair_of(fields, texts)
        is_document = not single and fields.format == "text" and service.settings.lists == "document"
        documents = [texts] if is_document else texts
        results, warnings = await service.translate(request, fields, pair, documents, fields.format)
        if is_document:
            translated = as_its_source(texts, results[0])
        else:
            translated = [result["translation_text"] for result in results]
        answer = answers.Translation(
            translatedText=translated[0] if single else translated,
            alternatives=[] if fields.alternatives else None,
            warnings=warnings or None,
        )
        if fields.source == AUTO:
            detection = answers.Detection(language=pair.source, confidence=pair.detected)
            answer.detectedLanguage = detection if single else [detection] * len(texts)
        return answer

    @router.post("/detect", response_model_exclude_none=True, openapi_extra=in_openapi(DetectFields))
    async def detect(request: Request) -> list[answers.Detection]:
        """Languages that a text may be written in, the most probable first."""
        fields = await read_fields(request, DetectFields, service.check)
        return [
            answers.Detection(language=language, confidence=in_per_cent(probability))
            for language, probability in service.detector.detect(fields.q)
        ]


def add_files(router: APIRouter, service: Service) -> None:
    @router.post("/translate_file", response_model_exclude_none=True, openapi_extra=in_openapi(FileFields))
    async def translate_file(request: Request) -> answers.TranslatedFileUrl:
        """Translates a file, which keeps its format, and gives the address of the result."""
        fields = await read_fields(request, FileFields, service.check)
        content, format = content_of(fields.file)
        pair = service.pair_of(fields, [content] if isinstance(content, str) else [])
        [result], warnings = await service.translate(request, fields, pair, [content], format)
        text = result["translation_text"]
        name = translated_name(fields.file.name, pair.target)
        token = service.files.add(name, text.encode("utf-8") if isinstance(text, str) else text)
        url = request.url_for("download_file", token=token, name=quote(name, safe=""))
        return answers.TranslatedFileUrl(translatedFileUrl=str(url), warnings=warnings or None)

    @router.get("/download_file/{token}/{name}", response_class=Response)
    async def download_file(token: str, name: str) -> Response:
        """A translated file."""
        file = service.files.get(token)
        if file is None:
            raise ApiError(404, "There is no such file, or it is no longer kept: translate it again.")
        headers = {
            # Never shown by a browser as a page of this server.
            "Content-Disposition": f"attachment; filename*=utf-8''{quote(file.name, safe='')}",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(file.content, media_type="application/octet-stream", headers=headers)


def add_documents(router: APIRouter, service: Service) -> None:
    async def fields_and_pair(request: Request) -> tuple[DocumentFields, Pair]:
        fields = await read_fields(request, DocumentFields, service.check)
        texts = [fields.document] if isinstance(fields.document, str) else fields.document
        return fields, service.pair_of(fields, texts)

    async def translated(
        request: Request,
        fields: DocumentFields,
        pair: Pair,
        on_sentence: Callable[[dict[str, str]], None] | None = None,
    ) -> answers.Document:
        [result], warnings = await service.translate(
            request, fields, pair, [fields.document], fields.format, fields.confidence, on_sentence
        )
        return answers.Document(**result, source=pair.source, target=pair.target, warnings=warnings)

    @router.post("/documents", openapi_extra=in_openapi(DocumentFields))
    async def documents(request: Request) -> answers.Document:
        """Translates a document, and gives its sentences with their confidence."""
        return await translated(request, *await fields_and_pair(request))

    @router.post("/documents/stream", response_class=StreamingResponse, openapi_extra=in_openapi(DocumentFields))
    async def stream(request: Request) -> StreamingResponse:
        """Server-sent events: a `sentence` as soon as it is certain, at the end the `document`, or an `error`."""
        fields, pair = await fields_and_pair(request)
        events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def on_sentence(sentence: dict[str, str]) -> None:
            loop.call_soon_threadsafe(events.put_nowait, ("sentence", sentence))

        async def work() -> None:
            try:
                document = await translated(request, fields, pair, on_sentence)
                events.put_nowait(("document", document.model_dump()))
            except Exception as error:
                events.put_nowait(("error", as_api_error(error)))

        task = asyncio.ensure_future(work())
        try:
            first = await events.get()
        except asyncio.CancelledError:
            await cancel(task)
            raise
        if isinstance(first[1], ApiError):  # nothing has been sent yet, so the status can still say it
            raise first[1]
        lines = server_sent_events(first, events, task)
        return StreamingResponse(lines, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


async def server_sent_events(
    first: tuple[str, Any], events: "asyncio.Queue[tuple[str, Any]]", task: "asyncio.Future[None]"
) -> AsyncIterator[str]:
    """Events as they are sent, to that of the whole document; closed early, it ends the task that makes them."""
    kind, data = first
    try:
        while True:
            data = {"error": data.message} if isinstance(data, ApiError) else data
            yield f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
            if kind != "sentence":
                return
            kind, data = await events.get()
    finally:
        await cancel(task)


async def cancel(task: "asyncio.Future[None]") -> None:
    """Ends a task, and waits for its end."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def add_information(router: APIRouter, service: Service) -> None:
    @router.get("/languages")
    async def languages() -> list[answers.Language]:
        """Languages that can be translated from, each with those that it can be translated into."""
        return [answers.Language(**language) for language in service.languages.listed()]

    @router.get("/frontend/settings")
    async def frontend_settings() -> answers.FrontendSettings:
        """What a page that uses the server must know."""
        source, target = service.languages.own_source, service.languages.own_target
        return answers.FrontendSettings(
            apiKeys=service.keys.required,
            keyRequired=service.keys.required,
            charLimit=service.settings.limits.max_characters,
            frontendTimeout=FRONTEND_TIMEOUT,
            suggestions=False,
            filesTranslation=True,
            supportedFilesFormat=[*EXTENSIONS],
            language=answers.LanguageChoices(
                source=answers.LanguageChoice(code=source, name=name_of(source)),
                target=answers.LanguageChoice(code=target, name=name_of(target)),
            ),
        )

    @router.get("/health")
    async def health() -> answers.Health:
        """Whether the server translates."""
        if not service.queue.is_alive:
            raise ApiError(503, "The server has stopped translating: start it again.")
        return answers.Health()

    @router.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Measurements for Prometheus."""
        return Response(service.monitor.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
