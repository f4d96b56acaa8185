"""Makes commands from a dataclass of options and a function of its instance, and runs them."""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from ..runtime.usage_error import UsageError
from ..translation_options import check_bounds
from .errors import run


Work = Callable[[], Any]
TYPER: dict[str, Any] = {"rich_markup_mode": None, "add_completion": False, "pretty_exceptions_enable": False}


def run_parsed(program: str, make_app: Callable[[Callable[[Work], None]], typer.Typer], argv: Any = None) -> int:
    """
    Parses a command line, runs the command, and returns its exit status.

    Args:
        program: name of the program in messages.
        make_app: makes the parser. Its commands pass their work to the given function.
    """
    begun: list[Work] = []
    try:
        make_app(begun.append)(argv, prog_name=program.partition(" ")[0])
    except SystemExit as end:
        if not begun:  # help, version, or invalid options
            return int(end.code or 0)
    return run(program, begun[0])


def run_script(*commands: tuple[type, Callable[[Any], Any]]) -> int:
    """
    Runs the current script, and returns its exit status.

    Args:
        commands: dataclass of options and function. Several functions become subcommands by their names.
    """

    def make_app(begin: Callable[[Work], None]) -> typer.Typer:
        app = typer.Typer(**TYPER)
        for options, function in commands:
            app.command(function.__name__)(typed_command(options, function, begin))
        return app

    return run_parsed(Path(sys.argv[0]).name, make_app)


def typed_command(options: type, function: Callable[[Any], Any], begin: Callable[[Work], None]) -> Callable[..., None]:
    """
    Makes a function with a signature for Typer.

    Args:
        options: dataclass with a field per option. The metadata of a field contains `help`, bounds of a number,
            `argument: True` for a positional argument, and `on_command_line: False` for a field without option.
        function: takes the options.
        begin: receives the call of the function.
    """
    hints = get_type_hints(options)

    def command(**values: Any) -> None:
        begin(partial(_call, options, function, values))

    parameters = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(each),
            annotation=Annotated[_parsed_type(hints[each.name]), _declaration(each, hints[each.name])],
        )
        for each in fields(options)
        if each.metadata.get("on_command_line", True)
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    # The help omits sections such as "Raises:".
    command.__doc__ = re.split(r"\n\n(?:Args|Returns|Raises):\n", inspect.getdoc(function) or "")[0]
    return command


def _call(options: type, function: Callable[[Any], Any], values: dict[str, Any]) -> Any:
    """Calls the function with parsed options. Turns errors of the options into `UsageError`."""
    try:
        given = options(**values)
        check_bounds(given)
    except ValueError as error:
        names_option = str(error).partition(" ")[0] in values
        raise UsageError(f"--{error}" if names_option else str(error)) from error
    return function(given)


def _declaration(option: Field, hint: Any) -> Any:
    text = option.metadata["help"]
    if option.metadata.get("argument"):
        return typer.Argument(help=text, metavar=option.name.upper())
    name = f"--{option.name}"
    can_be_switched_off = _parsed_type(hint) is bool and option.default is not False
    return typer.Option(f"{name}/--no-{option.name}" if can_be_switched_off else name, help=text)


def _default(option: Field) -> Any:
    if option.default_factory is not MISSING:
        return option.default_factory()
    return inspect.Parameter.empty if option.default is MISSING else option.default


def _parsed_type(hint: Any) -> Any:
    """Returns the type for Typer. It omits functions, and parses a mapping as a file."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    kinds = [Path if get_origin(kind) is Mapping else kind for kind in get_args(hint)]
    [kind] = [kind for kind in kinds if kind is not type(None) and get_origin(kind) is not Callable]
    return kind
