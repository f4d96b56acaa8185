"""A corpus in chunks: continued where it was stopped, byte for byte, and never with other settings."""

import json

import pytest
from json_lines import write_json_lines

from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.training import corpus_translation
from modeling_gtransformer.training.corpus_translation import (
    Shards,
    TranslationSettings,
    parse_translation,
    translate_corpus,
)


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    monkeypatch.setattr(corpus_translation, "CHUNK", 2)


def test_a_killed_run_is_continued_byte_for_byte(trained_model, tmp_path, monkeypatch):
    records = [{"id": i, "source": [f"ba bu {i} .", "ka ."][: 1 + i % 2]} for i in range(7)]
    corpus = write_json_lines(tmp_path / "test.jsonl", records)

    def run(name, num_beams=1):
        output = tmp_path / name
        translate_corpus(str(trained_model), corpus, str(output), TranslationSettings(num_beams=num_beams))
        return output.read_bytes()

    expected = run("straight.jsonl")
    assert [json.loads(line)["id"] for line in expected.splitlines()] == list(range(7))

    calls = []

    def killed(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return translate_documents(*args, **kwargs)

    monkeypatch.setattr(corpus_translation, "translate_documents", killed)
    with pytest.raises(KeyboardInterrupt):
        run("killed.jsonl")
    shard = tmp_path / "killed.jsonl.0.partial"
    assert len(shard.read_bytes().splitlines()) == 4 and not (tmp_path / "killed.jsonl").exists()
    # As if it had been cut off in the middle of its third chunk, and of a line.
    lines = expected.splitlines(keepends=True)
    shard.write_bytes(b"".join(lines[:5]) + lines[5][:7])
    with pytest.raises(ValueError, match="was begun with another num_beams: continue as it was begun, or remove"):
        run("killed.jsonl", num_beams=2)
    assert run("killed.jsonl") == expected and len(calls) == 5
    assert [path.name for path in tmp_path.glob("*partial*")] == []


def test_a_shard_that_lacks_a_document_is_not_merged(tmp_path):
    """Chunks of two documents alternate between the processes."""
    shards = Shards(str(tmp_path / "out.jsonl"), {}, processes=2)
    shards.begin()
    shards.files[0].write_text("0\n1\n4\n")
    shards.files[1].write_text("2\n3")
    with pytest.raises(RuntimeError, match="The translation of document 4 is missing: run the command again"):
        shards.merge(5)
    assert not (tmp_path / "out.jsonl").exists()
    with shards.open(1) as file:
        file.write("\n")
    shards.merge(5)
    assert (tmp_path / "out.jsonl").read_text() == "0\n1\n2\n3\n4\n"


def test_what_the_command_line_leaves_open_the_model_decides():
    *files, settings = parse_translation(["model", "in.jsonl", "out.jsonl", "--segment_tokens", "9"])
    assert files == ["model", "in.jsonl", "out.jsonl"]
    arguments = {"segment_tokens": 9, "segment_sentences": None, "carried_sentences": 0, "max_tokens": 4096}
    assert settings.translation_arguments() == arguments
    decided = TranslationSettings(segment_tokens=9, num_beams=3, parallel_sentences=True)
    assert decided.translation_arguments() == arguments | {"num_beams": 3, "parallel_sentences": True}
