"""Documents are checked as they are stored, and found again; their places are those in the files."""

import json

import datasets
import pytest

from modeling_gtransformer.corpora import corpus
from modeling_gtransformer.corpora.stored_corpus import StoredCorpus


COLUMNS = ("en", "de")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def test_problems_are_listed_at_every_start(tmp_path):
    good = json.dumps({"en": ["a"], "de": ["b"]})
    files = [write(tmp_path / f"{name}.jsonl", good, '{"en": [3], "de": ["b"]}', good, "{") for name in "xy"]
    for _ in range(2):
        with pytest.raises(ValueError) as error:
            StoredCorpus.from_files(files, COLUMNS)
        assert str(error.value).startswith("4 problems in the corpus")
        assert f"{files[1]}:2 (en, sentence 1): a sentence must be text, not int" in str(error.value)


def test_documents_are_read_once(tmp_path, monkeypatch):
    record = {"en": ["a", "b"], "de": ["c", "d"], "fr": ["e", "f"]}
    files = [write(tmp_path / "train.jsonl", json.dumps(record))]
    reads = []
    read_lines = corpus._read_json_lines
    monkeypatch.setattr(corpus, "_read_json_lines", lambda *args: reads.append(args) or read_lines(*args))
    first, again, other = (StoredCorpus.from_files(files, columns) for columns in (COLUMNS, COLUMNS, ("en", "fr")))
    assert len(reads) == 2
    assert first.documents[:] == again.documents[:] == {"en": [["a", "b"]], "de": [["c", "d"]]}
    assert other.documents[:] == {"en": [["a", "b"]], "fr": [["e", "f"]]}
    assert again.documents.cache_files, "held in memory"


def test_a_folder_of_tables(tmp_path):
    for number in range(2):
        (tmp_path / "corpus").mkdir(exist_ok=True)
        table = datasets.Dataset.from_list([{"id": number, "en": [f"a{number}"], "de": ["b"]}])
        table.to_parquet(tmp_path / "corpus" / f"{number}.parquet")
    stored = StoredCorpus.from_files([str(tmp_path / "corpus")], COLUMNS)
    assert stored.documents[:] == {"en": [["a0"], ["a1"]], "de": [["b"], ["b"]]}
    assert stored.where(document=1, sentence=0) == f"{tmp_path}/corpus/1.parquet[0] (en, sentence 1)"


def test_a_streamed_dataset_has_a_version():
    table = datasets.Dataset.from_list([{"en": ["a"], "de": ["b"]}])
    with pytest.raises(ValueError, match="needs a version"):
        StoredCorpus.from_dataset(table.to_iterable_dataset(), COLUMNS)
    stored = StoredCorpus.from_dataset(table.to_iterable_dataset(), COLUMNS, version="1")
    assert stored.documents[:] == table[:]


def test_where_a_sentence_stands(tmp_path):
    files = [write(tmp_path / f"train.{column}", "one", "<d>", "two", "three") for column in COLUMNS]
    assert StoredCorpus.from_files(files, COLUMNS).where(document=1, sentence=1) == f"{files[0]}:4"
    records = datasets.Dataset.from_list([{"en": ["a"], "de": ["b"]}])
    assert StoredCorpus.from_dataset(records, COLUMNS, "wmt").where(0, 0) == "wmt[0] (en, sentence 1)"


def test_a_corpus_that_changes_while_it_is_read_is_not_kept(tmp_path, monkeypatch):
    """It would be found again as the corpus that it was before."""
    file = tmp_path / "train.jsonl"
    before, after = (json.dumps({"en": [word], "de": [word]}) for word in ("old", "new"))
    write(file, before, before)
    read_lines = corpus._read_json_lines

    def overtaken(path, problems):
        documents = read_lines(path, problems)
        yield next(documents)
        write(file, after, before)
        yield from documents

    with monkeypatch.context() as patch:
        patch.setattr(corpus, "_read_json_lines", overtaken)
        with pytest.raises(ValueError, match=r"train.jsonl changed while being read: start again"):
            StoredCorpus.from_files([str(file)], COLUMNS)
    assert StoredCorpus.from_files([str(file)], COLUMNS).documents[:]["en"] == [["new"], ["old"]]
    write(file, before, before)
    assert StoredCorpus.from_files([str(file)], COLUMNS).documents[:]["en"] == [["old"], ["old"]]
