"""Metrics of a server for Prometheus: requests, waiting requests, tokens and batches."""

import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Monitor:
    """The metrics of one server. They contain no text of requests."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        names: dict[str, Any] = {"namespace": "gtransformer", "registry": self.registry}
        self.requests = Counter("requests", "Requests.", ["route", "status"], **names)
        self.seconds = Histogram("request_seconds", "Seconds per request.", ["route"], buckets=SECONDS, **names)
        self.waiting = Gauge("waiting_requests", "Requests in the queue or in translation.", **names)
        self.tokens = Counter("source_tokens", "Translated source tokens.", **names)
        self.batches = Histogram("batch_requests", "Requests per shared batch.", buckets=BATCHES, **names)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class Monitoring:
    """ASGI middleware that counts requests by route and status. Disconnected clients count as status 499."""

    def __init__(self, app: Any, monitor: Monitor):
        self.app, self.monitor = app, monitor

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, begun = 499, time.monotonic()

        async def watch(message: dict[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watch)
        finally:
            # All unknown paths share a label, so that clients cannot create labels.
            route = getattr(scope.get("route"), "path", "other")
            self.monitor.requests.labels(route, status).inc()
            self.monitor.seconds.labels(route).observe(time.monotonic() - begun)
