"""Files and folders that appear as a whole or not at all."""

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
    """
    Opens a file for writing that replaces `path` at the end. An error leaves `path` as it was, and no other file
    beside it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    # Mode x follows no link, and gives the file the permissions of any new one.
    with partial.open("xb") as file:
        try:
            yield file
            file.close()  # a full disk may raise its error only here
            os.replace(partial, path)
        except BaseException:
            partial.unlink()
            raise


def write_atomic(path: Path, text: str) -> None:
    """Writes a text as a whole or not at all."""
    with atomic_file(path) as file:
        file.write(text.encode("utf-8"))


def is_among(path: Path, files: Iterable[str | Path]) -> bool:
    """Returns whether a path leads to one of the files, whatever its name."""
    exists, place = path.exists(), path.resolve()
    others = map(Path, files)
    return any(place == other.resolve() or (exists and other.exists() and path.samefile(other)) for other in others)


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[str] = ()) -> None:
    """
    Checks the files that will be written, before the work whose results they hold.

    Args:
        outputs: the files; `None` for an output that is not requested.
        inputs: files and folders that are read.

    Raises:
        ValueError: an output is an input or lies in one, is a folder, or cannot be written.
    """
    inputs = list(inputs)
    for output in (path for path in outputs if path is not None):
        if is_among(output, inputs) or any(is_among(folder, inputs) for folder in output.absolute().parents):
            raise ValueError(f"{output} would take the place of an input: choose another output.")
        if output.is_dir():
            raise ValueError(f"{output} is a folder: name a file.")
        if problem := problem_of_folder(output.parent):
            raise ValueError(f"{output} cannot be written: {problem}.")


def problem_of_folder(folder: Path) -> str:
    """Returns why no file can be written into a folder, which need not exist yet; an empty text if it can."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        return f"{existing} is not a folder"
    try:
        with TemporaryFile(dir=existing):
            return ""
    except OSError as error:
        return f"no file can be written into {existing}, {error.strerror}"


def read_json(path: Path, default: Any) -> Any:
    """
    Returns the content of a JSON file, or the default if there is no file.

    Raises:
        ValueError: the file is broken.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else default
    except ValueError as error:
        raise ValueError(f"{path} is broken: {error}") from error


def write_json(path: Path, content: Any) -> None:
    """Writes indented JSON as a whole or not at all."""
    write_atomic(path, json.dumps(content, indent=2) + "\n")


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """
    Yields the path of a folder to make, which replaces `path` at the end if it was made. An error leaves nothing
    behind.

    Raises:
        FileExistsError: `path` is a file, or a folder that is not empty.
    """
    path = path.resolve()  # a link stays, and the folder that it points to is replaced
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise FileExistsError(f"{path} exists and is not an empty folder: choose another one.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f"{path.name}.partial.") as folder:
        whole = Path(folder, "whole")
        yield whole
        if whole.exists():
            os.replace(whole, path)
