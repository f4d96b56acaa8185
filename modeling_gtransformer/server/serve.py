"""The command `gtransformer-serve`: a model over HTTP."""

import argparse
import os
import sys
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from ..cli.errors import run
from ..cli.translator_options import add_translator_options, check_translator_options, translator_of
from ..hub import __version__
from ..usage_error import UsageError
from .server_settings import Limits, ServerSettings


PROGRAM = "gtransformer-serve"
DESCRIPTION = """Translate over HTTP: `gtransformer-serve --model PATH`.

examples:
  gtransformer-serve --model Helsinki-NLP/opus-mt-en-de
  gtransformer-serve --model facebook/nllb-200-distilled-600M --precision int8 --host 0.0.0.0 --api_keys keys.txt
  curl http://127.0.0.1:5000/translate -d q='The cat sleeps.' -d source=en -d target=de

The routes are those that clients of LibreTranslate use, and /documents; /docs describes them. Nothing of a request is
logged. Requests that wait share batches. The server ends with SIGTERM or Ctrl-C, when what has begun is done.
"""
SETTINGS = get_type_hints(ServerSettings)
# Shapes of batches for which a CPU keeps compiled kernels. The default of 1024 lets memory grow for hours.
COMPILED_SHAPES = "64"


def argument_parser() -> argparse.ArgumentParser:
    """The parser of the command's arguments."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_translator_options(parser)
    parser.set_defaults(splitter="sentencex")
    parser.add_argument("--host", default="127.0.0.1", help="Address to listen on; 0.0.0.0: all addresses.")
    parser.add_argument("--port", type=int, default=5000, help="Port to listen on.")
    parser.add_argument("--api_keys", metavar="FILE", help="File of API keys, one a line; default: none is needed.")
    parser.add_argument(
        "--allow_origins",
        nargs="+",
        default=(),
        metavar="ORIGIN",
        help="Addresses of pages whose scripts may use the server, e.g. https://example.org; an asterisk: all.",
    )
    parser.add_argument(
        "--lists",
        choices=get_args(SETTINGS["lists"]),
        default=ServerSettings.lists,
        help="What a list of texts is: texts that have nothing to do with each other, or the sentences of a document.",
    )
    for limit in fields(Limits):
        kind = get_type_hints(Limits)[limit.name]
        text = f"{limit.metadata['help'].removesuffix('.')}; default: {limit.default:,}."
        parser.add_argument(f"--{limit.name}", type=kind, default=limit.default, help=text)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    """The arguments; the process ends with status 2 if a number is out of its range."""
    parser = argument_parser()
    args = parser.parse_args(argv)
    check_translator_options(parser, args)
    if not 1 <= args.port <= 65535:
        parser.error(f"--port must be between 1 and 65535, not {args.port}.")
    for limit in fields(Limits):
        if not getattr(args, limit.name) > 0:  # which nan is not, either
            parser.error(f"--{limit.name} must be greater than 0, not {getattr(args, limit.name)}.")
    return args


def make_server(args: argparse.Namespace) -> Any:
    """
    The server of uvicorn for a command line, with its model.

    Raises:
        UsageError: says in a sentence what is missing, or why the model or a setting cannot be used.
    """
    try:
        import python_multipart  # noqa: F401 (what reads forms)
        import uvicorn

        from .application import make_application
    except ModuleNotFoundError as error:
        raise UsageError(f"A server needs {error.name}: pip install 'gtransformer-hf[files,serve]'") from error
    limits = Limits(**{limit.name: getattr(args, limit.name) for limit in fields(Limits)})
    settings = ServerSettings(limits, args.api_keys, tuple(args.allow_origins), args.lists)
    app = make_application(translator_of(args), settings)
    # A line per request would tell who asks for what.
    return uvicorn.Server(
        uvicorn.Config(app, host=args.host, port=args.port, access_log=False, log_level="warning", lifespan="on")
    )


def serve(args: argparse.Namespace) -> None:
    """Serves until the process is told to end."""
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # oneDNN reads them with its first kernel
        os.environ.setdefault(name, COMPILED_SHAPES)
    server = make_server(args)
    print(f"{PROGRAM}: http://{args.host}:{args.port}, described at /docs", file=sys.stderr)
    server.run()


def main(argv: list[str] | None = None) -> int:
    """Runs the command, and returns its exit status."""
    return run(PROGRAM, lambda: serve(parse_arguments(argv)))


if __name__ == "__main__":
    sys.exit(main())
