"""Encodes records as the rows of a parquet file."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow
import pyarrow.parquet
from datasets import Features


Record = Mapping[str, Any]
# Key in the metadata of a schema under which `datasets` keeps its features, such as the names of classes.
FEATURES = b"huggingface"


def to_parquet(records: Sequence[Record], schema: pyarrow.Schema) -> bytes:
    """Encodes records as a parquet file with the columns of the schema."""
    file = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(records), schema=schema), file)
    return file.getvalue().to_pybytes()


def with_columns(
    schema: pyarrow.Schema, columns: Mapping[str, pyarrow.DataType], without: Collection[str]
) -> pyarrow.Schema:
    """The schema with these columns at its end, and without others."""
    gone = {*columns, *without}
    metadata = schema.metadata or {}
    new = pyarrow.schema([*(field for field in schema if field.name not in gone), *columns.items()], metadata=metadata)
    if FEATURES not in metadata:
        return new
    preserved = {name: kind for name, kind in Features.from_arrow_schema(schema).items() if name not in gone}
    added = Features.from_arrow_schema(pyarrow.schema(columns.items()))
    return new.with_metadata(Features({**preserved, **added}).arrow_schema.metadata)
