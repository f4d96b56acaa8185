"""The command on files: every sentence comes out, in its place."""

import gzip
import json

import pytest
from json_lines import read_json_lines, write_json_lines

from train.translate import main as translate


DOCUMENTS = [
    {"id": "a", "en": ["ba bu .", "to </s> ka .", "re .", "la lo ri ."]},
    {"id": "b", "en": ["mo ."]},
]


@pytest.fixture
def run(trained_model, tmp_path):
    """Translates a file, and gives the path of the output."""

    def run(source, name, *arguments):
        translate([str(trained_model), str(source), str(tmp_path / name), *arguments])
        return tmp_path / name

    return run


def test_translations_are_aligned_and_keep_the_fields(run, tmp_path):
    source = tmp_path / "test.jsonl.gz"
    source.write_bytes(gzip.compress("".join(json.dumps(d) + "\n" for d in DOCUMENTS).encode()))
    arguments = ["--source_column", "en", "--segment_tokens", "24", "--num_beams", "1"]
    rows = read_json_lines(run(source, "out.jsonl", *arguments))
    assert [{name: row[name] for name in ("id", "en")} for row in rows] == DOCUMENTS
    for row in rows:
        assert len(row["translation"]) == len(row["en"]) == sum(row["segments"])
    assert len(rows[0]["segments"]) > 1
    assert [path.name for path in tmp_path.glob("*partial*")] == []


def test_text_in_batches_of_any_size_gives_the_same(run, tmp_path):
    source = tmp_path / "test.txt"
    source.write_text("".join("<d>\n" + "\n".join(d["en"]) + "\n" for d in DOCUMENTS), encoding="utf-8")
    one_by_one, together = (
        read_json_lines(run(source, f"{max_tokens}.jsonl", "--max_tokens", max_tokens, "--num_beams", "2"))
        for max_tokens in ("1", "4096")
    )
    assert one_by_one == together
    assert [row["source"] for row in together] == [d["en"] for d in DOCUMENTS]


def test_sentences_in_parallel_give_the_same(run, tmp_path, monkeypatch):
    source = write_json_lines(tmp_path / "test.jsonl", DOCUMENTS)
    arguments = ["--source_column", "en", "--num_beams", "1"]
    with monkeypatch.context() as patch:
        patch.setattr("modeling_gtransformer.generation_gtransformer.ParallelDecoder", None)
        expected = run(source, "one.jsonl", *arguments, "--parallel_sentences", "false").read_bytes()
    monkeypatch.setattr("modeling_gtransformer.generation_gtransformer.decode_greedily", None)
    assert run(source, "two.jsonl", *arguments, "--parallel_sentences").read_bytes() == expected


def test_a_sentence_beyond_the_positions_comes_in_parts(run, tmp_path, caplog):
    source = write_json_lines(tmp_path / "test.jsonl", [{"source": ["ba .", "ba bu " * 200]}])
    [row] = read_json_lines(run(source, "out.jsonl"))
    assert len(row["translation"]) == 2 and sum(row["segments"]) == 2
    assert (
        "test.jsonl:1 (source, sentence 2) has 400 tokens" in caplog.text
        and "it is translated in 8 parts" in caplog.text
    )


def test_decoded_freely_it_says_what_came_of_each_segment(run, tmp_path, capsys):
    source = write_json_lines(tmp_path / "test.jsonl", [{"source": d["en"]} for d in DOCUMENTS])
    free = ["--align_sentences", "false", "--segment_tokens", "24"]
    rows = read_json_lines(run(source, "out.jsonl", *free))
    for row, document in zip(rows, DOCUMENTS, strict=True):
        assert sum(row["segments"]) == len(document["en"])
        assert len(row["translated_segments"]) == len(row["segments"])
        assert sum(row["translated_segments"]) == len(row["translation"])
    # Translated again as it is aligned, nothing of that is left.
    rows = read_json_lines(run(tmp_path / "out.jsonl", "aligned.jsonl", "--overwrite"))
    assert all("translated_segments" not in row and len(row["translation"]) == len(row["source"]) for row in rows)
    with pytest.raises(SystemExit):
        run(source, "out.jsonl", *free, "--parallel_sentences")
    assert "--align_sentences false excludes carried_sentences" in capsys.readouterr().err
