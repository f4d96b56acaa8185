"""Serves a model over HTTP."""

import os
import sys
from typing import Any

from ..runtime.usage_error import UsageError
from .options import ServerOptions


# Shapes of batches for which a CPU keeps compiled kernels. The default of 1024 lets memory grow for hours.
COMPILED_SHAPES = "64"


def serve(options: ServerOptions) -> None:
    """
    Answers requests over HTTP, in the protocol of LibreTranslate's clients, until SIGTERM or SIGINT, and then finishes
    those that have begun. Nothing of a request is logged.

    gtransformer serve --model Helsinki-NLP/opus-mt-en-de

    curl http://127.0.0.1:5000/translate -d q="The cat sleeps." -d source=en -d target=de

    Raises:
        UsageError: a package is missing, or the model or an option cannot be used.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # oneDNN reads them with its first kernel
        os.environ.setdefault(name, COMPILED_SHAPES)
    server = make_server(options)
    print(f"Serving at http://{options.host}:{options.port}, described at /docs", file=sys.stderr)
    if options.page and not server.config.app.state.close_page:
        print("No page is shown at /: it needs pip install 'gtransformer-hf[page]'.", file=sys.stderr)
    server.run()


def make_server(options: ServerOptions) -> Any:
    """Makes the server of uvicorn, with its model; the errors are those of [`serve`]."""
    try:
        import python_multipart  # noqa: F401 (what reads forms)
        import uvicorn

        from .application import make_application
    except ModuleNotFoundError as error:
        raise UsageError(f"A server needs {error.name}: pip install 'gtransformer-hf[files,serve]'") from error
    app = make_application(options.translator(), options)

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: Any = None) -> None:
            if app.state.close_page:
                app.state.close_page()
            await super().shutdown(sockets)

    # A line per request would tell who asks for what.
    return Server(
        uvicorn.Config(app, host=options.host, port=options.port, access_log=False, log_level="warning", lifespan="on")
    )
