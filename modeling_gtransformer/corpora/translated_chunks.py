"""Folder of a translation: chunks, each written atomically, and a manifest of the translation.

Existing chunks are not translated again.
"""

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow
import pyarrow.parquet
from pyarrow.fs import FileSelector, FileType, LocalFileSystem

from ..runtime.json_line import json_line
from ..runtime.usage_error import UsageError
from .chunk_translation import Chunk, FileContent
from .corpus_files import UNFINISHED, located, open_binary, within


MANIFEST = ".manifest.json"
# Names of temporary files, which killed writers leave behind.
PARTIAL = re.compile(r"\.[0-9a-f]{16}\.partial")


@dataclass(frozen=True)
class TranslatedChunks:
    """The chunks, of `size` documents each, of a translation in a folder, a path or URI that all workers can reach."""

    folder: str
    corpus: Sequence[FileContent]
    size: int

    def begin(self, identity: Mapping[str, Any]) -> None:
        """
        Creates the folder, or resumes the translation in it by the translator of the same identity, a JSON value.

        Raises:
            UsageError: the folder contains another translation or other files.
        """
        job = {"input": [content.hash for content in self.corpus], **identity}
        names = self._names()
        if MANIFEST in names:
            with open_binary(within(self.folder, MANIFEST)) as file:
                before = json.load(file)
            if changed := sorted(name for name in {**job, **before} if job.get(name) != before.get(name)):
                raise UsageError(
                    f"{self.folder} was begun with another {', '.join(changed)}: use the earlier one, or remove the "
                    "folder."
                )
            return
        if any(name != UNFINISHED and not PARTIAL.fullmatch(name) for name in names):
            raise UsageError(f"The folder {self.folder} contains other files: choose another one.")
        system, place = located(self.folder)
        system.create_dir(place, recursive=True)
        self._write(UNFINISHED, b"")
        self._write(MANIFEST, json.dumps(job, indent=1).encode())

    def __iter__(self) -> Iterator[Chunk]:
        """Yields all chunks in order, including the missing ones."""
        for file, content in enumerate(self.corpus):
            for number in range(-(-content.documents // self.size)):
                yield Chunk(file, number)

    def left(self) -> list[Chunk]:
        """Lists the missing chunks."""
        there = set(self._names())
        return [chunk for chunk in self if self._name(chunk) not in there]

    def path(self, chunk: Chunk) -> str:
        """Returns the path of the file of a chunk."""
        return within(self.folder, self._name(chunk))

    def has(self, chunk: Chunk) -> bool:
        system, place = located(self.path(chunk))
        return system.get_file_info(place).type == FileType.File

    def write(self, chunk: Chunk, records: Sequence[dict[str, Any]]) -> None:
        """Writes the translated documents of a chunk."""
        schema = self.corpus[chunk.file].schema
        if schema is None:
            content = b"".join(map(json_line, records))
        else:
            buffer = pyarrow.BufferOutputStream()
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist([*records], schema=schema), buffer)
            content = buffer.getvalue().to_pybytes()
        self._write(self._name(chunk), content)

    def finish(self, hashes: Sequence[str]) -> None:
        """
        Checks that every chunk exists and that the files of the corpus still have their hashes, now `hashes`. Removes
        the mark of an unfinished translation and leftovers of killed writers.

        Raises:
            ValueError: the corpus has changed, or a chunk is missing.
        """
        for content, digest in zip(self.corpus, hashes, strict=True):
            if content.hash != digest:
                raise ValueError(
                    f"{content.path} changed during the translation: remove {self.folder}, and start again."
                )
        if left := self.left():
            raise ValueError(f"{len(left)} chunks are missing, such as {self.path(left[0])}: run the command again.")
        system, _ = located(self.folder)
        for name in self._names():
            if name == UNFINISHED or PARTIAL.fullmatch(name):
                system.delete_file(located(within(self.folder, name))[1])

    def _name(self, chunk: Chunk) -> str:
        """Returns the file name of a chunk. Names sort in the order of the chunks."""
        extension = ".jsonl" if self.corpus[chunk.file].schema is None else ".parquet"
        return f"{chunk.file:05}-{chunk.number:08}{extension}"

    def _names(self) -> list[str]:
        system, place = located(self.folder)
        return [info.base_name for info in system.get_file_info(FileSelector(place, allow_not_found=True))]

    def _write(self, name: str, content: bytes) -> None:
        """Writes a file atomically."""
        system, place = located(within(self.folder, name))
        _, partial = located(within(self.folder, f".{secrets.token_hex(8)}.partial"))
        try:
            with system.open_output_stream(partial) as file:
                file.write(content)
            if isinstance(system, LocalFileSystem):
                # A renamed file that is not on the disk may be empty after a power failure.
                with open(partial, "rb+") as file:
                    os.fsync(file.fileno())
            system.move(partial, place)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                system.delete_file(partial)
            raise
