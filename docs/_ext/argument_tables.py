"""Tables of options with their defaults and help texts, made from the fields of a dataclass.

.. arguments:: modeling_gtransformer.training.recipe.DataArguments
.. arguments:: modeling_gtransformer.cli.translate.TranslateOptions
   :command:

As a `command`, the fields are options of a command line, inherited ones among them.
"""

import dataclasses
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Literal, get_args, get_origin, get_type_hints

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


HEAD = [".. list-table::", "   :header-rows: 1", "   :class: arguments", "", "   * - Argument", "     - Meaning"]


class Arguments(SphinxDirective):
    required_arguments = 1
    option_spec = {"command": directives.flag}

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        source = getattr(import_module(module), name)
        is_command = "command" in self.options
        rows = of_dataclass(source, is_command)
        lines = [line for name, text in rows for line in (f"   * - ``{name}``", f"     - {text}")]
        return self.parse_text_to_nodes("\n".join([*HEAD, *lines]))


def of_dataclass(options: type, is_command: bool = False) -> Iterator[tuple[str, str]]:
    """Name and meaning of every option, in reST."""
    hints = get_type_hints(options)
    for field in dataclasses.fields(options):
        if is_command and field.metadata.get("on_command_line", True):
            name = field.name.upper() if field.metadata.get("argument") else f"--{field.name}"
        elif not is_command and field.name in options.__annotations__:
            name = field.name
        else:
            continue
        has_factory = field.default_factory is not dataclasses.MISSING
        default = field.default_factory() if has_factory else field.default
        yield name, meaning(field.metadata["help"], default, choices_of(hints[field.name]))


def choices_of(hint: Any) -> tuple[Any, ...]:
    """The values of the literal in a type."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(choice for part in get_args(hint) for choice in choices_of(part))


def meaning(help_text: str, default: Any, choices: Any = ()) -> str:
    """The help text, with the default that it leaves out, and the choices."""
    text = re.sub("`([^`]+)`", r"``\1``", help_text).removesuffix(".")
    says_nothing = default is None or default is False or default in (dataclasses.MISSING, "", (), [])
    if not says_nothing and "default: " not in text:
        text += f"; default: ``{default}``"
    if choices:
        text += f". One of {', '.join(f'``{choice}``' for choice in choices)}"
    return f"{text}."


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("arguments", Arguments)
    return {"parallel_read_safe": True}
