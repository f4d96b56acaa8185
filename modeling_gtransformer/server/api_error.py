"""Errors as clients get them: a status, and `{"error": "..."}`."""

import logging
import traceback
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ..runtime.usage_error import user_message


# The log of the server.
logger = logging.getLogger("uvicorn.error")


class ApiError(Exception):
    """
    A refused or failed request.

    Args:
        status: HTTP status code.
        message: what is wrong, or what to do, in a sentence.
        retry_after: seconds after which the same request may succeed.
    """

    def __init__(self, status: int, message: str, retry_after: int | None = None):
        super().__init__(message)
        self.status, self.message = status, message
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}

    def response(self) -> JSONResponse:
        return JSONResponse({"error": self.message}, self.status, self.headers)


def as_api_error(error: BaseException) -> ApiError:
    """
    Returns the error of a request as clients get it. Wrong values are the client's. Of other errors clients get no
    details, as their messages may name folders of this machine; the log gets type and place, but not the message,
    which may contain text of the request.
    """
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ImportError):
        return ApiError(501, user_message(error))
    if isinstance(error, ValueError):
        return ApiError(400, user_message(error))
    return unforeseen(error)


def unforeseen(error: BaseException) -> ApiError:
    """Logs an error that is not the client's, and returns its answer."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error(f"{type(error).__name__} in a request:\n{frames}")
    return ApiError(500, "Something went wrong here: try again, or another text.")


class AnsweredErrors:
    """ASGI middleware that answers with an error if anything goes wrong in the application."""

    def __init__(self, app: Any):
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        started = False

        async def watch(message: dict[str, Any]) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, watch)
        except Exception as error:
            # After the start of an answer its status is sent already, so only the log can report the error.
            answer = unforeseen(error) if started else as_api_error(error)
            if scope["type"] == "http" and not started:
                await answer.response()(scope, receive, send)


def answer_of_router(request: Request, error: Exception) -> JSONResponse:
    """Answers a request that a router refuses."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def add_error_handlers(app: FastAPI) -> None:
    """Gives all errors of an application the same shape, including those of its router."""
    app.add_exception_handler(HTTPException, answer_of_router)
    app.add_middleware(AnsweredErrors)
