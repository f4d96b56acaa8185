"""The scripts on files: tokenizer, training, translation, scores. Every sentence comes out, in its place."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import AutoTokenizer
from transformers.generation import GenerationMixin

from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.training import corpus_translation
from train.score_translations import main as score_translations
from train.train import main as train
from train.train_tokenizer import main as train_tokenizer
from train.translate import main as translate


DOCUMENTS = [
    {"id": "a", "en": ["ba bu .", "to </s> ka .", "re .", "la lo ri ."], "de": ["x ba .", "y .", "z .", "w w ."]},
    {"id": "b", "en": ["mo ."], "de": ["v ."]},
]


@pytest.fixture(scope="module")
def model(experiment):
    recipe = experiment("scripts", max_steps=1, eval_strategy="no")
    train([recipe])
    return recipe.removesuffix(".yaml")


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_translations_are_aligned_and_keep_the_fields(model, tmp_path, capsys):
    source, output, scores = tmp_path / "test.jsonl.gz", tmp_path / "out.jsonl", tmp_path / "scores.json"
    source.write_bytes(gzip.compress("".join(json.dumps(d) + "\n" for d in DOCUMENTS).encode()))
    arguments = ["--source_column", "en", "--segment_tokens", "24", "--num_beams", "1"]
    translate([model, str(source), str(output), *arguments])
    rows = read(output)
    assert [row["id"] for row in rows] == ["a", "b"] and [row["en"] for row in rows] == [d["en"] for d in DOCUMENTS]
    for row in rows:
        assert len(row["translation"]) == len(row["en"]) == sum(row["segments"])
    assert len(rows[0]["segments"]) > 1
    assert [path.name for path in tmp_path.glob("*partial*")] == []

    options = ["--reference", str(source), "--reference_column", "de", "--json", str(scores)]
    score_translations([str(output), *options, "--baseline", str(output)])
    content = json.loads(scores.read_text())
    assert content["translations"] == content["baseline"] == "out.jsonl" and "--json" in content["command"]
    result = content["scores"]
    assert result["d-BLEU/document"]["units"] == 2 and result["s-BLEU"]["units"] == 5
    assert result["d-BLEU/segment"]["units"] == sum(len(row["segments"]) for row in rows)
    assert result["s-BLEU"]["p_value"] == 1 and "p = 1.0000" in capsys.readouterr().out


def test_text_in_batches_of_any_size_gives_the_same(model, tmp_path):
    source = tmp_path / "test.txt"
    source.write_text("".join("<d>\n" + "\n".join(d["en"]) + "\n" for d in DOCUMENTS), encoding="utf-8")
    outputs = [tmp_path / "small.jsonl", tmp_path / "large.jsonl"]
    for output, max_tokens in zip(outputs, ("1", "4096"), strict=True):
        translate([model, str(source), str(output), "--max_tokens", max_tokens, "--num_beams", "2"])
    assert read(outputs[0]) == read(outputs[1])
    assert [row["source"] for row in read(outputs[0])] == [d["en"] for d in DOCUMENTS]


def test_sentences_in_parallel_give_the_same(model, tmp_path, monkeypatch):
    source, outputs = tmp_path / "test.jsonl", [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    source.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS), encoding="utf-8")
    arguments = ["--source_column", "en", "--num_beams", "1"]
    translate([model, str(source), str(outputs[0]), *arguments])
    monkeypatch.setattr(GenerationMixin, "generate", None)  # of Transformers, which goes token by token
    translate([model, str(source), str(outputs[1]), *arguments, "--parallel_sentences"])
    assert read(outputs[0]) == read(outputs[1])


def test_a_sentence_beyond_the_positions_comes_in_parts(model, tmp_path, caplog):
    (tmp_path / "test.jsonl").write_text(json.dumps({"source": ["ba .", "ba bu " * 200]}))
    translate([model, str(tmp_path / "test.jsonl"), str(tmp_path / "out.jsonl")])
    [row] = read(tmp_path / "out.jsonl")
    assert len(row["translation"]) == 2 and sum(row["segments"]) == 2
    assert "Document 1, sentence 2 has 400 tokens" in caplog.text and "it is translated in 8 parts" in caplog.text


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Seven documents, in chunks of two."""
    monkeypatch.setattr(corpus_translation, "CHUNK", 2)
    records = [{"id": i, "en": [f"ba bu {i} .", "ka ."][: 1 + i % 2]} for i in range(7)]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return tmp_path / "test.jsonl"


def test_a_killed_run_is_continued_byte_for_byte(model, corpus, tmp_path, monkeypatch):
    def run(name):
        translate([model, str(corpus), str(tmp_path / name), "--source_column", "en", "--num_beams", "1"])
        return (tmp_path / name).read_bytes()

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
        translate([model, str(corpus), str(tmp_path / "killed.jsonl"), "--source_column", "en", "--num_beams", "2"])
    assert run("killed.jsonl") == expected and len(calls) == 5
    assert [path.name for path in tmp_path.glob("*partial*")] == []


def test_two_processes_translate_as_one(model, corpus, tmp_path):
    """Each every second chunk; as `accelerate launch` starts them, on the CPU."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    root = str(Path(corpus_translation.__file__).parents[2])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true", "PYTHONPATH": root}
    chunked = tmp_path / "translate.py"  # the script, with its short chunks
    chunked.write_text(
        "import sys\n"
        "from modeling_gtransformer.training import corpus_translation\n"
        "corpus_translation.CHUNK = 2\n"
        "from train import translate\ntranslate.main(sys.argv[1:])\n"
    )
    arguments = ["--source_column", "en", "--num_beams", "1"]
    command = [*launch, str(chunked), model, str(corpus), str(tmp_path / "two.jsonl"), *arguments]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert process.returncode == 0, process.stderr[-3000:]
    translate([model, str(corpus), str(tmp_path / "one.jsonl"), *arguments])
    assert (tmp_path / "two.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_tokenizer_of_ones_own(tmp_path, kind):
    files, output = tmp_path / "train.jsonl", str(tmp_path / "tokenizer")
    files.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS))
    settings = ["--columns", "en", "de", "--languages", "[en]", "[de]", "--vocab_size", "60", "--model", kind]
    train_tokenizer([output, "--files", str(files), *settings])
    tokenizer = AutoTokenizer.from_pretrained(output)
    assert tokenizer.convert_tokens_to_ids(["<s>", "<pad>", "</s>", "<unk>"]) == [0, 1, 2, 3]
    end = [len(tokenizer) - 3, len(tokenizer) - 2, len(tokenizer) - 1]
    assert tokenizer.convert_tokens_to_ids(["[en]", "[de]", "<mask>"]) == end
    for sentence in ("ba bu .", "la lo ri ."):
        ids = tokenizer(sentence, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(ids) == sentence and not {0, 1, 2, 3, *end} & set(ids)
