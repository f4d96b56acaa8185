"""Every benchmark runs, with sizes of milliseconds, and writes figures that are positive."""

import importlib
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from json_lines import write_json_lines
from repository import ROOT


DOCUMENTS = [{"source": ["the cat sleeps"] * 3, "target": ["die katze schläft"] * 3}] * 6


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Runs a script, and returns the results of the file that it writes; of several, by name."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))

    def run(script, *options):
        if script != "startup":  # which changes classes in its processes
            monkeypatch.setattr("measure.ProcessPoolExecutor", lambda *_, **__: ThreadPoolExecutor(1))
        monkeypatch.setattr("sys.argv", [f"{script}.py", *options, "--results", str(tmp_path / "results")])
        importlib.import_module(script).main()
        files = [*(tmp_path / "results").iterdir()]
        records = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}
        assert all({"command", "commit", "hardware", "versions"} < record.keys() for record in records.values())
        assert not any("--results" in record["command"] for record in records.values())
        results = {name: record["results"] for name, record in records.items()}
        return results if len(results) > 1 else results.popitem()[1]

    return run


def figures(results):
    """All numbers of the results."""
    if isinstance(results, dict):
        return [figure for each in results.values() for figure in figures(each)]
    return [results] if isinstance(results, int | float) else []


@pytest.mark.parametrize(
    "command",
    [
        "attention --lengths 32 --backward --repeats 1",
        "attention --lengths 32 --loss --size tiny --repeats 1",
        "decoding --documents 2 --sentences 2 --systems mbart mbart-2 gtransformer-int8 --size tiny --repeats 1",
        "decoding --documents 1 --sentences 1 --beams 1 --systems gtransformer,reference --size tiny --profile",
        "files --megabytes 0.0002 --formats text --kinds lines schemes",
        "loading --size tiny --repeats 1",
        "long_document --sentences 3",
        "memory --sizes tiny --cards 11",
        "startup --sentences 40 --words 50",
        "training --lengths 32 --systems mbart-sentences gtransformer --size tiny --repeats 1",
    ],
)
def test_script(bench, command):
    assert any(figure > 0 for figure in figures(bench(*command.split())))


def test_serving_loses_no_request(bench):
    options = ["--clients", "2", "--requests", "2", "--size", "tiny", "--repeats", "1"]
    [row] = bench("serving", *options)["repeats"]
    assert row["2 clients"]["lost"] == 0 and row["2 clients"]["memory_mb"] > 0


def test_real_documents(bench, checkpoint, tmp_path):
    corpus = write_json_lines(tmp_path / "corpus.jsonl", DOCUMENTS)
    results = bench("dialogues", "--model", checkpoint, "--corpus", corpus, "--beams", "2", "--repeats", "1")
    assert results["sentences"] == 12 and results["2 beams"]["documents"]["sentences_per_second"] > 0


def test_every_fast_path_is_switched_off(bench, checkpoint, tmp_path):
    corpus = write_json_lines(tmp_path / "corpus.jsonl", DOCUMENTS)
    options = ["--model", checkpoint, "--corpus", corpus, "--column", "source", "--sentences", "4", "--repeats", "1"]
    results = bench("fast_paths", *options, "--beams", "2")
    assert list(results) == ["corpus, 2 beams", "document, 2 beams", "server, 2 beams"]
    assert all(figures["times_slower"] > 0 for row in results.values() for figures in row.values())


def test_gpu_continues_where_it_ended(bench, capsys):
    options = "--sizes tiny --decoded_sizes tiny --lengths 32 --tokens 32 --documents 1 --sentences 2 --beams 1"
    options = [*options.split(), "--repeats", "1"]
    with pytest.raises(SystemExit, match="3"):
        bench("gpu", *options, "--minutes", "0")
    first = bench("gpu", *options, "--parts", "attention")
    assert list(first) == ["32 tokens, with the backward pass"]
    results = bench("gpu", *options)
    assert results["gpu-attention"] == first and len(results["gpu-training"]) == 2
    for part, path in (("decoding", "reference"), ("graphs", "static")):
        row = results[f"gpu-{part}"]["tiny, 1 documents, 1 beams"]
        assert row[f"gtransformer-bfloat16,{path}"]["tokens_per_second"] > 0
