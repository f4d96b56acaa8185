"""A corpus in chunks: continued where it was stopped, byte for byte, and never with other settings."""

import datetime
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


def write_corpus(path, order=range(7)):
    return write_json_lines(path, [{"id": i, "source": [f"ba bu {i} .", "ka ."][: 1 + i % 2]} for i in order])


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "test.jsonl")


@pytest.fixture
def translated(trained_model, tmp_path):
    """Translates a file or folder of the temporary folder into another one there."""

    def run(input="test.jsonl", output="out.jsonl", model=trained_model, overwrite=False, **options):
        settings = replace(SETTINGS, **options)
        translate_corpus(str(model), f"{tmp_path}/{input}", f"{tmp_path}/{output}", settings, overwrite)
        return tmp_path / output

    return run


@pytest.fixture
def interrupted(corpus, translated, tmp_path, monkeypatch):
    """The folder of a translation that was killed in its third chunk."""
    with monkeypatch.context() as patch:
        patch.setattr(pipeline_gtransformer, "translate_in_steps", killed_at(3, []))
        with pytest.raises(KeyboardInterrupt):
            translated()
    return tmp_path / "out.jsonl.partial"


def ids(output):
    return [row["id"] for row in read_json_lines(output)]


def test_a_killed_run_is_continued_byte_for_byte(interrupted, translated, tmp_path, monkeypatch):
    assert len(list(interrupted.glob("*.jsonl"))) == 2 and not (tmp_path / "out.jsonl").exists()
    (interrupted / ".0123.partial").write_text("the third chunk, cut off in the middle of a")
    with pytest.raises(ValueError, match="was begun with another num_beams: use the earlier one, or remove"):
        translated(num_beams=2)
    calls = []
    monkeypatch.setattr(pipeline_gtransformer, "translate_in_steps", killed_at(None, calls))
    continued = translated()
    assert len(calls) == 2 and ids(continued) == [*range(7)]
    assert continued.read_bytes() == translated(output="straight.jsonl").read_bytes()
    assert not list(tmp_path.glob("*partial*"))


@pytest.mark.usefixtures("interrupted")
def test_another_corpus_of_the_same_size_is_refused(translated, tmp_path):
    write_corpus(tmp_path / "test.jsonl", reversed(range(7)))
    with pytest.raises(UsageError, match="was begun with another input: use the earlier one, or remove"):
        translated()
    write_corpus(tmp_path / "test.jsonl")
    assert ids(translated()) == [*range(7)]


@pytest.mark.usefixtures("interrupted")
def test_the_same_model_in_another_place_continues(translated, trained_model, tmp_path):
    assert ids(translated(model=shutil.copytree(trained_model, tmp_path / "moved"))) == [*range(7)]


@pytest.mark.usefixtures("corpus")
@pytest.mark.parametrize("free", [False, True])
def test_options_reach_the_model(translated, monkeypatch, free):
    beams = []
    generate = GTransformerForConditionalGeneration.generate

    def observed(self, **arguments):
        beams.append(arguments.get("num_beams"))
        return generate(self, **arguments)

    monkeypatch.setattr(GTransformerForConditionalGeneration, "generate", observed)
    translated(num_beams=3, free=free)
    assert {*beams} == {3}


@pytest.mark.usefixtures("corpus")
def test_a_typo_in_the_model_blocks_nothing(translated, trained_model, tmp_path):
    with pytest.raises(UsageError, match="is a folder that does not exist"):
        translated(model=f"{trained_model}x")
    assert [path.name for path in tmp_path.iterdir()] == ["test.jsonl"]


def test_a_corpus_that_changes_while_it_is_translated(corpus, translated, tmp_path, monkeypatch):
    def change(*args, **kwargs):
        write_corpus(corpus, reversed(range(7)))
        return translate_in_steps(*args, **kwargs)

    monkeypatch.setattr(pipeline_gtransformer, "translate_in_steps", change)
    with pytest.raises(ValueError, match="changed during the translation"):
        translated()
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.usefixtures("corpus")
def test_nothing_is_overwritten_unasked(translated, tmp_path):
    output = tmp_path / "out.jsonl"
    output.write_text("mine")
    with pytest.raises(UsageError, match="exists: choose another one, or pass --overwrite"):
        translated()
    assert output.read_text() == "mine"
    translated(overwrite=True)
    with pytest.raises(ValueError, match="already has a field 'translation'"):
        translated("out.jsonl", "again.jsonl")
    assert translated("out.jsonl", "again.jsonl", overwrite=True).read_bytes() == output.read_bytes()


@pytest.mark.usefixtures("corpus")
def test_no_link_is_followed(translated, tmp_path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "out.jsonl.partial").symlink_to(tmp_path / "victim")
    with pytest.raises(UsageError, match="is a link: remove it"):
        translated()
    assert [*(tmp_path / "victim").iterdir()] == []


def test_warnings_say_where_in_the_corpus(translated, tmp_path, caplog):
    corpus = write_json_lines(tmp_path / "test.jsonl", [{"source": ["ba ."]}, {"source": ["ka .", "ba bu " * 200]}])
    translated()
    assert f"{corpus}:2 (source, sentence 2) has 400 tokens" in caplog.text


def test_a_plain_translator(sentence_level_checkpoint, translated, tmp_path):
    write_json_lines(tmp_path / "test.jsonl", [{"source": ["it is old"]}])
    model, languages = sentence_level_checkpoint("m2m_100-nllb"), {"src_lang": "eng_Latn", "tgt_lang": "fra_Latn"}
    [row] = read_json_lines(translated(model=model, **languages))
    assert row["translation"] == ["sie ist alt"]


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
    text, sentences, nothing = read_json_lines(translated())
    assert text["translation"].count("\n") == 2 and text["segments"] == [2]
    assert sentences["translation"][1] == "" and nothing["translation"] == []


def test_text_with_document_lines(translated, tmp_path):
    (tmp_path / "test.txt").write_text("<d>\nba bu .\nka .\n<d>\nmo .\n")
    rows = read_json_lines(translated("test.txt"))
    assert [row["source"] for row in rows] == [["ba bu .", "ka ."], ["mo ."]]
    assert [len(row["translation"]) for row in rows] == [2, 1]


def test_free_translation_says_what_came_of_each_segment(translated, tmp_path):
    source = ["ba bu .", "to </s> ka .", "re .", "la lo ri ."]
    write_json_lines(tmp_path / "test.jsonl", [{"source": source}])
    [row] = read_json_lines(translated(free=True, segment_tokens=24))
    assert sum(row["segments"]) == 4 and len(row["translated_segments"]) == len(row["segments"]) > 1
    assert sum(row["translated_segments"]) == len(row["translation"])
    # Translated again sentence by sentence, nothing of that is left.
    [row] = read_json_lines(translated("out.jsonl", "aligned.jsonl", overwrite=True))
    assert "translated_segments" not in row and len(row["translation"]) == 4
