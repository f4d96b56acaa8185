"""A corpus in chunks: continued where it was stopped, byte for byte, and never with other settings."""

import datetime
import json
import shutil
from dataclasses import replace

import datasets
import pyarrow
import pyarrow.parquet
import pytest
from json_lines import write_json_lines
from safetensors.torch import load_file, save_file

from modeling_gtransformer import pipeline_gtransformer
from modeling_gtransformer.corpora.corpus_translation import translate_corpus
from modeling_gtransformer.corpora.translation_settings import TranslationSettings
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.usage_error import UsageError


SETTINGS = TranslationSettings(num_beams=1, chunk_documents=2)


def killed_at(number, calls):
    """Translates documents, but is interrupted at one of the calls; they are counted in `calls`."""

    def translate(*args, **kwargs):
        calls.append(1)
        if len(calls) == number:
            raise KeyboardInterrupt
        return translate_documents(*args, **kwargs)

    return translate


def test_a_killed_run_is_continued_byte_for_byte(trained_model, tmp_path, monkeypatch):
    records = [{"id": i, "source": [f"ba bu {i} .", "ka ."][: 1 + i % 2]} for i in range(7)]
    corpus = write_json_lines(tmp_path / "test.jsonl", records)

    def run(name, num_beams=1):
        output = tmp_path / name
        settings = TranslationSettings(num_beams=num_beams, chunk_documents=2)
        translate_corpus(str(trained_model), corpus, str(output), settings)
        return output.read_bytes()

    expected = run("straight.jsonl")
    assert [json.loads(line)["id"] for line in expected.splitlines()] == list(range(7))

    calls = []
    monkeypatch.setattr(pipeline_gtransformer, "translate_documents", killed_at(3, calls))
    with pytest.raises(KeyboardInterrupt):
        run("killed.jsonl")
    partial = tmp_path / "killed.jsonl.partial"
    assert len(list(partial.glob("*.jsonl"))) == 2 and not (tmp_path / "killed.jsonl").exists()
    (partial / ".0123.partial").write_text("the third chunk, cut off in the middle of a")
    with pytest.raises(ValueError, match="was begun with another num_beams: continue as it was begun, or remove"):
        run("killed.jsonl", num_beams=2)
    assert run("killed.jsonl") == expected and len(calls) == 5
    assert [path.name for path in tmp_path.glob("*partial*")] == []


def write_corpus(path, order=range(7)):
    return write_json_lines(path, [{"id": i, "source": [f"ba bu {i} ."]} for i in order])


@pytest.fixture
def interrupted(trained_model, tmp_path, monkeypatch):
    """A translation that was killed after its first chunk; gives a call that begins or continues it."""
    corpus = write_corpus(tmp_path / "test.jsonl")
    output = tmp_path / "out.jsonl"

    def run(model=trained_model, **settings):
        translate_corpus(str(model), corpus, str(output), replace(SETTINGS, **settings))
        return [json.loads(line)["id"] for line in output.read_text().splitlines()]

    with monkeypatch.context() as patch:
        patch.setattr(pipeline_gtransformer, "translate_documents", killed_at(2, []))
        with pytest.raises(KeyboardInterrupt):
            run()
    return run


def test_another_corpus_of_the_same_size_is_refused(interrupted, tmp_path):
    write_corpus(tmp_path / "test.jsonl", reversed(range(7)))
    with pytest.raises(UsageError, match="was begun with another input: continue as it was begun, or remove"):
        interrupted()
    write_corpus(tmp_path / "test.jsonl")
    assert interrupted() == [*range(7)]


def test_other_weights_under_the_same_name_are_refused(interrupted, trained_model, tmp_path):
    other = shutil.copytree(trained_model, tmp_path / "model")
    weights = load_file(other / "model.safetensors")
    name = next(name for name in weights if name.endswith("fc1.bias"))
    save_file(weights | {name: weights[name] + 1}, other / "model.safetensors", {"format": "pt"})
    with pytest.raises(UsageError, match="was begun with another weights"):
        interrupted(other)


def test_the_same_model_in_another_place_continues(interrupted, trained_model, tmp_path):
    assert interrupted(shutil.copytree(trained_model, tmp_path / "moved")) == [*range(7)]


def test_a_typo_in_the_model_blocks_nothing(trained_model, tmp_path):
    corpus, output = write_corpus(tmp_path / "test.jsonl"), tmp_path / "out.jsonl"
    with pytest.raises(UsageError, match="cannot be loaded"):
        translate_corpus(f"{trained_model}x", corpus, str(output), TranslationSettings())
    assert [path.name for path in tmp_path.iterdir()] == ["test.jsonl"]


def test_a_corpus_that_changes_while_it_is_translated(trained_model, tmp_path, monkeypatch):
    corpus = write_corpus(tmp_path / "test.jsonl")

    def change(*args, **kwargs):
        write_corpus(corpus, reversed(range(7)))
        return translate_documents(*args, **kwargs)

    monkeypatch.setattr(pipeline_gtransformer, "translate_documents", change)
    with pytest.raises(ValueError, match="changed while it was translated"):
        translate_corpus(str(trained_model), corpus, str(tmp_path / "out.jsonl"), TranslationSettings())
    assert not (tmp_path / "out.jsonl").exists()


