"""Records as JSON lines and as parquet, with nothing of their types lost."""

import datetime
import io
import json

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from modeling_gtransformer.corpora.record_encoding import to_json_lines, to_parquet, widened, with_columns


TEXTS = pyarrow.list_(pyarrow.string())


def test_json_lines():
    records = [{"source": ["ä\u2028b"], "id": 1}, {"id": None}]
    content = to_json_lines(records, "a")
    assert content.count(b"\n") == 2 and [json.loads(line) for line in content.decode().split("\n")[:2]] == records


@pytest.mark.parametrize("value", [datetime.datetime(2020, 1, 1), b"bytes"])
def test_what_json_cannot_hold(value):
    with pytest.raises(ValueError, match=r"a\.parquet: JSON lines cannot hold all the fields, .*: write parquet"):
        to_json_lines([{"field": value}], "a.parquet")


def test_half_of_a_character():
    """JSON keeps it, and parquet, which has only whole ones, says so."""
    assert json.loads(to_json_lines([{"id": "ä\ud800"}], "a")) == {"id": "ä\ud800"}
    with pytest.raises(ValueError, match=r"a: parquet cannot hold all the fields, .*: write JSON lines"):
        widened(None, [{"id": "\ud800"}], "a")


def test_a_schema_holds_all_records():
    """Fields that come late, or were empty before, or of a wider type."""
    schema = widened(None, [{"id": 1, "note": None}, {"id": 2, "more": "x"}], "a")
    schema = widened(schema, [{"id": 2.5, "note": ["a"]}], "a")
    assert dict(zip(schema.names, schema.types, strict=True)) == {
        "id": pyarrow.float64(),
        "note": TEXTS,
        "more": pyarrow.string(),
    }
    table = pyarrow.parquet.read_table(io.BytesIO(to_parquet([{"id": 1}], schema, "a")))
    assert table.schema == schema and table.to_pylist() == [{"id": 1.0, "note": None, "more": None}]


@pytest.mark.parametrize("value", [{}, 10**20], ids=["a record without fields", "a large number"])
def test_what_parquet_cannot_hold(value):
    with pytest.raises(ValueError, match=r"a: parquet cannot hold all the fields, .*: write JSON lines"):
        widened(None, [{"id": value}], "a")


@pytest.mark.parametrize("values", [[1, "a"], [[1], 2]])
def test_fields_of_unlike_types(values):
    with pytest.raises(ValueError, match=r"a: parquet cannot hold all the fields, .*: write JSON lines"):
        widened(None, [{"id": value} for value in values], "a")
    with pytest.raises(ValueError, match="cannot hold"):
        widened(widened(None, [{"id": values[0]}], "a"), [{"id": values[1]}], "a")


def test_features_of_datasets_stay():
    """Names of classes are kept in the metadata of a schema."""
    features = datasets.Features({"label": datasets.ClassLabel(names=["x", "y"]), "old": datasets.Value("string")})
    schema = with_columns(features.arrow_schema, {"translation": TEXTS}, without=["old"])
    assert datasets.Features.from_arrow_schema(schema) == datasets.Features(
        {"label": datasets.ClassLabel(names=["x", "y"]), "translation": datasets.List(datasets.Value("string"))}
    )
    plain = with_columns(pyarrow.schema({"old": TEXTS, "id": "int64"}), {"translation": TEXTS}, without=["old"])
    assert plain == pyarrow.schema({"id": "int64", "translation": TEXTS})
