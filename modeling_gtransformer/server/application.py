"""The ASGI application of a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from ..hub import __version__
from ..translator import Translator
from .api_error import add_error_handlers
from .monitoring import Monitoring
from .request_bodies import BoundedRequests
from .routes import make_router
from .server_settings import ServerSettings
from .service import Service
from .translated_files import TranslatedFiles


# Seconds between two searches for files that have been kept long enough.
TIDYING = 60.0


def make_application(translator: Translator, settings: ServerSettings) -> FastAPI:
    """
    Makes the application that serves a translator, whose model is loaded here. It translates between its startup and
    its shutdown, which waits for what has begun.

    Raises:
        UsageError: says in a sentence why the model or a setting cannot be used.
    """
    service = Service(translator, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.queue.start()
        tidying = asyncio.ensure_future(tidy(service.files))
        yield
        tidying.cancel()
        await asyncio.to_thread(service.queue.close)

    app = FastAPI(
        title="Document translation",
        description="Translates texts, files and documents, one target sentence per source sentence.",
        version=__version__,
        lifespan=lifespan,
    )
    app.state.service = service
    app.include_router(make_router(service))
    add_error_handlers(app)
    # The last one is outermost, so that web pages can also read refusals by the others.
    app.add_middleware(BoundedRequests, limits=settings.limits)
    if settings.allow_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.allow_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["Retry-After"],
        )
    app.add_middleware(Monitoring, monitor=service.monitor)
    return app


async def tidy(files: TranslatedFiles) -> None:
    """Removes old files regularly, even if nobody asks for any."""
    while True:
        files.forget_old()
        await asyncio.sleep(TIDYING)
