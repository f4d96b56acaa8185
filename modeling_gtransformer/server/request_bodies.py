"""Reads bodies of requests within limits, and stops the requests of clients that disconnect."""

import asyncio
from typing import Any

from .api_error import ApiError, send_error
from .client_limit import ClientLimit
from .server_settings import Limits


class ClientGone(Exception):
    """The client closed its connection before its request arrived."""


class BoundedRequests:
    """
    ASGI middleware that reads the body of a request, at most `limits.max_bytes` within `limits.read_seconds`, before
    the application sees it. While the application works, it watches the client, and cancels the application if the
    client disconnects.

    It accepts twice as many requests with a body as may wait, so that their memory is bounded, and from one address at
    most twice as many at a time as a client may have under way, so that slow clients do not keep others out.
    """

    def __init__(self, app: Any, limits: Limits):
        self.app, self.limits = app, limits
        self.open = 0
        self.clients = ClientLimit(2 * limits.max_per_client)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] == "GET":
            await self.app(scope, receive, send)
            return
        address, _ = scope.get("client") or ("", 0)
        self.open += 1
        try:
            with self.clients.request(address):
                body = await self._read(scope, receive)
            await self._answer(scope, receive, send, body)
        except ApiError as error:
            await send_error(send, error)
        except ClientGone:
            pass
        finally:
            self.open -= 1

    async def _answer(self, scope: Any, receive: Any, send: Any, body: bytes) -> None:
        gone = asyncio.ensure_future(_disconnect(receive))
        app = asyncio.ensure_future(self.app(scope, _replay(body, gone), send))
        try:
            await asyncio.wait({app, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (app, gone):
                task.cancel()
            # The error has already been answered and logged.
            await asyncio.gather(app, gone, return_exceptions=True)

    async def _read(self, scope: Any, receive: Any) -> bytes:
        """
        Reads the body of a request within the limits of size, time and number.

        Raises:
            ApiError: the body is too large, which may be known before it is read, or comes too slowly, or there are
                too many.
            ClientGone: there will be no more of it.
        """
        if self.open > 2 * self.limits.max_waiting:
            raise ApiError(503, "The server is busy: try again later.", retry_after=1)
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self.limits.max_bytes:
            raise self._too_large()
        try:
            return await asyncio.wait_for(self._join(receive), self.limits.read_seconds)
        except asyncio.TimeoutError as error:
            raise ApiError(408, f"The request was not there after {self.limits.read_seconds:g} seconds.") from error

    async def _join(self, receive: Any) -> bytes:
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.limits.max_bytes:
                raise self._too_large()
        return bytes(body)

    def _too_large(self) -> ApiError:
        return ApiError(413, f"The request is too large: at most {self.limits.max_bytes:,} bytes.")


async def _disconnect(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _replay(body: bytes, gone: "asyncio.Future[None]") -> Any:
    """Messages that an application receives: the body that was read, and then the disconnection of the client."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        message = next(messages, None)
        if message is None:
            await asyncio.wait({gone})
            return {"type": "http.disconnect"}
        return message

    return receive
