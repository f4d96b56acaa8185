"""Files and folders that appear as a whole or not at all."""

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """
    Opens a file for writing that takes the place of `path` at the end; an error leaves `path` as it was, and nothing
    beside it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    # Mode x follows no link, and gives the file the permissions of any new one.
    with partial.open("xb") as file:
        try:
            yield file
            file.close()  # what does not fit the disk may fail only here
            os.replace(partial, path)
        except BaseException:
            partial.unlink()
            raise


def write_atomic(path: Path, text: str) -> None:
    """Writes a text, as a whole or not at all."""
    with atomic_file(path) as file:
        file.write(text.encode("utf-8"))


def is_among(path: Path, files: Iterable[str | Path]) -> bool:
    """Whether a path is that of one of the files, by whatever name."""
    exists, place = path.exists(), path.resolve()
    others = map(Path, files)
    return any(place == other.resolve() or (exists and other.exists() and path.samefile(other)) for other in others)


def refuse_inputs(outputs: Iterable[Path], inputs: Iterable[str]) -> None:
    """
    Refuses to write over what is read.

    Raises:
        ValueError: an output is one of the inputs.
    """
    inputs = list(inputs)
    for output in outputs:
        if is_among(output, inputs):
            raise ValueError(f"{output} would take the place of an input: choose another output.")


def write_json(path: Path, content: Any) -> None:
    """Writes an indented JSON, as a whole or not at all."""
    write_atomic(path, json.dumps(content, indent=2) + "\n")


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """
    Gives the path of a folder to make, which takes the place of `path` at the end if it was made; an error leaves
    nothing.

    Raises:
        FileExistsError: `path` is a file, or a folder that is not empty.
    """
    path = path.resolve()  # the folder that a link names takes its place, not the link
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise FileExistsError(f"{path} exists and is no empty folder: give another one.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f"{path.name}.partial.") as folder:
        whole = Path(folder, "whole")
        yield whole
        if whole.exists():
            os.replace(whole, path)
