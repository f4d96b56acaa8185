"""Serves a model over HTTP."""

import math
import os
import sys
from typing import Any

from ..runtime.usage_error import UsageError
from .options import ServerOptions


# Number of batch shapes with cached kernels on a CPU. With the default of 1024, memory grows for hours.
COMPILED_SHAPES = "64"


def serve(options: ServerOptions) -> None:
    """
    Serve a model over HTTP with LibreTranslate's protocol. Stops on SIGTERM or SIGINT, after started requests.
    The server does not log requests.

    gtransformer serve --model Helsinki-NLP/opus-mt-en-de

    curl http://127.0.0.1:5000/translate -d q="The cat sleeps." -d source=en -d target=de

    Raises:
        UsageError: a package is missing, or the model or an option is unusable.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # read by oneDNN at its first kernel
        os.environ.setdefault(name, COMPILED_SHAPES)
    server = make_server(options)
    print(f"Serving at http://{options.host}:{options.port}, API documentation at /docs", file=sys.stderr)
    if options.page and not server.config.app.state.close_page:
        print("The page at / needs gradio: pip install 'gtransformer-hf[page]'.", file=sys.stderr)
    server.run()


def make_server(options: ServerOptions) -> Any:
    """Makes the server of [`serve`], and loads its model."""
    try:
        import python_multipart  # noqa: F401 (parses forms)
        import torch
        import uvicorn

        from .application import make_application
    except ModuleNotFoundError as error:
        raise UsageError(f"A server needs {error.name}: pip install 'gtransformer-hf[files,serve]'") from error
    # This thread does not translate. OpenMP would keep its helpers beside those of the translating thread, and when
    # they outnumber the cores, translation is slower.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        app = make_application(options.translator(), options)
    finally:
        torch.set_num_threads(threads)

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: Any = None) -> None:
            if app.state.close_page:
                app.state.close_page()
            await super().shutdown(sockets)

    # An access log would record addresses and paths of clients.
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        access_log=False,
        log_level="warning",
        lifespan="on",
        timeout_graceful_shutdown=math.ceil(options.max_seconds + options.read_seconds),
    )
    return Server(config)
