"""Runs functions that take a dataclass of options as a script of their own."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from .errors import run
from .typed_command import Work, typed_command


def run_script(*commands: tuple[type, Callable[[Any], Any]]) -> int:
    """
    Runs the script that was started, and returns its exit status.

    Args:
        commands: dataclass of options and function; if there are several, the name of a function is its subcommand.
    """
    begun: list[Work] = []
    name = Path(sys.argv[0]).name
    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    for options, function in commands:
        app.command(function.__name__)(typed_command(options, function, begun.append))
    try:
        app(prog_name=name)
    except SystemExit as end:
        if not begun:  # help, or options that cannot be parsed
            return int(end.code or 0)
    return run(name, begun[0])
