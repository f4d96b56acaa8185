"""Writes files and folders atomically."""

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, BinaryIO


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that replaces `path` at the end. An error leaves `path` unchanged and no other file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    # Mode x follows no link, and gives the file default permissions.
    with partial.open("xb") as file:
        try:
            yield file
            file.close()  # a full disk may raise on close
            os.replace(partial, path)
        except BaseException:
            partial.unlink()
            raise


def write_atomic(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode("utf-8"))


def is_among(path: Path, files: Iterable[str | Path]) -> bool:
    """Returns whether a path refers to one of the files, also by a link."""
    exists, place = path.exists(), path.resolve()
    others = map(Path, files)
    return any(place == other.resolve() or (exists and other.exists() and path.samefile(other)) for other in others)


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[str] = ()) -> None:
    """
    Checks output files before any work.

    Args:
        outputs: the files; `None` for an unrequested output.
        inputs: input files and folders.

    Raises:
        ValueError: an output is an input, lies in one, is a folder, or cannot be written.
    """
    inputs = list(inputs)
    for output in (path for path in outputs if path is not None):
        if is_among(output, inputs) or any(is_among(folder, inputs) for folder in output.absolute().parents):
            raise ValueError(f"{output} would overwrite an input: choose another output.")
        if output.is_dir():
            raise ValueError(f"{output} is a folder: pass a file.")
        if problem := problem_of_folder(output.parent):
            raise ValueError(f"{output} cannot be written: {problem}.")


def problem_of_folder(folder: Path) -> str:
    """Returns why a folder, which may not exist yet, is not writable; an empty string if it is."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        return f"{existing} is not a folder"
    try:
        with TemporaryFile(dir=existing):
            return ""
    except OSError as error:
        return f"{existing} is not writable, {error.strerror}"


def read_json(path: Path, default: Any) -> Any:
    """Returns the content of a JSON file, or the default if it is missing. Raises `ValueError` for invalid JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else default
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error


def write_json(path: Path, content: Any) -> None:
    write_atomic(path, json.dumps(content, indent=2) + "\n")


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """
    Yields the path of a new folder for the caller to make, which replaces `path` at the end. An error leaves no files.

    Raises:
        FileExistsError: `path` is a file or a non-empty folder.
    """
    path = path.resolve()  # keeps a link, and replaces its folder
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise FileExistsError(f"{path} exists and is not an empty folder: choose another one.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f"{path.name}.partial.") as folder:
        whole = Path(folder, "whole")
        yield whole
        if whole.exists():
            os.replace(whole, path)
