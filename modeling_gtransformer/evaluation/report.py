"""Reports of evaluation commands: JSON files with provenance, and Markdown tables."""

import dataclasses
import shlex
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, MISSING, dataclass
from pathlib import Path
from typing import Any

from ..runtime.atomic_file import write_json
from ..translation_options import option
from .provenance import origin, provenance


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Options of commands that report numbers."""

    json: Path | None = option(None, "JSON file for the report, with command, versions and hardware.")


@dataclass(frozen=True, kw_only=True)
class LanguageOptions(ReportOptions):
    """Options of commands for a language pair."""

    src_lang: str | None = option(None, "Code of the source language; default: from the processor.")
    tgt_lang: str | None = option(None, "Code of the target language; default: from the processor.")


@dataclass(frozen=True)
class ModelOptions(LanguageOptions):
    """Options of commands that score with a model."""

    model: str = option(MISSING, "Folder or Hub name of a trained model, or of a sentence-level model.", argument=True)
    _: KW_ONLY
    max_tokens: int = option(4096, "Maximum number of tokens in a batch, padding included.", 1)


def write_report(command: str | None, options: ReportOptions, content: dict[str, Any]) -> None:
    """Writes a report with its provenance, if the options have a file for it. The default command is the running
    script."""
    if options.json:
        made = provenance(sys.argv) if command is None else {"command": command_line(command, options), **origin()}
        write_json(options.json, {**content, **made})


def command_line(command: str, options: Any) -> str:
    """
    Returns the command line for options.

    Args:
        command: subcommand of `gtransformer`, such as "evaluate scores".
        options: dataclass of options.
    """
    positional, named = [], []
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if value == default:
            continue
        values = list(map(str, value)) if isinstance(value, list) else [str(value)]
        if field.metadata.get("argument"):
            positional += values
        elif isinstance(value, bool):
            named.append(f"--{field.name}" if value else f"--no-{field.name}")
        else:
            named += [word for each in values for word in (f"--{field.name}", each)]
    return shlex.join(["gtransformer", *command.split(), *positional, *named])


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Formats a Markdown table; the first row is its header."""
    head, *others = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *others))
