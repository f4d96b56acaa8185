"""Errors have a shape, and tell nothing of texts or folders."""

import asyncio

from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.exceptions import HTTPException

from modeling_gtransformer.server.api_error import AnsweredErrors, as_http_error


def test_errors_that_are_said():
    assert as_http_error(HTTPException(413, "too large")).status_code == 413
    assert as_http_error(ValueError("not\n  UTF-8")).detail == "not UTF-8"
    assert as_http_error(ImportError("needs lxml")).status_code == 501


def test_what_was_not_foreseen_is_logged_without_its_message(caplog):
    app = FastAPI()
    app.add_middleware(AnsweredErrors)

    @app.get("/")
    def fail():
        raise KeyError("the secret text")

    answer = TestClient(app).get("/")
    assert answer.status_code == 500 and "secret" not in answer.text and [*answer.json()] == ["error"]
    assert "KeyError in a request" in caplog.text and "in fail" in caplog.text
    assert "the secret text" not in caplog.text.replace('raise KeyError("the secret text")', "")


def test_an_answer_that_breaks_off_is_logged(caplog):
    """Its status is sent already, so that the client cannot be told."""

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError("the secret text")

    async def send(message):
        sent.append(message["type"])

    sent = []
    asyncio.run(AnsweredErrors(application)({"type": "http"}, None, send))
    assert sent == ["http.response.start"]
    assert "ValueError in a request" in caplog.text
