"""Limits on requests: API keys, number, size and time. A request ends when its client disconnects."""

import asyncio
import hashlib
import hmac
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from ..runtime.usage_error import UsageError, user_message
from .api_error import error_response
from .options import ServerOptions


# Headers of a refusal that a client may repeat a second later.
RETRY = {"Retry-After": "1"}


class ApiKeys:
    """
    Checks the keys of requests, in constant time.

    Args:
        file: file with one key per line, blank lines and comments (#); `None` admits requests without a key.

    Raises:
        UsageError: the file cannot be read, or has no keys.
    """

    def __init__(self, file: str | None):
        self.required = file is not None
        try:
            text = Path(file).read_text(encoding="utf-8-sig") if file else ""
        except (OSError, ValueError) as error:
            raise UsageError(f"The API keys {file} cannot be read: {user_message(error)}") from error
        lines = [line.strip() for line in text.splitlines()]
        self._digests = [_digest(line) for line in lines if line and not line.startswith("#")]
        if self.required and not self._digests:
            raise UsageError(f"The file {file} has no API keys: write one on each line.")

    def check(self, key: object) -> None:
        """Raises `HTTPException` for a missing or invalid key, if the server has keys."""
        if not self.required:
            return
        if not key or not isinstance(key, str):
            raise HTTPException(403, "This server requires an API key: send it as api_key.")
        if not self.is_valid(key):
            raise HTTPException(403, "The API key is invalid.")

    def is_valid(self, key: str) -> bool:
        # Compare all keys: any() alone would stop at a match.
        matches = [hmac.compare_digest(_digest(key), known) for known in self._digests]
        return any(matches)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


class ClientLimit:
    """Limits the concurrent requests of every client to `max_requests`."""

    def __init__(self, max_requests: int):
        self.max_requests = max_requests
        self.under_way: Counter[str] = Counter()

    @contextmanager
    def request(self, client: str) -> Iterator[None]:
        """Counts a request of a client in this context. Raises `HTTPException` at the limit."""
        if self.under_way[client] >= self.max_requests:
            message = f"You have {self.max_requests} concurrent requests: wait for one to finish."
            raise HTTPException(429, message, RETRY)
        self.under_way[client] += 1
        try:
            yield
        finally:
            self.under_way[client] -= 1
            self.under_way += Counter()  # drops clients without requests


def check_number(number: int, maximum: int, units: str) -> None:
    """Raises `HTTPException` if a request has more texts or characters than the maximum."""
    if number > maximum:
        raise HTTPException(413, f"The request has {number:,} {units}. The maximum is {maximum:,}.")


class BoundedRequests:
    """
    ASGI middleware that reads the body of a request, up to `max_bytes` within `read_seconds`, before it calls the
    application. It cancels the application if the client disconnects or does not read a part of the response within
    `read_seconds`.

    The maximum number of open requests with a body is `2 * max_waiting`, which bounds memory, and `2 * max_per_client`
    per address, so that slow clients cannot block other clients.
    """

    def __init__(self, app: Any, options: ServerOptions):
        self.app, self.options = app, options
        self.open = 0
        self.clients = ClientLimit(2 * options.max_per_client)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        lengths = (b"content-length", b"transfer-encoding")
        has_body = any(name in lengths and value != b"0" for name, value in scope.get("headers", ()))
        if scope["type"] != "http" or (scope["method"] == "GET" and not has_body):
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        address, _ = scope.get("client") or ("", 0)

        async def send_in_time(message: MutableMapping[str, Any]) -> None:
            """Fails if the client does not read a part of the response in time."""
            await asyncio.wait_for(send(message), self.options.read_seconds)

        self.open += 1
        try:
            with self.clients.request(address):
                body = await self._read(request)
            await self._answer(scope, receive, send_in_time, body)
            return
        except ClientDisconnect:
            return
        except HTTPException as error:
            refused = error
        finally:
            self.open -= 1
        await self._refuse(request, send_in_time, refused)

    async def _read(self, request: Request) -> bytes:
        """Reads a body. Raises `HTTPException` for a large, slow or surplus request, and `ClientDisconnect`."""
        if self.open > 2 * self.options.max_waiting:
            raise HTTPException(503, "The server is busy: try again later.", RETRY)
        announced = request.headers.get("content-length", "0")
        self._check_size(int(announced) if announced.isdecimal() else 0)
        try:
            return await asyncio.wait_for(self._join(request), self.options.read_seconds)
        except asyncio.TimeoutError as error:
            seconds = self.options.read_seconds
            raise HTTPException(408, f"The request did not arrive within {seconds:g} seconds.") from error

    async def _join(self, request: Request) -> bytes:
        body = bytearray()
        async for part in request.stream():
            body += part
            self._check_size(len(body))
        return bytes(body)

    def _check_size(self, size: int) -> None:
        if size > self.options.max_bytes:
            raise HTTPException(413, f"The request is too large. The maximum is {self.options.max_bytes:,} bytes.")

    async def _answer(self, scope: Any, receive: Any, send: Any, body: bytes) -> None:
        gone = asyncio.ensure_future(receive())  # only a disconnection follows a whole body
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Any:
            return messages.pop() if messages else await asyncio.shield(gone)

        app = asyncio.ensure_future(self.app(scope, replay, send))
        try:
            await asyncio.wait({app, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (app, gone):
                task.cancel()
            # The application has already answered and logged its error.
            await asyncio.gather(app, gone, return_exceptions=True)

    async def _refuse(self, request: Request, send: Any, error: HTTPException) -> None:
        """Rejects a request without calling the application. Drops the rest of the body before closing the connection,
        because a client that is still sending would lose the response."""

        async def send_open(message: MutableMapping[str, Any]) -> None:
            await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

        response = error_response(request, error)
        response.headers["Connection"] = "close"
        await response(request.scope, request.receive, send_open)
        # A RuntimeError means that the body was complete.
        with suppress(asyncio.TimeoutError, ClientDisconnect, RuntimeError):
            await asyncio.wait_for(_drain(request), self.options.read_seconds)
        await send({"type": "http.response.body"})


async def _drain(request: Request) -> None:
    async for _ in request.stream():
        pass
