"""Fields come as JSON or as forms."""

import asyncio
import json

import pytest
from fastapi import Request
from starlette.exceptions import HTTPException

from modeling_gtransformer.server.protocol import (
    FileFields,
    TranslateFields,
    Upload,
    read_fields,
)


def read(kind, body, content_type):
    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {"type": "http", "method": "POST", "query_string": b"", "app": None}
    scope["headers"] = [(b"content-type", content_type.encode())]
    return asyncio.run(read_fields(Request(scope, receive), kind, lambda fields: None))


def test_json_whatever_it_is_called():
    body = json.dumps({"q": ["a", "b"], "target": "de", "unknown": 1}).encode()
    for content_type in ("application/json", "application/json; charset=utf-8", "", "text/plain"):
        fields = read(TranslateFields, body, content_type)
        assert (fields.q, fields.source, fields.target, fields.format) == (["a", "b"], "auto", "de", "text")


def test_a_form_that_is_not_encoded():
    """As curl sends it."""
    form = "q=José & Zoë".replace(" & ", "&q=").encode()
    assert read(TranslateFields, form, "application/x-www-form-urlencoded").q == ["José", "Zoë"]


def test_files_of_forms():
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nthe cat\r\n--x--\r\n'
    for kind in ("multipart/form-data", "Multipart/Form-Data"):
        assert read(FileFields, body, f"{kind}; boundary=x").file == Upload("a.txt", b"the cat")


@pytest.mark.parametrize(
    "body, content_type",
    [
        (b"--y", "multipart/form-data; boundary=x"),
        (b"", "multipart/form-data"),
        (b"", "application/json"),
        (b"\xff", "application/json"),
        (b"1" * 5000, "application/json"),
        ("q=a&" * 3000, "application/x-www-form-urlencoded"),
    ],
    ids=["no form", "no boundary", "nothing", "not UTF-8", "a long number", "many fields"],
)
def test_what_cannot_be_read(body, content_type):
    with pytest.raises(HTTPException) as error:
        read(TranslateFields, body if isinstance(body, bytes) else body.encode(), content_type)
    assert error.value.status_code == 400


def test_only_the_first_problem_of_a_list_is_looked_for():
    with pytest.raises(HTTPException) as error:
        read(TranslateFields, json.dumps({"q": [1] * 1000}).encode(), "application/json")
    assert error.value.__cause__.error_count() == 2  # it is no text, and no list of texts


def test_an_unpaired_surrogate_is_refused():
    with pytest.raises(HTTPException, match="unpaired surrogate"):
        read(TranslateFields, b'{"q": ["a", "\\ud800"]}', "application/json")
    assert read(TranslateFields, b'{"q": "\\ud83d\\ude00"}', "application/json").q == "\U0001f600"
