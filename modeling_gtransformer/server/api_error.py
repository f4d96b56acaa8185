"""HTTP errors: a status, and `{"error": "..."}`."""

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
    A rejected or failed request.

    Args:
        status: HTTP status code.
        message: one sentence with the problem or its solution.
        retry_after: seconds until the client should retry.
    """

    def __init__(self, status: int, message: str, retry_after: int | None = None):
        super().__init__(message)
        self.status, self.message = status, message
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}

    def response(self) -> JSONResponse:
        return JSONResponse({"error": self.message}, self.status, self.headers)


def as_api_error(error: BaseException) -> ApiError:
    """
    Maps an error to a response. Clients get the messages of value errors, but not of unexpected errors, which may
    contain paths of the server.
    """
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ImportError):
        return ApiError(501, user_message(error))
    if isinstance(error, ValueError):
        return ApiError(400, user_message(error))
    return unforeseen(error)


def unforeseen(error: BaseException) -> ApiError:
    """Logs an unexpected error, and returns its response. The log omits the message, which may quote the request."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error(f"{type(error).__name__} in a request:\n{frames}")
    return ApiError(500, "An unexpected error occurred on the server: try again, or try another text.")


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
            answer = unforeseen(error) if started else as_api_error(error)
            if scope["type"] == "http" and not started:
                await answer.response()(scope, receive, send)


def answer_of_router(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def add_error_handlers(app: FastAPI) -> None:
    """Adds JSON error responses for the application and its router."""
    app.add_exception_handler(HTTPException, answer_of_router)
    app.add_middleware(AnsweredErrors)
