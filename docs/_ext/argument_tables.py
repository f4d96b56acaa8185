"""Tables of arguments with their defaults and help texts, made from what reads them: a parser or a dataclass.

.. arguments:: modeling_gtransformer.cli.options.argument_parser
.. arguments:: modeling_gtransformer.training.recipe.DataArguments
"""

import argparse
import dataclasses
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Arguments(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        source = getattr(import_module(module), name)
        rows = of_dataclass(source) if dataclasses.is_dataclass(source) else of_parser(source())
        lines = [
            ".. list-table::",
            "   :header-rows: 1",
            "   :class: arguments",
            "",
            "   * - Argument",
            "     - Meaning",
        ]
        for argument, text in rows:
            lines += [f"   * - ``{argument}``", f"     - {text}"]
        return self.parse_text_to_nodes("\n".join(lines))


def of_parser(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """What every argument is called, and what it means, in reST."""
    formatter = parser._get_formatter()
    for action in parser._actions:
        if not isinstance(action, argparse._HelpAction):
            names = ", ".join(action.option_strings) or formatter._format_args(action, action.dest)
            value = f" {action.metavar}" if action.option_strings and action.metavar else ""
            required = bool(action.required and action.option_strings)
            yield names + value, meaning(formatter._expand_help(action), action.default, action.choices, required)


def of_dataclass(arguments: type) -> Iterator[tuple[str, str]]:
    """The same for the fields of its own, without those that it inherits."""
    for field in dataclasses.fields(arguments):
        if field.name in arguments.__annotations__:
            has_factory = field.default_factory is not dataclasses.MISSING
            default = field.default_factory() if has_factory else field.default  # type: ignore[misc]
            yield field.name, meaning(field.metadata["help"], default)


def meaning(help_text: str, default: Any, choices: Any = None, required: bool = False) -> str:
    """The help text, with what else one has to know."""
    text = re.sub("`([^`]+)`", r"``\1``", help_text).removesuffix(".")
    if default != [] and not any(default is nothing for nothing in (None, False, argparse.SUPPRESS)):
        text += f"; default: ``{default}``"
    if choices:
        text += f". One of {', '.join(f'``{choice}``' for choice in choices)}"
    return f"{text}. Required." if required else f"{text}."


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("arguments", Arguments)
    return {"parallel_read_safe": True}
