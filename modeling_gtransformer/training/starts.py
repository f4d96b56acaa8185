"""Records in `starts.json` what each part of a training ran on, because other code may continue a training."""

from pathlib import Path
from typing import Any

from ..evaluation.provenance import origin
from ..runtime.atomic_file import read_json, write_json


STARTS_NAME = "starts.json"


def keep_start(folder: Path, checkpoint: str | None) -> None:
    """Records commit, hardware and versions of a training that starts, after those of the training that it continues.

    Args:
        folder: output folder of the training.
        checkpoint: checkpoint that it continues from, if any.
    """
    before = read_starts(Path(checkpoint).parent) if checkpoint else []
    write_json(folder / STARTS_NAME, [*before, origin()])


def read_starts(folder: Path) -> list[dict[str, Any]]:
    """Reads commit, hardware and versions of each part; the list is empty if the folder has none."""
    return read_json(folder / STARTS_NAME, [])
