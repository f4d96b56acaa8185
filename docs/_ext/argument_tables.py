"""Tables of options with defaults and help texts, from the fields of a dataclass.

.. arguments:: modeling_gtransformer.training.recipe.DataArguments
.. arguments:: modeling_gtransformer.server.options.ServerOptions
   :command:

   Model: model precision
   Network: host port

With `command`, the fields, including inherited ones, are command-line options. Each line of the content becomes a
table. The lines must list every option exactly once.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import chain
from typing import Any, Literal, get_args, get_origin, get_type_hints

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


HEAD = [".. list-table::", "   :header-rows: 1", "   :class: arguments", "", "   * - Argument", "     - Meaning"]


class Arguments(SphinxDirective):
    required_arguments = 1
    option_spec = {"command": directives.flag}
    has_content = True

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        source = getattr(import_module(module), name)
        rows = dict(of_dataclass(source, "command" in self.options))
        groups = in_groups(rows, self.content) if self.content else {"": rows}
        lines = [line for title, group in groups.items() for line in table(title, group)]
        parsed = self.parse_text_to_nodes("\n".join(lines))
        add_anchors(parsed, name)
        return parsed


def add_anchors(tables: Iterable[nodes.Node], prefix: str) -> None:
    """Makes the name of every option a link to itself, such as `#TranslateOptions-num_beams`."""
    for cell in chain.from_iterable(each.findall(nodes.entry) for each in tables):
        literal = cell.next_node(nodes.literal)
        if literal is not None and cell.parent.index(cell) == 0:
            anchor = f"{prefix}-{literal.astext().removeprefix('--')}"
            cell.parent["ids"].append(anchor)
            literal.replace_self(nodes.reference("", "", literal.deepcopy(), refid=anchor, internal=True))


def table(title: str, rows: dict[str, str]) -> list[str]:
    """Returns a table in reST, with its title if any."""
    head = [f".. rubric:: {title}", ""] if title else []
    body = [line for name, text in rows.items() for line in (f"   * - ``{name}``", f"     - {text}")]
    return [*head, *HEAD, *body, ""]


def in_groups(rows: dict[str, str], lines: Iterable[str]) -> dict[str, dict[str, str]]:
    """
    Returns the rows by group title, in the order of lines such as `Network: host port`.

    Raises:
        ValueError: the groups do not list every option exactly once.
    """
    groups = {title: names.split() for title, _, names in (line.partition(":") for line in lines)}
    by_name = {name.removeprefix("--").lower(): name for name in rows}
    grouped = sorted(chain.from_iterable(groups.values()))
    if grouped != sorted(by_name):
        raise ValueError(f"Groups have the options {grouped}, the command has {sorted(by_name)}.")
    return {title: {by_name[name]: rows[by_name[name]] for name in names} for title, names in groups.items()}


def of_dataclass(options: type, is_command: bool = False) -> Iterator[tuple[str, str]]:
    """Yields name and meaning of every option, in reST."""
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
        text = field.metadata["help"].removesuffix(".")
        if is_command and default is True:
            text, default = f"{text}; `--no-{field.name}` turns it off", None
        yield name, meaning(text, default, choices_of(hints[field.name]))


def choices_of(hint: Any) -> tuple[Any, ...]:
    """Returns the values of the literals in a type."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(choice for part in get_args(hint) for choice in choices_of(part))


def meaning(help_text: str, default: Any, choices: Any = ()) -> str:
    """Returns the help text with its default and choices."""
    text = re.sub("`([^`]+)`", r"``\1``", help_text).removesuffix(".")
    is_trivial = default is None or default is False or default in (dataclasses.MISSING, "", (), [])
    if not is_trivial and "default: " not in text:
        text += f"; default: ``{default}``"
    if choices:
        text += f". One of {', '.join(f'``{choice}``' for choice in choices)}"
    return f"{text}."


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("arguments", Arguments)
    return {"parallel_read_safe": True}
