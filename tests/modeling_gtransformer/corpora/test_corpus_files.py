"""Files of a corpus are found by paths and URIs, in folders, and in what `datasets` has saved."""

import datasets
import pytest
from transformers.utils import logging

from modeling_gtransformer.corpora.corpus_files import (
    files_of,
    files_of_all,
    has_columns,
    has_extension,
    lies_in,
    open_binary,
    open_table,
    within,
)


@pytest.mark.parametrize("address", ["{}", "file://{}"])
def test_a_folder_has_its_files_in_order(tmp_path, address, caplog):
    """And what is left out is named."""
    logging.enable_propagation()
    for name in ("b.jsonl", "a.parquet", "c.txt.gz", "D.JSONL", "e.ndjson", "readme.md", "_SUCCESS", ".hidden.jsonl"):
        (tmp_path / name).write_text("")
    (tmp_path / "more.jsonl").mkdir()
    folder = address.format(tmp_path)
    names = ("D.JSONL", "a.parquet", "b.jsonl", "c.txt.gz", "e.ndjson")
    assert files_of(folder) == [f"{folder}/{name}" for name in names]
    assert all(map(has_columns, (names[0], names[4])))  # and are no text
    assert files_of(f"{folder}/readme.md") == [f"{folder}/readme.md"]
    assert caplog.messages[0].endswith(": more.jsonl, readme.md.")


@pytest.mark.parametrize("address", ["{}", "file://{}"])
def test_names_that_mean_something_in_a_uri(tmp_path, address):
    names = ["50%.jsonl", "a#1.jsonl", "a?b.jsonl", "my talk.jsonl", "ä.jsonl"]
    for name in names:
        (tmp_path / name).write_text(name)
    files = files_of(address.format(tmp_path))
    assert [open_binary(file).read().decode() for file in files] == names


def test_texts_of_a_folder_are_of_one_column(tmp_path):
    """Names do not say which is which."""
    for language in ("de", "en"):
        (tmp_path / f"{language}.txt").write_text("x")
    texts = [str(tmp_path / f"{language}.txt") for language in ("en", "de")]
    assert files_of_all(texts, 2) == texts and files_of_all([str(tmp_path)], 1) == texts[::-1]
    with pytest.raises(ValueError, match="pass the files one by one"):
        files_of_all([str(tmp_path)], 2)


def test_what_lies_in_a_folder(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert lies_in(str(tmp_path / "link" / "b"), str(tmp_path / "a")) and lies_in("s3://a/b/", "s3://a")
    assert not lies_in(str(tmp_path / "ab"), str(tmp_path / "a")) and not lies_in("s3://ab", "s3://a")


def test_a_folder_without_files(tmp_path):
    with pytest.raises(ValueError, match="the folder has neither a dataset nor files named"):
        files_of(str(tmp_path))


def test_a_dataset_has_the_files_that_it_lists(tmp_path):
    folder = str(tmp_path / "saved")
    datasets.Dataset.from_dict({"en": [["a."], ["b."]]}).save_to_disk(folder, num_shards=2)
    datasets.load_from_disk(folder).map(lambda row: {"de": row["en"]})  # leaves a file of its cache there
    assert len(list((tmp_path / "saved").glob("*.arrow"))) == 3
    files = files_of(folder)
    assert files == [f"{folder}/data-0000{number}-of-00002.arrow" for number in range(2)]
    with open_table(files[1]) as (schema, batches):
        assert schema.names == ["en"] and [row for b in batches for row in b.to_pylist()] == [{"en": ["b."]}]


def test_options_of_a_file_system_are_no_part_of_a_name():
    folder = "s3://bucket/corpus?region=eu&scheme=http"
    file = within(folder, "a.jsonl.gz")
    assert file == "s3://bucket/corpus/a.jsonl.gz?region=eu&scheme=http"
    assert has_columns(file) and has_extension(file, ".gz") and not has_columns(folder)


def test_unknown_file_systems():
    with pytest.raises(ValueError, match="foo://"):
        files_of("foo://bucket/a.jsonl")
