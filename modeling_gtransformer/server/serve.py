"""Serves a model over HTTP."""

import argparse
import os
import sys
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from ..cli.errors import run
from ..files import read_glossary
from ..hub import __version__
from ..translation_options import TranslationOptions
from ..translator import SMALL_MODEL, Translator
from ..usage_error import UsageError, user_message
from .options import ServerOptions


# Shapes of batches for which a CPU keeps compiled kernels. The default of 1024 lets memory grow for hours.
COMPILED_SHAPES = "64"


def serve(options: ServerOptions) -> None:
    """
    Serves until SIGTERM or SIGINT, and finishes the requests that have begun.

    Raises:
        UsageError: a package is missing, or the model or an option cannot be used.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # oneDNN reads them with its first kernel
        os.environ.setdefault(name, COMPILED_SHAPES)
    server = make_server(options)
    print(f"Serving at http://{options.host}:{options.port}, described at /docs", file=sys.stderr)
    server.run()


def make_server(options: ServerOptions) -> Any:
    """Makes the server of uvicorn, with its model; the errors are those of [`serve`]."""
    try:
        import python_multipart  # noqa: F401 (what reads forms)
        import uvicorn

        from .application import make_application
    except ModuleNotFoundError as error:
        raise UsageError(f"A server needs {error.name}: pip install 'gtransformer-hf[files,serve]'") from error
    app = make_application(make_translator(options), options)
    # A line per request would tell who asks for what.
    return uvicorn.Server(
        uvicorn.Config(app, host=options.host, port=options.port, access_log=False, log_level="warning", lifespan="on")
    )


def make_translator(options: ServerOptions) -> Translator:
    """Makes the translator, which has not yet loaded its model."""
    names = {each.name for each in fields(TranslationOptions)}
    given = {name: value for name, value in options.given.items() if name in names}
    if options.glossary:
        try:
            given["glossary"] = read_glossary(options.glossary)
        except (OSError, ValueError) as error:
            raise UsageError(f"The glossary {options.glossary} cannot be used: {user_message(error)}") from error
    return Translator(options.model or str(SMALL_MODEL), precision=options.precision, **given)


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gtransformer-serve", description=serve.__doc__)
    hints = get_type_hints(ServerOptions)
    for each in fields(ServerOptions):
        kinds = [kind for kind in get_args(hints[each.name]) or (hints[each.name],) if kind is not type(None)]
        arguments: dict[str, Any] = {"default": each.default, "help": each.metadata["help"]}
        choices = [choice for kind in kinds for choice in get_args(kind)] or kinds
        if each.name == "allow_origins":
            arguments["nargs"] = "+"
        elif kinds == [bool]:
            arguments["action"] = argparse.BooleanOptionalAction
        elif all(isinstance(choice, str) for choice in choices):
            arguments["choices"] = choices
        elif kinds[0] in (int, float):
            arguments["type"] = kinds[0]
        parser.add_argument(f"--{each.name}", **arguments)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


def parse_arguments(argv: list[str] | None = None) -> ServerOptions:
    parser = argument_parser()
    try:
        return ServerOptions(**vars(parser.parse_args(argv)))
    except ValueError as error:
        parser.error(f"--{error}")


def main(argv: list[str] | None = None) -> int:
    """Runs the command, and returns its exit status."""
    return run("gtransformer-serve", lambda: serve(parse_arguments(argv)))


if __name__ == "__main__":
    sys.exit(main())
