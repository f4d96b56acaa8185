"""The routes of a server: LibreTranslate's protocol, and documents with sentences."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from ..files import EXTENSIONS
from ..runtime.translator import as_its_source
from . import protocol
from .api_error import as_http_error
from .document_files import content_of, translated_name
from .protocol import DetectFields, DocumentFields, FileFields, TranslateFields, in_openapi, read_fields
from .request_languages import Pair, name_of
from .service import Service


FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": protocol.Failure} for status in (400, 403, 408, 413, 429, 500, 501, 503, 504)
}
# Milliseconds that a page waits after a keystroke.
FRONTEND_TIMEOUT = 1000


def make_router(service: Service) -> APIRouter:
    router = APIRouter(responses=FAILURES)
    add_translation(router, service)
    add_files(router, service)
    add_documents(router, service)
    add_information(router, service)
    return router


def add_translation(router: APIRouter, service: Service) -> None:
    @router.post("/translate", response_model_exclude_none=True, openapi_extra=in_openapi(TranslateFields))
    async def translate(request: Request) -> protocol.Translation:
        """Translates a text, or a list of texts."""
        fields = await read_fields(request, TranslateFields, service.check)
        single = isinstance(fields.q, str)
        texts = [fields.q] if isinstance(fields.q, str) else fields.q
        is_document = not single and fields.format == "text" and service.options.lists == "document"
        documents = [texts] if is_document else texts
        number = 0 if is_document or fields.format == "html" else fields.alternatives
        pair, results = await service.translate(request, fields, documents, fields.format, alternatives=number)
        if is_document:
            translated = as_its_source(texts, results[0])
        else:
            translated = [result["translation_text"] for result in results]
        others = [result.get("alternatives", []) for result in (results * len(texts) if is_document else results)]
        answer = protocol.Translation(
            translatedText=translated[0] if single else translated,
            alternatives=(others[0] if single else others) if fields.alternatives else None,
            warnings=[warning for result in results for warning in result["warnings"]] or None,
        )
        if pair.confidence is not None:
            detection = protocol.Detection(language=pair.source, confidence=pair.confidence)
            answer.detectedLanguage = detection if single else [detection] * len(texts)
        return answer

    @router.post("/detect", openapi_extra=in_openapi(DetectFields))
    async def detect(request: Request) -> list[protocol.Detection]:
        """Lists possible languages of a text, most probable first."""
        fields = await read_fields(request, DetectFields, service.check)
        detected = service.languages.detect(fields.q)
        return [protocol.Detection(language=language, confidence=confidence) for language, confidence in detected]


def add_files(router: APIRouter, service: Service) -> None:
    @router.post("/translate_file", response_model_exclude_none=True, openapi_extra=in_openapi(FileFields))
    async def translate_file(request: Request) -> protocol.TranslatedFileUrl:
        """Translates a file in its format, and returns the address of the result."""
        fields = await read_fields(request, FileFields, service.check)
        content, format = content_of(*fields.file)
        pair, [result] = await service.translate(request, fields, [content], format)
        text = result["translation_text"]
        name = translated_name(fields.file.name, pair.target)
        token = service.files.add(name, text.encode("utf-8") if isinstance(text, str) else text)
        url = request.url_for("download_file", token=token, name=quote(name, safe=""))
        return protocol.TranslatedFileUrl(translatedFileUrl=str(url), warnings=result["warnings"] or None)

    @router.get("/download_file/{token}/{name}", response_class=Response)
    async def download_file(token: str, name: str) -> Response:
        """Returns a translated file."""
        file = service.files.get(token)
        if file is None:
            raise HTTPException(404, "The file is unknown or has expired: translate it again.")
        name, content = file
        headers = {
            # Browsers must not show files as pages of this server.
            "Content-Disposition": f"attachment; filename*=utf-8''{quote(name, safe='')}",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(content, media_type="application/octet-stream", headers=headers)


def add_documents(router: APIRouter, service: Service) -> None:
    @router.post("/documents", openapi_extra=in_openapi(DocumentFields))
    async def documents(request: Request) -> protocol.Document:
        """Translates a document, and returns its sentences with confidence."""
        fields = await read_fields(request, DocumentFields, service.check)
        return as_document(
            *await service.translate(request, fields, [fields.document], fields.format, confidence=fields.confidence)
        )

    @router.post("/documents/stream", response_class=StreamingResponse, openapi_extra=in_openapi(DocumentFields))
    async def stream(request: Request) -> StreamingResponse:
        """Streams events: each `sentence` as soon as it is final, then the `document` or an `error`."""
        fields = await read_fields(request, DocumentFields, service.check)
        sentences, task = service.start(request, fields, fields.document, fields.format, confidence=fields.confidence)
        try:
            first = await sentences.get()
        except asyncio.CancelledError:
            task.cancel()
            raise
        if first is None:
            await task  # an error can still set the status
        events = server_sent_events(first, sentences, task)
        return StreamingResponse(events, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


def as_document(pair: Pair, results: list[dict[str, Any]]) -> protocol.Document:
    return protocol.Document(**results[0], source=pair.source, target=pair.target)


async def server_sent_events(
    sentence: dict[str, str] | None,
    sentences: "asyncio.Queue[dict[str, str] | None]",
    task: "asyncio.Future[tuple[Pair, list[dict[str, Any]]]]",
) -> AsyncIterator[str]:
    """Yields the sentences up to `None`, then the document. Cancels the task if closed early."""
    try:
        while sentence is not None:
            yield _event("sentence", sentence)
            sentence = await sentences.get()
        try:
            yield _event("document", as_document(*await task).model_dump())
        except Exception as error:
            yield _event("error", {"error": as_http_error(error).detail})
    finally:
        task.cancel()


def _event(kind: str, data: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


def add_information(router: APIRouter, service: Service) -> None:
    @router.get("/languages")
    async def languages() -> list[protocol.Language]:
        """Lists the languages with their target languages."""
        return [protocol.Language(**language) for language in service.languages.listed()]

    @router.get("/frontend/settings")
    async def frontend_settings() -> dict[str, Any]:
        """Returns the settings of the server for web pages."""
        own = {"source": service.languages.own_source, "target": service.languages.own_target}
        return {
            "apiKeys": service.keys.required,
            "keyRequired": service.keys.required,
            "charLimit": service.options.max_characters,
            "frontendTimeout": FRONTEND_TIMEOUT,
            "suggestions": False,
            "filesTranslation": True,
            "supportedFilesFormat": [*EXTENSIONS],
            "language": {side: {"code": code, "name": name_of(code)} for side, code in own.items()},
        }

    @router.get("/health")
    async def health() -> dict[str, str]:
        """Answers 200 while the server translates."""
        if not service.scheduler.is_alive:
            raise HTTPException(503, "The server has stopped translating: restart it.")
        return {"status": "ok"}

    @router.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Returns metrics for Prometheus."""
        return Response(service.monitor.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
