"""A corpus in chunks: continued where it was stopped, byte for byte, and never with other settings."""

import datetime
import json
import shutil
from dataclasses import replace

import datasets
import pyarrow
import pyarrow.parquet
import pytest
from json_lines import read_json_lines, write_json_lines

from modeling_gtransformer import GTransformerForConditionalGeneration, pipeline_gtransformer
from modeling_gtransformer.corpora.corpus_translation import translate_corpus
from modeling_gtransformer.document_translation import translate_in_steps
from modeling_gtransformer.runtime.usage_error import UsageError
from modeling_gtransformer.translation_options import CorpusOptions


SETTINGS = CorpusOptions(num_beams=1, chunk_documents=2)


def killed_at(number, calls):
    """Translates documents, but is interrupted at one of the calls; they are counted in `calls`."""

    def translate(*args, **kwargs):
        calls.append(1)
        if len(calls) == number:
            raise KeyboardInterrupt
        return translate_in_steps(*args, **kwargs)

    return translate


def test_a_killed_run_is_continued_byte_for_byte(trained_model, tmp_path, monkeypatch):
    records = [{"id": i, "source": [f"ba bu {i} .", "ka ."][: 1 + i % 2]} for i in range(7)]
    corpus = write_json_lines(tmp_path / "test.jsonl", records)

    def run(name, num_beams=1):
        output = tmp_path / name
        settings = CorpusOptions(num_beams=num_beams, chunk_documents=2)
        translate_corpus(str(trained_model), corpus, str(output), settings)
        return output.read_bytes()

    expected = run("straight.jsonl")
    assert [json.loads(line)["id"] for line in expected.splitlines()] == list(range(7))

    calls = []
    monkeypatch.setattr(pipeline_gtransformer, "translate_in_steps", killed_at(3, calls))
    with pytest.raises(KeyboardInterrupt):
        run("killed.jsonl")
    partial = tmp_path / "killed.jsonl.partial"
    assert len(list(partial.glob("*.jsonl"))) == 2 and not (tmp_path / "killed.jsonl").exists()
    (partial / ".0123.partial").write_text("the third chunk, cut off in the middle of a")
    with pytest.raises(ValueError, match="was begun with another num_beams: use the earlier one, or remove"):
        run("killed.jsonl", num_beams=2)
    assert run("killed.jsonl") == expected and len(calls) == 5
    assert [path.name for path in tmp_path.glob("*partial*")] == []


@pytest.mark.parametrize("free", [False, True])
def test_options_reach_the_model(trained_model, tmp_path, monkeypatch, free):
    beams = []
    generate = GTransformerForConditionalGeneration.generate

    def observed(self, **arguments):
        beams.append(arguments.get("num_beams"))
        return generate(self, **arguments)

    monkeypatch.setattr(GTransformerForConditionalGeneration, "generate", observed)
    settings = replace(SETTINGS, num_beams=3, free=free)
    translate_corpus(str(trained_model), write_corpus(tmp_path / "test.jsonl"), str(tmp_path / "out.jsonl"), settings)
    assert {*beams} == {3}


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
        patch.setattr(pipeline_gtransformer, "translate_in_steps", killed_at(2, []))
        with pytest.raises(KeyboardInterrupt):
            run()
    return run


def test_another_corpus_of_the_same_size_is_refused(interrupted, tmp_path):
    write_corpus(tmp_path / "test.jsonl", reversed(range(7)))
    with pytest.raises(UsageError, match="was begun with another input: use the earlier one, or remove"):
        interrupted()
    write_corpus(tmp_path / "test.jsonl")
    assert interrupted() == [*range(7)]


def test_the_same_model_in_another_place_continues(interrupted, trained_model, tmp_path):
    assert interrupted(shutil.copytree(trained_model, tmp_path / "moved")) == [*range(7)]


def test_a_typo_in_the_model_blocks_nothing(trained_model, tmp_path):
    corpus, output = write_corpus(tmp_path / "test.jsonl"), tmp_path / "out.jsonl"
    with pytest.raises(UsageError, match="is a folder that does not exist"):
        translate_corpus(f"{trained_model}x", corpus, str(output), CorpusOptions())
    assert [path.name for path in tmp_path.iterdir()] == ["test.jsonl"]


def test_a_corpus_that_changes_while_it_is_translated(trained_model, tmp_path, monkeypatch):
    corpus = write_corpus(tmp_path / "test.jsonl")

    def change(*args, **kwargs):
        write_corpus(corpus, reversed(range(7)))
        return translate_in_steps(*args, **kwargs)

    monkeypatch.setattr(pipeline_gtransformer, "translate_in_steps", change)
    with pytest.raises(ValueError, match="changed during the translation"):
        translate_corpus(str(trained_model), corpus, str(tmp_path / "out.jsonl"), CorpusOptions())
    assert not (tmp_path / "out.jsonl").exists()


