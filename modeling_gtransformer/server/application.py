"""The ASGI application of a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException

from ..hub import __version__
from ..runtime.translator import Translator
from .api_error import AnsweredErrors, error_response
from .monitoring import Monitoring
from .options import ServerOptions
from .request_limits import BoundedRequests
from .routes import make_router
from .service import Service


def make_application(translator: Translator, options: ServerOptions) -> FastAPI:
    """
    Makes the application that serves a translator, and loads the model. Shutdown waits for started requests.

    Raises:
        UsageError: the model or an option is unusable.
    """
    service = Service(translator, options)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.scheduler.start()
        yield
        await asyncio.to_thread(service.scheduler.close)

    app = FastAPI(
        title="Document translation",
        description="Translates texts, files and documents, one target sentence per source sentence.",
        version=__version__,
        lifespan=lifespan,
    )
    app.state.service = service
    app.include_router(make_router(service))
    app.add_exception_handler(HTTPException, error_response)
    app.add_middleware(AnsweredErrors)
    # The last middleware is outermost, so that CORS headers are also added to errors of earlier middleware.
    app.add_middleware(BoundedRequests, options=options)
    if options.allow_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=options.allow_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["Retry-After"],
        )
    app.add_middleware(Monitoring, monitor=service.monitor)
    app.state.close_page = None
    if options.page and find_spec("gradio") is not None:
        from .page import mount_page

        app.state.close_page = mount_page(app, service)
    return app
