"""What each part of a training ran on, in `starts.json` of its folder: a training may be continued by other code."""

from pathlib import Path
from typing import Any

from ..atomic_file import read_json, write_json
from ..evaluation.provenance import origin


STARTS_NAME = "starts.json"


def keep_start(folder: Path, checkpoint: str | None) -> None:
    """Keeps commit, hardware and versions of a training that starts, behind those of the one that it continues.

    Args:
        folder: output folder of the training.
        checkpoint: what it continues from, if it does.
    """
    before = read_starts(Path(checkpoint).parent) if checkpoint else []
    write_json(folder / STARTS_NAME, [*before, origin()])


def read_starts(folder: Path) -> list[dict[str, Any]]:
    """Commit, hardware and versions of each part; empty if the folder does not say."""
    return read_json(folder / STARTS_NAME, [])