def test_nothing_is_overwritten_unasked(trained_model, tmp_path):
    corpus, output = write_corpus(tmp_path / "test.jsonl"), tmp_path / "out.jsonl"
    model, settings = str(trained_model), CorpusOptions(num_beams=1)
    output.write_text("mine")
    with pytest.raises(UsageError, match="exists: choose another one, or pass --overwrite"):
        translate_corpus(model, corpus, str(output), settings)
    assert output.read_text() == "mine"
    translate_corpus(model, corpus, str(output), settings, overwrite=True)
    again = tmp_path / "again.jsonl"
    with pytest.raises(ValueError, match="already has a field 'translation'"):
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
    translate_corpus(str(trained_model), corpus, str(tmp_path / "out.jsonl"), CorpusOptions())
    assert f"{corpus}:2 (source, sentence 2) has 400 tokens" in caplog.text


def test_a_plain_translator(sentence_level_checkpoint, tmp_path):
    corpus, output = write_json_lines(tmp_path / "test.jsonl", [{"source": ["it is old"]}]), tmp_path / "out.jsonl"
    settings = CorpusOptions(src_lang="eng_Latn", tgt_lang="fra_Latn")
    translate_corpus(sentence_level_checkpoint("m2m_100-nllb"), corpus, str(output), settings)
    assert json.loads(output.read_text())["translation"] == ["sie ist alt"]


@pytest.fixture
def translated(trained_model, tmp_path):
    """Translates a file or folder of the temporary folder into another one there."""

    def run(input, output):
        translate_corpus(str(trained_model), str(tmp_path / input), f"{tmp_path}/{output}", SETTINGS)
        return tmp_path / output

    return run


def test_tables_and_datasets_keep_their_types(translated, tmp_path):
    """Also those that JSON does not have."""
    rows = [{"id": i, "source": [f"ba bu {i} ."], "time": datetime.datetime(2020, 1, 1 + i)} for i in range(7)]
    dataset = datasets.Dataset.from_list(rows).cast_column("id", datasets.ClassLabel(num_classes=7))
    dataset.save_to_disk(str(tmp_path / "data[s]et"), num_shards=2)
    dataset.to_parquet(str(tmp_path / "table.parquet"))
    saved = datasets.load_from_disk(str(translated("data[s]et", "translated.en-de/")))
    table = datasets.Dataset.from_parquet(str(translated("table.parquet", "translated.parquet")))
    for translation in (saved, table):
        assert translation.select_columns([*rows[0]]).to_list() == rows
        assert translation.features["id"] == dataset.features["id"]
        assert [len(sentences) for sentences in translation["translation"]] == [1] * 7
    assert not list(tmp_path.glob("*partial*"))


@pytest.mark.parametrize("name", ["dictionary", "string_view", "large_string"])
def test_a_text_in_a_table_is_translated_as_a_text(translated, tmp_path, name):
    text = pyarrow.array(["ba .", "ka .", "ba ."])
    column = text.dictionary_encode() if name == "dictionary" else text.cast(getattr(pyarrow, name)())
    pyarrow.parquet.write_table(pyarrow.table({"source": column}), tmp_path / "table.parquet")
    table = pyarrow.parquet.read_table(translated("table.parquet", "out.parquet"))
    assert table["source"].to_pylist() == text.to_pylist()
    assert all(isinstance(each, str) for each in table["translation"].to_pylist())


def test_texts_and_blank_sentences_stay_what_they_are(translated, tmp_path):
    write_json_lines(tmp_path / "test.jsonl", [{"source": "ba .\n\nka ."}, {"source": ["ba .", ""]}, {"source": []}])
    text, sentences, nothing = map(json.loads, translated("test.jsonl", "out.jsonl").read_text().splitlines())
    assert text["translation"].count("\n") == 2 and text["segments"] == [2]
    assert sentences["translation"][1] == "" and nothing["translation"] == []


def test_text_with_document_lines(translated, tmp_path):
    (tmp_path / "test.txt").write_text("<d>\nba bu .\nka .\n<d>\nmo .\n")
    rows = [json.loads(line) for line in translated("test.txt", "out.jsonl").read_text().splitlines()]
    assert [row["source"] for row in rows] == [["ba bu .", "ka ."], ["mo ."]]
    assert [len(row["translation"]) for row in rows] == [2, 1]


def test_free_translation_says_what_came_of_each_segment(trained_model, tmp_path):
    source = ["ba bu .", "to </s> ka .", "re .", "la lo ri ."]
    corpus, output = write_json_lines(tmp_path / "test.jsonl", [{"source": source}]), str(tmp_path / "out.jsonl")
    translate_corpus(str(trained_model), corpus, output, CorpusOptions(free=True, segment_tokens=24))
    [row] = read_json_lines(output)
    assert sum(row["segments"]) == 4 and len(row["translated_segments"]) == len(row["segments"]) > 1
    assert sum(row["translated_segments"]) == len(row["translation"])
    # Translated again sentence by sentence, nothing of that is left.
    translate_corpus(str(trained_model), output, str(tmp_path / "aligned.jsonl"), SETTINGS, overwrite=True)
    [row] = read_json_lines(tmp_path / "aligned.jsonl")
    assert "translated_segments" not in row and len(row["translation"]) == 4
