"""Output of a translation, in the format of its input: a file of JSON lines or parquet, or a dataset."""

import glob
import gzip
import lzma
import shutil
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import pyarrow
import pyarrow.parquet
from datasets import Dataset

from ..runtime.atomic_file import atomic_file, is_among
from ..runtime.usage_error import UsageError
from .corpus_files import DATASET_STATE, JSON_LINES, has_extension


# Number of chunks in a row group of a parquet file.
ROW_GROUP = 16


def check_output(files: Sequence[str], output: str, overwrite: bool) -> None:
    """
    Checks before the work starts that the output can be written.

    Args:
        files: the input file, or the files of the input dataset.

    Raises:
        UsageError: the output is not a path, has another format than the input, is the input, or exists.
    """
    if "://" in output:
        raise UsageError(f"The output {output} must be a path: only Ray writes to URIs.")
    path = Path(output)
    extensions: tuple[str, ...] = (".parquet",) if has_extension(files[0], ".parquet") else JSON_LINES
    if has_extension(files[0], ".arrow"):
        extensions = ()  # a dataset is a folder
    if len(files) > 1 and extensions:
        raise UsageError(f"There are several files, {', '.join(files)}: translate them one by one.")
    if extensions and not has_extension(output, extensions):
        raise UsageError(f"The output {output} must be named *{', *'.join(extensions)}, like its input.")
    if not extensions and has_extension(output, (*JSON_LINES, ".parquet")):
        raise UsageError(f"The output {output} must be a folder, like the dataset that is its input.")
    if is_among(path, files if extensions else [Path(file).parent for file in files]):
        raise UsageError(f"The output {output} is the input: choose another one.")
    if not path.exists():
        return
    if not extensions and not (path / DATASET_STATE).exists():
        raise UsageError(f"The output {output} exists and is not a dataset: choose another one.")
    if extensions and path.is_dir():
        raise UsageError(f"The output {output} is a folder: pass a file.")
    if not overwrite:
        raise UsageError(f"The output {output} exists: choose another one, or pass --overwrite.")


def put_together(chunks: Sequence[str], output: str) -> None:
    """Concatenates the files of all chunks to the output, atomically."""
    path = Path(output)
    if has_extension(output, JSON_LINES):
        _join_json_lines(chunks, path)
    elif has_extension(output, ".parquet"):
        _join_tables(chunks, path)
    else:
        _save_dataset(chunks, path)


def _join_json_lines(chunks: Iterable[str], path: Path) -> None:
    with atomic_file(path) as raw, compressed(raw, path) as file:
        for chunk in chunks:
            with open(chunk, "rb") as lines:
                shutil.copyfileobj(lines, file)


def compressed(file: BinaryIO, path: Path) -> AbstractContextManager[Any]:
    """Compresses the content of a file if the extension of its path requires it."""
    if path.suffix.lower() == ".gz":
        # Without name and time in the header, output is reproducible.
        return gzip.GzipFile("", "wb", fileobj=file, mtime=0)
    return lzma.LZMAFile(file, "wb") if path.suffix.lower() == ".xz" else nullcontext(file)


def _join_tables(chunks: Sequence[str], path: Path) -> None:
    schema = pyarrow.parquet.read_schema(chunks[0])
    with atomic_file(path) as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for start in range(0, len(chunks), ROW_GROUP):
            tables = map(pyarrow.parquet.read_table, chunks[start : start + ROW_GROUP])
            writer.write_table(pyarrow.concat_tables(tables))


def _save_dataset(chunks: Sequence[str], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{path.name}.", suffix=".partial", dir=path.parent) as folder:
        rows = [glob.escape(chunk) for chunk in chunks]
        dataset = Dataset.from_parquet(rows, cache_dir=str(Path(folder, "cache")))
        dataset.save_to_disk(str(Path(folder, "dataset")))
        if path.exists():
            path.rename(Path(folder, "replaced"))
        Path(folder, "dataset").rename(path)
