"""Fields of requests, which may come as JSON or as a form."""

import json
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .api_error import ApiError
from .language_pairs import AUTO


FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
# Upper bound on the fields of a form; every text of a list is a field.
MAX_FIELDS = 2000


# In a long list without any text, only the first problem is reported.
Texts = Annotated[list[str], Field(fail_fast=True)]


class Fields(BaseModel):
    """Fields of every request; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")
    api_key: str | None = Field(default=None, description="API key, where the server needs one.")


class DetectFields(Fields):
    q: str = Field(description="Text whose language is to be detected.")


class PairFields(Fields):
    source: str = Field(default=AUTO, description="Code of the source language, or `auto`.")
    target: str | None = Field(default=None, description="Code of the target language; default: that of the model.")


class TranslateFields(PairFields):
    q: str | Texts = Field(description="Text to translate, or a list of texts.")
    format: str = Field(default="text", description="`text` or `html`.", pattern="^(text|html)$")
    alternatives: int = Field(default=0, ge=0, description="Accepted, and answered with an empty list.")


class DocumentFields(PairFields):
    document: str | Texts = Field(description="A text, or a list of sentences.")
    format: str = Field(default="text", description="`text`, or a format of files that are text.")
    confidence: bool = Field(default=True, description="Whether sentences get a confidence.")


class Upload(NamedTuple):
    """A file in a form."""

    name: str
    content: bytes


class FileFields(PairFields):
    file: Upload = Field(description="File to translate.")


Kind = TypeVar("Kind", bound=Fields)


async def read_fields(request: Request, kind: type[Kind], check: Callable[[dict[str, Any]], None]) -> Kind:
    """
    The fields of a request.

    Args:
        check: refuses fields that are not worth a closer look.

    Raises:
        ApiError: it has not the fields of this kind.
    """
    raw = await _raw(request)
    check(raw)
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"][:1])
        raise ApiError(400, f"{name}: {first['msg']}" if name else first["msg"]) from error


async def _raw(request: Request) -> dict[str, Any]:
    media_type, semicolon, parameters = request.headers.get("content-type", "").partition(";")
    if media_type.lower().startswith(FORMS):
        # Before 0.0.33, python-multipart matches the media type in lower case only.
        other = [header for header in request.scope["headers"] if header[0] != b"content-type"]
        lower = (media_type.lower() + semicolon + parameters).encode("latin-1")
        request = Request({**request.scope, "headers": [*other, (b"content-type", lower)]}, request.receive)
        async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
            values: dict[str, list[Any]] = {name: [] for name in form}
            for name, value in form.multi_items():
                if isinstance(value, str):
                    values[name].append(value)
                else:
                    values[name].append(Upload(value.filename or "", await value.read()))
        return {name: value if len(value) > 1 else value[0] for name, value in values.items()}
    try:
        fields = json.loads(await request.body())
        json.dumps(fields, ensure_ascii=False).encode("utf-8")  # as answers quote it
    except RecursionError as error:
        raise ApiError(400, "The request is nested too deeply.") from error
    except UnicodeEncodeError as error:
        raise ApiError(400, "The request has half of a character (a lone surrogate).") from error
    except ValueError as error:
        raise ApiError(400, f"The request is neither a form nor JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ApiError(400, "The request must be a JSON object.")
    return fields


def in_openapi(kind: type[Fields]) -> dict[str, Any]:
    """Describes a request of this kind."""
    schema = kind.model_json_schema()
    types = ["application/json", "application/x-www-form-urlencoded"]
    if issubclass(kind, FileFields):
        types = ["multipart/form-data"]
        schema.pop("$defs", None)
        schema["properties"]["file"] = {"type": "string", "format": "binary", "description": "File to translate."}
    return {"requestBody": {"required": True, "content": {each: {"schema": schema} for each in types}}}
