"""Converts docstrings in the style of Transformers, Markdown in Google's sections, to reST for autodoc.

A name in brackets and backticks is a reference, backticks are code, a fence is a code block. Types and defaults in
brackets are removed, because the signature has them. Configurations, which hide their signature, get them from the
code.
"""

import re
import textwrap
from inspect import cleandoc
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation
from transformers import Pipeline, PreTrainedConfig


# References to other libraries.
FOREIGN = {"MBartConfig": "https://huggingface.co/docs/transformers/model_doc/mbart#transformers.MBartConfig"}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):\n((?:    .*(?:\n|\Z)|\n)+)", re.MULTILINE)
ENTRY = re.compile(r"([^\s:][^:\n]*?)(?: \(`.*?\))?: (.+)", re.DOTALL)
REFERENCE_OR_CODE = re.compile(r"\[`([\w.]+)`\]|`([^`]+)`")


def to_rest(docstring: str, config: type | None = None) -> str:
    """Returns the docstring in reST, with types and defaults of fields for a configuration."""
    docstring = cleandoc(docstring)
    text, done = "", 0
    for fence in FENCE.finditer(docstring):
        text += _prose(docstring[done : fence.start()], config) + _block(*fence.groups())
        done = fence.end()
    return text + _prose(docstring[done:], config)


def _block(language: str, code: str) -> str:
    language = "pycon" if code.lstrip().startswith(">>>") else language
    return f".. code-block:: {language}\n\n{textwrap.indent(code, '    ')}\n"


def _prose(text: str, config: type | None) -> str:
    text = SECTION.sub(lambda section: _section(section[1], textwrap.dedent(section[2]), config), text)
    text = re.sub(r"^Example:$", ".. rubric:: Example", text, flags=re.MULTILINE)
    return REFERENCE_OR_CODE.sub(lambda found: _reference(found[1]) if found[1] else f"``{found[2]}``", text)


def _section(title: str, body: str, config: type | None) -> str:
    """Returns a field list. Raises `ValueError` for entries that are not `name: text`."""
    if title == "Returns":
        return f":Returns: {' '.join(body.split())}\n\n"
    items = []
    for entry in re.split(r"\n(?=\S)", body.strip()):
        parts = ENTRY.fullmatch(entry)
        if parts is None:
            raise ValueError(f"In the section {title} of a docstring, {entry!r} is no `name: text`.")
        name, words = parts[1], " ".join(parts[2].split())
        of_field = f" (`{_type_and_default(config, name)}`)" if config and title == "Args" else ""
        items.append(f"    * **{name}**{of_field} – {words}\n")
    return f":{'Parameters' if title == 'Args' else title}:\n{''.join(items)}\n"


def _reference(name: str) -> str:
    """Returns a role that finds the name in any module; the form of the name determines its kind."""
    if name in FOREIGN:
        return f"`{name} <{FOREIGN[name]}>`__"
    if name.startswith("modeling_gtransformer."):
        return f":py:mod:`{name}`"
    last = name.rpartition(".")[2]
    kind = "data" if last.isupper() else "class" if last[0].isupper() else "meth" if "." in name else "func"
    return f":py:{kind}:`~.{name}`"


def _type_and_default(config: type, name: str) -> str:
    field = config.__dataclass_fields__[name]  # type: ignore[attr-defined]
    return f"{stringify_annotation(field.type)} = {field.default!r}"


def _other_fields(config: type, docstring: str) -> str:
    """Returns a listing of the fields of a configuration that its docstring omits."""
    own = [name for name in config.__annotations__ if name in config.__dataclass_fields__]  # type: ignore[attr-defined]
    others = [name for name in own if not re.search(rf"^ +{name}\b.*: ", docstring, re.MULTILINE)]
    listing = "\n".join(f"    {name}: {_type_and_default(config, name)}" for name in others)
    return f"\n\n.. rubric:: The other fields\n\n.. code-block:: python\n\n{listing}\n"


def convert(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if not getattr(getattr(obj, "fget", obj), "__module__", name).startswith("modeling_gtransformer"):
        return  # inherited, and not shown
    docstring = "\n".join(lines)
    config = obj if isinstance(obj, type) and issubclass(obj, PreTrainedConfig) else None
    text = to_rest(docstring, config) + (_other_fields(config, docstring) if config else "")
    lines[:] = [*text.splitlines(), ""]


def shorten_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Hides signatures of configurations and pipelines, which consist mostly of inherited arguments, and of protocols,
    which are not called."""
    inherits = isinstance(obj, type) and issubclass(obj, (PreTrainedConfig, Pipeline))
    if inherits or getattr(obj, "_is_protocol", False):
        return "", None
    return signature and signature.replace("<factory>", "..."), returned


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", convert)
    app.connect("autodoc-process-signature", shorten_signature)
    return {"parallel_read_safe": True}
