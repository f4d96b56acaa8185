"""Outputs in every form, each as a whole or not at all, and none that is in the way overwritten unasked."""

import gzip
import lzma
import os

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from modeling_gtransformer.corpora import translation_output
from modeling_gtransformer.corpora.translation_output import check_output, is_table, put_together
from modeling_gtransformer.usage_error import UsageError


PACKED = {"o.jsonl": bytes, "o.jsonl.gz": gzip.decompress, "o.jsonl.xz": lzma.decompress}


@pytest.mark.parametrize("name, unpack", PACKED.items())
def test_json_lines(tmp_path, name, unpack):
    for chunk in "ab":
        (tmp_path / chunk).write_text(f'"{chunk}"\n')
    contents = []
    for attempt in range(2):
        put_together([str(tmp_path / chunk) for chunk in "ab"], str(tmp_path / f"{attempt}" / name))
        contents.append((tmp_path / f"{attempt}" / name).read_bytes())
    if name.endswith(".gz"):
        assert contents[0][4:8] == bytes(4)  # no time
    assert contents[0] == contents[1] and unpack(contents[0]) == b'"a"\n"b"\n'


@pytest.fixture
def tables(tmp_path):
    """Chunks of two files, of which one has wider columns."""
    rows = [{"id": 1}, {"id": 2}, {"id": 2.5, "note": "x"}]
    for number, row in enumerate(rows):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / f"{number}.parquet")
    return [str(tmp_path / f"{number}.parquet") for number in range(3)]


EXPECTED = [{"id": 1.0, "note": None}, {"id": 2.0, "note": None}, {"id": 2.5, "note": "x"}]


def test_parquet(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(translation_output, "ROW_GROUP", 2)
    put_together(tables, str(tmp_path / "out.parquet"))
    table = pyarrow.parquet.ParquetFile(tmp_path / "out.parquet")
    assert table.num_row_groups == 2 and table.read().to_pylist() == EXPECTED


@pytest.mark.parametrize("name", ["out", "o[u]t"])
def test_a_dataset_takes_the_place_of_another(tables, tmp_path, name):
    output = tmp_path / name
    datasets.Dataset.from_dict({"old": [1]}).save_to_disk(str(output))
    put_together(tables, str(output))
    assert datasets.load_from_disk(str(output)).to_list() == EXPECTED
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.parquet", "1.parquet", "2.parquet", name]


@pytest.mark.parametrize("name", ["out.json", "out.txt", "wmt.en-de"])
def test_names_that_say_no_form(name):
    with pytest.raises(UsageError, match="must be named"):
        check_output("in.jsonl", name, overwrite=False)
    with pytest.raises(UsageError, match="must be a path"):
        check_output("in.jsonl", f"s3://bucket/{name}", overwrite=False)


def test_names_that_say_a_form(tmp_path):
    forms = {"a.jsonl": False, "a.jsonl.xz": False, "a.parquet": True, "a": True, "a.en-de/": True}
    for name, expected in forms.items():
        check_output("in.jsonl", os.path.join(tmp_path, name), overwrite=False)
        assert is_table(name) == expected


def test_what_is_in_the_way(tmp_path):
    corpus = tmp_path / "in.jsonl"
    corpus.write_text("mine")
    with pytest.raises(UsageError, match="is the input"):
        check_output(str(corpus), str(corpus), overwrite=True)
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(UsageError, match="is a folder: give a file"):
        check_output(str(corpus), str(tmp_path / "folder.jsonl"), overwrite=True)
    (tmp_path / "home").mkdir()
    with pytest.raises(UsageError, match="exists and is not a dataset"):
        check_output(str(corpus), str(tmp_path / "home"), overwrite=True)
    with pytest.raises(UsageError, match="lies in the input"):
        check_output(str(tmp_path), str(tmp_path / "home" / "a.jsonl"), overwrite=True)
    output = tmp_path / "out.jsonl"
    output.write_text("mine")
    with pytest.raises(UsageError, match="exists: give another one, or --overwrite"):
        check_output(str(corpus), str(output), overwrite=False)
    check_output(str(corpus), str(output), overwrite=True)
