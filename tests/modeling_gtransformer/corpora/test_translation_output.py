"""Outputs in every form, each as a whole or not at all, and none that is in the way overwritten unasked."""

import gzip
import lzma
import os

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from modeling_gtransformer.corpora import translation_output
from modeling_gtransformer.corpora.translation_output import check_output, put_together
from modeling_gtransformer.runtime.usage_error import UsageError


PACKED = {
    "o.jsonl": bytes,
    "o.NDJSON": bytes,
    "o.JSONL.GZ": gzip.decompress,
    "o.jsonl.xz": lzma.decompress,
}


@pytest.mark.parametrize("name, unpack", PACKED.items())
def test_json_lines(tmp_path, name, unpack):
    for chunk in "ab":
        (tmp_path / chunk).write_text(f'"{chunk}"\n')
    contents = []
    for attempt in range(2):
        put_together([str(tmp_path / chunk) for chunk in "ab"], str(tmp_path / f"{attempt}" / name))
        contents.append((tmp_path / f"{attempt}" / name).read_bytes())
    if name.lower().endswith(".gz"):
        assert contents[0][4:8] == bytes(4)  # no time
    assert contents[0] == contents[1] and unpack(contents[0]) == b'"a"\n"b"\n'


ROWS = [{"id": 1, "note": None}, {"id": 2, "note": "x"}, {"id": 3, "note": "y"}]


@pytest.fixture
def tables(tmp_path):
    """A chunk for each of three rows."""
    schema = pyarrow.schema({"id": pyarrow.int8(), "note": pyarrow.string()})
    paths = [tmp_path / f"{number}.parquet" for number in range(3)]
    for path, row in zip(paths, ROWS, strict=True):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row], schema=schema), path)
    return [*map(str, paths)]


def test_parquet(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(translation_output, "ROW_GROUP", 2)
    put_together(tables, str(tmp_path / "out.parquet"))
    table = pyarrow.parquet.ParquetFile(tmp_path / "out.parquet")
    assert table.num_row_groups == 2 and table.read().to_pylist() == ROWS
    assert table.schema_arrow.field("id").type == pyarrow.int8()


def test_a_dataset_takes_the_place_of_another(tables, tmp_path):
    output = tmp_path / "out"
    datasets.Dataset.from_dict({"old": [1]}).save_to_disk(str(output))
    put_together(tables, str(output))
    assert datasets.load_from_disk(str(output)).to_list() == ROWS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.parquet", "1.parquet", "2.parquet", "out"]


@pytest.mark.parametrize(
    "files, output, problem",
    [
        (["in.jsonl"], "s3://bucket/out.jsonl", "must be a path"),
        (["in.jsonl"], "out.json", r"must be named \*.jsonl, \*.jsonl.gz, \*.jsonl.xz, \*.ndjson, like its input"),
        (["in.txt"], "out.txt", "must be named"),
        (["in.jsonl"], "out.parquet", "must be named"),
        (["in.parquet"], "out.jsonl", r"must be named \*.parquet"),
        (["in.jsonl", "more.jsonl"], "out.jsonl", "several files, in.jsonl, more.jsonl: translate them one by one"),
        (["data/1.arrow", "data/2.arrow"], "out.jsonl", "must be a folder"),
        (["in.jsonl"], "in.jsonl", "is the input"),
        (["data/1.arrow"], "data", "is the input"),
        (["in.jsonl"], "folder.jsonl", "is a folder: pass a file"),
        (["data/1.arrow"], "folder.jsonl/", "exists and is not a dataset"),
        (["in.jsonl"], "old.jsonl", "exists: choose another one, or pass --overwrite"),
    ],
)
def test_what_is_in_the_way(tmp_path, monkeypatch, files, output, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "data").mkdir()
    for name in ("in.jsonl", "old.jsonl", "data/1.arrow"):
        (tmp_path / name).write_text("mine")
    allowed = "--overwrite" in problem
    with pytest.raises(UsageError, match=problem):
        check_output(files, output, overwrite=not allowed)
    if allowed:
        check_output(files, output, overwrite=True)


@pytest.mark.parametrize("files, output", [(["a.jsonl"], "b.jsonl.xz"), (["a.txt"], "b.jsonl"), (["a.arrow"], "b.c/")])
def test_outputs_that_can_be_written(tmp_path, files, output):
    check_output(files, os.path.join(tmp_path, output), overwrite=False)