def test_nothing_is_overwritten_unasked(trained_model, tmp_path):
    corpus, output = write_corpus(tmp_path / "test.jsonl"), tmp_path / "out.jsonl"
    before = (tmp_path / "test.jsonl").read_bytes()
    model, settings = str(trained_model), TranslationSettings(num_beams=1)
    with pytest.raises(UsageError, match="is the input"):
        translate_corpus(model, corpus, corpus, settings, overwrite=True)
    assert (tmp_path / "test.jsonl").read_bytes() == before
    output.write_text("mine")
    with pytest.raises(UsageError, match="exists: give another one, or --overwrite"):
        translate_corpus(model, corpus, str(output), settings)
    assert output.read_text() == "mine"
    translate_corpus(model, corpus, str(output), settings, overwrite=True)
    again = tmp_path / "again.jsonl"
    with pytest.raises(UsageError, match="already has a field 'translation'"):
        translate_corpus(model, str(output), str(again), settings)
    translate_corpus(model, str(output), str(again), settings, overwrite=True)
    assert again.read_bytes() == output.read_bytes()


def test_no_link_is_followed(trained_model, tmp_path):
    corpus = write_corpus(tmp_path / "test.jsonl")
    (tmp_path / "victim").mkdir()
    (tmp_path / "out.jsonl.partial").symlink_to(tmp_path / "victim")
    with pytest.raises(UsageError, match="is a link: remove it"):
        translate_corpus(str(trained_model), corpus, str(tmp_path / "out.jsonl"), SETTINGS)
    assert [*(tmp_path / "victim").iterdir()] == []


def test_warnings_say_where_in_the_corpus(trained_model, tmp_path, caplog):
    corpus = write_json_lines(tmp_path / "test.jsonl", [{"source": ["ba ."]}, {"source": ["ka .", "ba bu " * 200]}])
    translate_corpus(str(trained_model), corpus, str(tmp_path / "out.jsonl"), TranslationSettings())
    assert f"{corpus}:2 (source, sentence 2) has 400 tokens" in caplog.text


def test_a_plain_translator(sentence_level_checkpoint, tmp_path):
    corpus, output = write_json_lines(tmp_path / "test.jsonl", [{"source": ["it is old"]}]), tmp_path / "out.jsonl"
    settings = TranslationSettings(src_lang="eng_Latn", tgt_lang="fra_Latn")
    translate_corpus(sentence_level_checkpoint("m2m_100-nllb"), corpus, str(output), settings)
    assert json.loads(output.read_text())["translation"] == ["sie ist alt"]


@pytest.fixture
def translated(trained_model, tmp_path):
    """Translates a file or folder of the temporary folder into another one there."""

    def run(input, output):
        translate_corpus(str(trained_model), str(tmp_path / input), f"{tmp_path}/{output}", SETTINGS)
        return tmp_path / output

    return run


def test_a_table_of_json_lines(translated, tmp_path):
    write_corpus(tmp_path / "test.jsonl")
    expected = [json.loads(line) for line in translated("test.jsonl", "out.jsonl").read_text().splitlines()]
    table = pyarrow.parquet.read_table(translated("test.jsonl", "out.parquet"))
    assert table.to_pylist() == expected and table.schema.field("id").type == pyarrow.int64()


def test_files_of_which_no_table_can_be_made(translated, tmp_path):
    """That is known before any is translated."""
    (tmp_path / "corpus").mkdir()
    for name, value in (("a", 1), ("b", "x")):
        write_json_lines(tmp_path / "corpus" / f"{name}.jsonl", [{"id": value, "source": ["ba ."]}])
    with pytest.raises(ValueError, match="parquet cannot hold all the fields"):
        translated("corpus", "out.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus"]


def test_tables_and_datasets_keep_their_types(translated, tmp_path):
    """Also those that JSON does not have."""
    rows = [{"id": i, "source": [f"ba bu {i} ."], "time": datetime.datetime(2020, 1, 1 + i)} for i in range(7)]
    dataset = datasets.Dataset.from_list(rows).cast_column("id", datasets.ClassLabel(num_classes=7))
    dataset.save_to_disk(str(tmp_path / "dataset"), num_shards=2)
    dataset.to_parquet(str(tmp_path / "table.parquet"))
    for corpus in ("dataset", "table.parquet"):
        saved = datasets.load_from_disk(str(translated(corpus, f"from.{corpus}/")))
        assert saved.select_columns([*rows[0]]).to_list() == rows
        assert saved.features["id"] == dataset.features["id"]
        assert [len(translation) for translation in saved["translation"]] == [1] * 7
    with pytest.raises(ValueError, match=r"JSON lines cannot hold all the fields, .*datetime.*: write parquet"):
        translated("dataset", "dataset.jsonl")
    assert not list(tmp_path.glob("*partial*"))


def test_a_folder_is_translated_file_by_file(translated, tmp_path):
    (tmp_path / "corpus").mkdir()
    write_corpus(tmp_path / "corpus" / "b.jsonl", range(3, 7))
    write_corpus(tmp_path / "corpus" / "a.jsonl", range(3))
    write_corpus(tmp_path / "all.jsonl")
    expected = translated("all.jsonl", "file.jsonl").read_bytes()
    assert translated("corpus", "folder.jsonl").read_bytes() == expected
