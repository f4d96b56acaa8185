"""Fields of requests (JSON, forms or query strings) and of responses."""

import json
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import BaseModel, Field, ValidationError, WithJsonSchema
from starlette.datastructures import MutableHeaders, UploadFile
from starlette.exceptions import HTTPException


FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
# Maximum number of fields in a form; every text of a list is a field.
MAX_FIELDS = 2000
# Maximum number of alternatives; the search needs one beam more.
MAX_ALTERNATIVES = 9
# Source code that requests language detection.
AUTO = "auto"


# Stops at the first invalid item of a list.
Texts = Annotated[list[str], Field(fail_fast=True)]


class Upload(NamedTuple):
    """A file in a form."""

    name: str
    content: bytes


class Fields(BaseModel):
    """Fields of every request."""

    api_key: str | None = Field(default=None, description="API key, if the server requires one.")


class DetectFields(Fields):
    q: str = Field(description="Text for language detection.")


class PairFields(Fields):
    source: str = Field(default=AUTO, description="Code of the source language, or `auto`.")
    target: str | None = Field(default=None, description="Code of the target language; default: the model's.")


class TranslateFields(PairFields):
    q: str | Texts = Field(description="Text to translate, or a list of texts.")
    format: str = Field(default="text", description="`text` or `html`.", pattern="^(text|html)$")
    alternatives: int = Field(
        default=0, ge=0, le=MAX_ALTERNATIVES, description="Maximum number of other translations; none with `html`."
    )


class DocumentFields(PairFields):
    document: str | Texts = Field(description="A text, or a list of sentences.")
    format: str = Field(default="text", description="`text`, or another text-based format.")
    confidence: bool = Field(default=True, description="Whether to return the confidence of sentences.")


class FileFields(PairFields):
    file: Annotated[Upload, WithJsonSchema({"type": "string", "format": "binary"})] = Field(
        description="File to translate."
    )


class Failure(BaseModel):
    error: str


class Language(BaseModel):
    code: str
    name: str
    targets: list[str] = Field(description="Codes of its target languages.")


class Detection(BaseModel):
    confidence: float = Field(description="In percent; 100 if the server has one language.")
    language: str


class Translation(BaseModel):
    translatedText: str | list[str]
    detectedLanguage: Detection | list[Detection] | None = None
    alternatives: list[str] | list[list[str]] | None = None
    warnings: list[str] | None = Field(default=None, description="Warnings, for example of missing placeholders.")


class TranslatedFileUrl(BaseModel):
    translatedFileUrl: str
    warnings: list[str] | None = None


class Sentence(BaseModel):
    source_text: str
    translation_text: str
    confidence: float | None = Field(default=None, description="Mean log-probability of its tokens, in nats.")


class Document(BaseModel):
    translation_text: str
    sentences: list[Sentence]
    segments: list[int] = Field(
        description="Number of sentences in each segment that the model translated as one input."
    )
    source: str = Field(description="Code of the source language.")
    target: str = Field(description="Code of the target language.")
    warnings: list[str]


Kind = TypeVar("Kind", bound=Fields)


async def read_fields(request: Request, kind: type[Kind], check: Callable[[dict[str, Any]], None]) -> Kind:
    """
    Reads the fields of a request.

    Args:
        check: raises an `HTTPException` to reject raw fields before validation.

    Raises:
        HTTPException: fields of this kind are missing or invalid.
    """
    headers = MutableHeaders(scope=request.scope)
    media_type, semicolon, parameters = headers.get("content-type", "").partition(";")
    if media_type.lower().startswith(FORMS):
        # python-multipart before 0.0.33 matches only lower-case media types.
        headers["content-type"] = media_type.lower() + semicolon + parameters
        read = _read_form if media_type.lower().startswith(FORMS[1]) else _read_urlencoded
        raw = await read(Request(request.scope, request.receive))
    elif request.query_params and not media_type:  # deep-translator
        raw = _by_name(request.query_params.multi_items())
    else:
        raw = await _read_json(request)
    check(raw)
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        raise HTTPException(400, f"{first['loc'][0]}: {first['msg']}") from error


async def _read_form(request: Request) -> dict[str, Any]:
    async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
        return _by_name(
            [
                (name, Upload(value.filename or "", await value.read()) if isinstance(value, UploadFile) else value)
                for name, value in form.multi_items()
            ]
        )


async def _read_urlencoded(request: Request) -> dict[str, Any]:
    """Reads a form in UTF-8, also without percent encoding, as `curl -d` sends it."""
    text = (await request.body()).decode("utf-8", "replace")
    try:
        return _by_name(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except ValueError as error:
        raise HTTPException(400, f"The form is invalid: {error}.") from error


def _by_name(items: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, list[Any]] = {}
    for name, value in items:
        values.setdefault(name, []).append(value)
    return {name: value if len(value) > 1 else value[0] for name, value in values.items()}


async def _read_json(request: Request) -> dict[str, Any]:
    try:
        fields = json.loads(await request.body())
        json.dumps(fields, ensure_ascii=False).encode("utf-8")  # responses quote fields
    except RecursionError as error:
        raise HTTPException(400, "The request is nested too deeply.") from error
    except UnicodeEncodeError as error:
        raise HTTPException(400, "The request has an unpaired surrogate.") from error
    except ValueError as error:
        raise HTTPException(400, f"The request is neither a form nor JSON: {error}") from error
    if not isinstance(fields, dict):
        raise HTTPException(400, "The request must be a JSON object.")
    return fields


def in_openapi(kind: type[Fields]) -> dict[str, Any]:
    """Describes a request of this kind for OpenAPI."""
    types = ["application/json", FORMS[0]] if kind is not FileFields else [FORMS[1]]
    content = {each: {"schema": kind.model_json_schema()} for each in types}
    return {"requestBody": {"required": True, "content": content}}
