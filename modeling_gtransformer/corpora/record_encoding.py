"""Encodes records as the bytes of a file: JSON lines, or parquet with the columns of a schema."""

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow
import pyarrow.parquet
from datasets import Features

from ..json_line import json_line


Record = Mapping[str, Any]
# Key in the metadata of a schema under which `datasets` keeps its features, such as the names of classes.
FEATURES = b"huggingface"


def to_json_lines(records: Sequence[Record], name: str) -> bytes:
    """
    Encodes records as JSON lines.

    Args:
        name: name of the records in errors.

    Raises:
        ValueError: JSON cannot hold one of the fields, for example a time.
    """
    try:
        return b"".join(map(json_line, records))
    except TypeError as error:
        raise ValueError(f"{name}: JSON lines cannot hold all the fields, {error}: write parquet.") from error


def to_parquet(records: Sequence[Record], schema: pyarrow.Schema, name: str) -> bytes:
    """
    Encodes records as a parquet file with the columns of the schema; missing fields are null.

    Args:
        name: name of the records in errors.

    Raises:
        ValueError: parquet cannot hold one of the fields.
    """
    file = pyarrow.BufferOutputStream()
    with _errors_of(name):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(records), schema=schema), file)
    return file.getvalue().to_pybytes()


def joint_schema(schemas: Sequence[pyarrow.Schema], name: str) -> pyarrow.Schema:
    """
    Finds a schema that holds all of these.

    Args:
        name: name of the records in errors.

    Raises:
        ValueError: a field has different types.
    """
    with _errors_of(name):
        return pyarrow.unify_schemas(list(schemas), promote_options="permissive")


@contextlib.contextmanager
def _errors_of(name: str) -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise ValueError(f"{name}: parquet cannot hold all the fields, {error}: write JSON lines.") from error


def widened(schema: pyarrow.Schema | None, records: Sequence[Record], name: str) -> pyarrow.Schema:
    """
    Extends the schema to hold these records with all their fields.

    Args:
        name: name of the records in errors.

    Raises:
        ValueError: a field has values of different types.
    """
    fields = dict.fromkeys(field for record in records for field in record)
    with _errors_of(name):
        table = pyarrow.table({field: [record.get(field) for record in records] for field in fields})
    to_parquet(records, table.schema, name)  # parquet does not support every type of a table
    return joint_schema([table.schema] if schema is None else [schema, table.schema], name)


def with_columns(
    schema: pyarrow.Schema, columns: Mapping[str, pyarrow.DataType], without: Collection[str]
) -> pyarrow.Schema:
    """The schema with these columns at its end, and without others."""
    gone = {*columns, *without}
    metadata = schema.metadata or {}
    new = pyarrow.schema([*(field for field in schema if field.name not in gone), *columns.items()], metadata=metadata)
    if FEATURES not in metadata:
        return new
    kept = {name: kind for name, kind in Features.from_arrow_schema(schema).items() if name not in gone}
    added = Features.from_arrow_schema(pyarrow.schema(columns.items()))
    return new.with_metadata(Features({**kept, **added}).arrow_schema.metadata)
