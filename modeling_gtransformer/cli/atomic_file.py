"""Files that appear as a whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
