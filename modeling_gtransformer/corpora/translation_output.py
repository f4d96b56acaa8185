"""The output of a translation: a file of JSON lines or parquet, or the folder of a dataset."""

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

from ..atomic_file import atomic_file, is_among
from ..usage_error import UsageError
from .corpus_files import DATASET_STATE, JSON_LINES, lies_in, open_table
from .record_encoding import joint_schema


# Number of chunks in a row group of a parquet file.
ROW_GROUP = 16


def check_output(input: str, output: str, overwrite: bool) -> None:
    """
    Refuses an output that cannot be written, before the work starts.

    Raises:
        UsageError: the output is not a path, its name has no known format, it is the input, or it must not be
            replaced.
    """
    if "://" in output:
        raise UsageError(f"The output {output} must be a path: translate_ray.py writes to URIs.")
    path = Path(output)
    is_folder = not output.endswith((*JSON_LINES, ".parquet"))
    if is_folder and path.suffix and not output.endswith("/"):
        raise UsageError(
            f"The output {output} must be named *.jsonl, *.jsonl.gz, *.jsonl.xz or *.parquet, or be a folder, for a "
            "dataset: with a / at its end if there is a dot in its name."
        )
    if "://" not in input and Path(input).is_dir() and lies_in(output, input):
        raise UsageError(f"The output {output} lies in the input {input}: give another one.")
    if not path.exists():
        return
    if is_among(path, [input]):
        raise UsageError(f"The output {output} is the input: give another one.")
    if is_folder and not (path / DATASET_STATE).exists():
        raise UsageError(f"The output {output} exists and is not a dataset: give another one.")
    if not is_folder and path.is_dir():
        raise UsageError(f"The output {output} is a folder: give a file.")
    if not overwrite:
        raise UsageError(f"The output {output} exists: give another one, or --overwrite.")


def is_table(output: str) -> bool:
    """Tells whether an output has columns instead of JSON lines."""
    return not output.endswith(JSON_LINES)


def put_together(chunks: Sequence[str], output: str) -> None:
    """Joins the files of all chunks, in order, to the output, which appears as a whole."""
    path = Path(output)
    if output.endswith(JSON_LINES):
        _join_json_lines(chunks, path)
    elif output.endswith(".parquet"):
        _join_tables(chunks, path)
    else:
        _save_dataset(chunks, path)


def _join_json_lines(chunks: Iterable[str], path: Path) -> None:
    with atomic_file(path) as raw, _packed(raw, path.suffix) as file:
        for chunk in chunks:
            with open(chunk, "rb") as lines:
                shutil.copyfileobj(lines, file)


def _packed(file: BinaryIO, suffix: str) -> AbstractContextManager[Any]:
    """Opens the compressor that belongs to the ending of a file name."""
    if suffix == ".gz":
        # Without name and time in its header, the same translation gives the same file.
        return gzip.GzipFile("", "wb", fileobj=file, mtime=0)
    return lzma.LZMAFile(file, "wb") if suffix == ".xz" else nullcontext(file)


def _join_tables(chunks: Sequence[str], path: Path) -> None:
    schemas = []
    for chunk in chunks:
        with open_table(chunk) as (schema, _):
            schemas.append(schema)
    joint = joint_schema(schemas, str(path))
    with atomic_file(path) as file, pyarrow.parquet.ParquetWriter(file, joint) as writer:
        for start in range(0, len(chunks), ROW_GROUP):
            tables = [joint.empty_table(), *map(pyarrow.parquet.read_table, chunks[start : start + ROW_GROUP])]
            writer.write_table(pyarrow.concat_tables(tables, promote_options="permissive"))


def _save_dataset(chunks: Sequence[str], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{path.name}.", suffix=".partial", dir=path.parent) as folder:
        _join_tables(chunks, Path(folder, "rows.parquet"))
        rows = glob.escape(str(Path(folder, "rows.parquet")))
        dataset = Dataset.from_parquet(rows, cache_dir=str(Path(folder, "cache")))
        dataset.save_to_disk(str(Path(folder, "dataset")))
        if path.exists():
            path.rename(Path(folder, "replaced"))
        Path(folder, "dataset").rename(path)
