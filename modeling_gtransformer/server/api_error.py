"""Errors of requests as responses: a status, and `{"error": "..."}`."""

import logging
import traceback
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ..runtime.usage_error import user_message


# The log of the server.
logger = logging.getLogger("uvicorn.error")


def as_http_error(error: BaseException) -> HTTPException:
    """
    Maps an error to a status and a message. Clients get the messages of value errors, but not of unexpected errors,
    which may contain paths of the server.
    """
    if isinstance(error, HTTPException):
        return error
    if isinstance(error, ImportError | ValueError):
        return HTTPException(501 if isinstance(error, ImportError) else 400, user_message(error))
    return unforeseen(error)


def unforeseen(error: BaseException) -> HTTPException:
    """Logs an unexpected error, and returns its status. The log omits the message, which may quote the request."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error(f"{type(error).__name__} in a request:\n{frames}")
    return HTTPException(500, "An unexpected error occurred on the server: try again, or try another text.")


class AnsweredErrors:
    """ASGI middleware that turns exceptions of the application into error responses."""

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
            # After the start of the response, only the log can report the error.
            answer = unforeseen(error) if started else as_http_error(error)
            if scope["type"] == "http" and not started:
                await error_response(Request(scope), answer)(scope, receive, send)


def error_response(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)
