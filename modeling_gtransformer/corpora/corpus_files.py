"""Files of a corpus: local paths, or URIs of cloud file systems that pyarrow supports.

JSON lines and tables (parquet, and the Arrow files of `datasets`) contain all columns; any other file is text.
"""

import contextlib
import gzip
import io
import json
import lzma
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, cast
from urllib.parse import quote, urlsplit

import pyarrow
import pyarrow.parquet
from pyarrow.fs import FileSelector, FileSystem, FileType
from transformers.utils import logging


logger = logging.get_logger(__name__)

JSON_LINES = (".jsonl", ".jsonl.gz", ".jsonl.xz", ".ndjson")
TABLES = (".parquet", ".arrow")
TEXTS = (".txt", ".txt.gz", ".txt.xz")
# File in which `save_to_disk` of `datasets` lists its Arrow files.
DATASET_STATE = "state.json"
# Numbers of rows, and of bytes of a file, to read at a time.
BATCH, BUFFER = 64, 2**20
# First characters of names that are skipped in folders.
HIDDEN = (".", "_")
# File that marks the folder of an unfinished translation.
UNFINISHED = ".unfinished"


def located(path: str) -> tuple[FileSystem, str]:
    """
    Returns the file system of a path or URI, and the path in it.

    Raises:
        ValueError: the file system of the URI is unknown.
    """
    return FileSystem.from_uri(path if "://" in path else os.path.abspath(path))


def has_extension(path: str, extensions: str | tuple[str, ...]) -> bool:
    """Returns whether a path has an extension, ignoring case and the options of a URI."""
    return (urlsplit(path).path if "://" in path else path).lower().endswith(extensions)


def has_columns(path: str) -> bool:
    """Returns whether a file contains all columns of a corpus, instead of text for one of them."""
    return has_extension(path, (*JSON_LINES, *TABLES))


def within(folder: str, name: str) -> str:
    """Returns the path or URI of a name in a folder."""
    if "://" not in folder:
        return os.path.join(folder, name)
    address, mark, options = folder.partition("?")
    return f"{address.rstrip('/')}/{quote(name)}{mark}{options}"


def lies_in(path: str, folder: str) -> bool:
    """Returns whether a path or URI is a folder or lies in it."""
    place, root = (each.rstrip("/") if "://" in each else os.path.realpath(each) for each in (path, folder))
    return place == root or place.startswith(f"{root}/")


def files_of(path: str) -> list[str]:
    """
    Lists the files of a corpus: a file, the files of a folder in the order of their names, or the files of a dataset
    written by `save_to_disk`.

    Raises:
        ValueError: a folder has no files of a corpus, or an unfinished translation.
    """
    system, place = located(path)
    if system.get_file_info(place).type != FileType.Directory:
        return [path]
    is_file = {info.base_name: info.is_file for info in system.get_file_info(FileSelector(place))}
    extensions = (*JSON_LINES, ".parquet", *TEXTS)
    if UNFINISHED in is_file:
        raise ValueError(f"{path}: the translation in this folder is unfinished: run its command again.")
    if DATASET_STATE in is_file:
        with open_binary(within(path, DATASET_STATE)) as file:
            names = [data["filename"] for data in json.load(file)["_data_files"]]
    else:
        shown = sorted(name for name in is_file if not name.startswith(HIDDEN))
        names = [name for name in shown if is_file[name] and has_extension(name, extensions)]
        if others := [name for name in shown if name not in names]:
            logger.warning(f"{path}: skipped files that are not named *{', *'.join(extensions)}: {', '.join(others)}.")
    if not names:
        raise ValueError(f"{path}: the folder has neither a dataset nor files named *{', *'.join(extensions)}.")
    return [within(path, name) for name in names]


def files_of_all(paths: Sequence[str], columns: int) -> list[str]:
    """
    Lists the files of all paths of a corpus with this number of columns of sentences.

    Raises:
        ValueError: a folder has text files for a corpus with several columns.
    """
    files = [file for path in paths for file in files_of(path)]
    if columns > 1 and (texts := [file for file in files if file not in paths and not has_columns(file)]):
        raise ValueError(f"{texts}: cannot infer the columns of text files in a folder: pass the files one by one.")
    return files


def open_binary(path: str) -> BinaryIO:
    """Opens a file for reading, without decompression."""
    if "://" not in path:
        return open(path, "rb")
    system, place = located(path)
    return cast(BinaryIO, io.BufferedReader(system.open_input_stream(place, compression=None)))


@contextlib.contextmanager
def open_decompressed(path: str) -> Iterator[BinaryIO]:
    """Opens a file for reading, decompressed according to its extension."""
    decompressed: Callable[[BinaryIO], Any] = contextlib.nullcontext
    if has_extension(path, (".gz", ".xz")):
        decompressed = gzip.open if has_extension(path, ".gz") else lzma.open
    with open_binary(path) as raw, decompressed(raw) as file:
        yield file


@contextlib.contextmanager
def open_table(path: str) -> Iterator[tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]]:
    """
    Opens a table as its schema and its batches, with one batch in memory at a time.

    Raises:
        ValueError: the file is broken.
    """
    system, place = located(path)
    with system.open_input_file(place) as file:
        if has_extension(path, ".parquet"):
            # Read-ahead would keep the whole file in memory.
            table = pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)
            yield table.schema_arrow, table.iter_batches(batch_size=BATCH)
        else:
            stream = pyarrow.ipc.open_stream(file)
            yield stream.schema, iter(stream)
