"""Provenance of each part of a training in `starts.json`, because other code may continue it."""

from pathlib import Path
from typing import Any

from ..evaluation.provenance import origin
from ..runtime.atomic_file import read_json, write_json


STARTS_NAME = "starts.json"


def keep_start(folder: Path, checkpoint: str | None) -> None:
    """Appends commit, hardware and versions of a start to those of the training that it continues.

    Args:
        folder: output folder of the training.
        checkpoint: checkpoint to continue from, if any.
    """
    before = read_starts(Path(checkpoint).parent) if checkpoint else []
    write_json(folder / STARTS_NAME, [*before, origin()])


def read_starts(folder: Path) -> list[dict[str, Any]]:
    """Returns commit, hardware and versions of each start; an empty list without records."""
    return read_json(folder / STARTS_NAME, [])
