"""Records as the rows of a table, with nothing of their types lost."""

import io

import datasets
import pyarrow
import pyarrow.parquet

from modeling_gtransformer.corpora.record_encoding import to_parquet, with_columns


TEXTS = pyarrow.list_(pyarrow.string())


def test_rows_have_the_columns_of_the_schema():
    schema = pyarrow.schema({"id": pyarrow.int8(), "note": pyarrow.string()})
    table = pyarrow.parquet.read_table(io.BytesIO(to_parquet([{"id": 1}], schema)))
    assert table.schema == schema and table.to_pylist() == [{"id": 1, "note": None}]


def test_features_of_datasets_stay():
    """Names of classes are kept in the metadata of a schema."""
    features = datasets.Features({"label": datasets.ClassLabel(names=["x", "y"]), "old": datasets.Value("string")})
    schema = with_columns(features.arrow_schema, {"translation": TEXTS}, without=["old"])
    assert datasets.Features.from_arrow_schema(schema) == datasets.Features(
        {"label": datasets.ClassLabel(names=["x", "y"]), "translation": datasets.List(datasets.Value("string"))}
    )
    plain = with_columns(pyarrow.schema({"old": TEXTS, "id": "int64"}), {"translation": TEXTS}, without=["old"])
    assert plain == pyarrow.schema({"id": "int64", "translation": TEXTS})
