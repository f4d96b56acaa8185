"""Translation by actors of Ray on this machine: what one process translates, also if an actor dies or all stop."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet
import pytest
from json_lines import write_json_lines
from repository import ROOT

from modeling_gtransformer.cli.main import main
from modeling_gtransformer.corpora import ray_translation
from modeling_gtransformer.corpora.chunk_translation import ChunkTranslator
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.corpora.corpus_translation import ChunkWorker, translate_corpus
from modeling_gtransformer.corpora.ray_translation import pool_on, translate_with_ray
from modeling_gtransformer.runtime.translator import Translator
from modeling_gtransformer.runtime.usage_error import UsageError
from modeling_gtransformer.translation_options import CorpusOptions


SETTINGS = CorpusOptions(num_beams=1, chunk_documents=2)


@pytest.fixture
def corpus(tmp_path):
    """A folder of two files."""
    (tmp_path / "corpus").mkdir()
    for name, numbers in (("a", range(7)), ("b", range(7, 12))):
        records = [{"id": i, "source": [f"ba bu {i} .", "ka ."][: 1 + i % 2]} for i in numbers]
        write_json_lines(tmp_path / "corpus" / f"{name}.jsonl", records)
    return str(tmp_path / "corpus")


@pytest.fixture
def expected(trained_model, corpus, tmp_path):
    """The records that one process writes."""
    outputs = [str(tmp_path / f"{name}.expected.jsonl") for name in "ab"]
    for name, output in zip("ab", outputs, strict=True):
        translate_corpus(str(trained_model), f"{corpus}/{name}.jsonl", output, SETTINGS)
    return [document.record for document in read_documents(outputs, ["translation"])]


class Noting(ChunkTranslator):
    """Notes in a file what it has translated. It is killed, once or always, or fails when it has a document of these
    numbers."""

    def __init__(self, *args, notes, fatal=None, always=False, failing=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.notes, self.fatal, self.always, self.failing = Path(notes), fatal, always, failing

    def __call__(self, documents, progress=False):
        translated = super().__call__(documents, progress)
        numbers = [each.record["id"] for each in translated]
        killed = self.notes.with_suffix(".killed")
        if self.fatal in numbers and (self.always or not killed.exists()):
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.failing in numbers:
            raise ValueError("What is wrong.")
        with self.notes.open("a") as file:
            print(json.dumps(numbers), file=file)
        return translated


@pytest.fixture
def run(ray_cluster, trained_model, corpus, tmp_path, monkeypatch):
    """Translates with two actors into a folder; gives its records and which chunks were translated."""
    ray_cluster.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this file

    monkeypatch.setattr(ray_translation, "CORES", 1)

    def run(output, input=corpus, actors=2, **options):
        notes = tmp_path / "notes"
        notes.write_text("")
        monkeypatch.setattr(ray_translation, "ChunkTranslator", partial(Noting, notes=notes, **options))
        model = Translator(os.path.relpath(trained_model), **SETTINGS.given)
        before = vars(model).copy()
        translate_with_ray(model, str(input), f"{tmp_path}/{output}", SETTINGS, actors)
        assert vars(model) == before
        records = [document.record for document in read_documents([f"{tmp_path}/{output}"], ["translation"])]
        return records, translated(tmp_path)

    return run


def translated(folder):
    return sorted(json.loads(line) for line in (folder / "notes").read_text().splitlines())


CHUNKS = [[0, 1], [2, 3], [4, 5], [6], [7, 8], [9, 10], [11]]


def test_two_actors_translate_what_one_process_translates(run, expected, tmp_path):
    """Nothing is lost or doubled though one of them is killed."""
    assert run("out", fatal=5) == (expected, CHUNKS)
    assert (tmp_path / "notes.killed").exists()
    files = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]
    names = [path.name for path in sorted((tmp_path / "out").iterdir())]
    assert names == [".manifest.json", *(f"{file:05}-{number:08}.jsonl" for file, number in files)]
    assert datasets.load_dataset(str(tmp_path / "out"), split="train").to_list() == expected
    # Once more, nothing is left to do.
    assert run("out") == (expected, [])
    with pytest.raises(UsageError, match="lies in the input"):
        run("out", input=tmp_path / "out")


def test_a_run_that_fails_is_continued(run, expected, tmp_path):
    """With another number of actors, and only what is not there. A table at a URI becomes tables."""
    given = [{"id": row["id"], "source": row["source"]} for row in expected]
    schema = pyarrow.schema({"id": pyarrow.int8(), "source": pyarrow.list_(pyarrow.string())})
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(given, schema=schema), tmp_path / "t.parquet")
    table = f"file://{tmp_path}/t.parquet"
    with pytest.raises(ValueError, match=r"^What is wrong\."):
        run("out", input=table, failing=9, actors=1)
    before = translated(tmp_path)
    assert [8, 9] not in before
    records, after = run("out", input=table)
    assert records == expected and sorted(before + after) == [[number, number + 1] for number in range(0, 12, 2)]
    assert pyarrow.parquet.read_schema(tmp_path / "out" / "00000-00000005.parquet").field("id").type == pyarrow.int8()


def test_a_chunk_that_kills_whoever_translates_it(run, monkeypatch):
    """As for want of memory: it is not tried for ever."""
    monkeypatch.setattr(ray_translation, "RESTARTS", 1)
    with pytest.raises(ValueError, match="Ray gave up; the same command continues"):
        run("out", fatal=0, always=True, actors=1)


def test_a_machine_with_another_model_is_named(trained_model):
    translate = ChunkTranslator(Translator(str(trained_model), **SETTINGS.given), SETTINGS)
    worker = ChunkWorker(translate, {**translate.identity, "weights": "others"}, None)
    with pytest.raises(UsageError, match=f"The model {trained_model} has another weights on "):
        worker.check_model()


MACHINES = {
    "two GPUs and one": ([{"CPU": 16, "GPU": 2}, {"CPU": 16, "GPU": 1}, {"CPU": 8}], None, (3, 1, 1)),
    "cores": ([{"CPU": 16}, {"CPU": 6}, {}], None, (5, 0, 4)),
    "few cores": ([{"CPU": 2}], None, (1, 0, 2)),
    "what is asked for": ([{"CPU": 4}], 9, (9, 0, 4)),
}


@pytest.mark.parametrize("machines, actors, expected", MACHINES.values(), ids=MACHINES)
def test_actors_fill_the_machines(machines, actors, expected):
    number, resources = pool_on(machines, actors)
    assert (number, resources["num_gpus"], resources["num_cpus"]) == expected


def test_without_ray(monkeypatch, trained_model, corpus, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'gtransformer-hf\[ray\]'"):
        translate_with_ray(str(trained_model), corpus, str(tmp_path / "out"), SETTINGS)


def test_the_command(ray_cluster, trained_model, tmp_path, capfd):
    """Warnings of the actors are reported by the command."""
    corpus = write_json_lines(tmp_path / "test.jsonl", [{"source": ["ba bu " * 200]}])
    options = ["--engine", "ray", "--actors", "1", "--num_beams", "1"]
    output = str(tmp_path / "out")
    assert main(["translate", corpus, "--model", str(trained_model), "--output", output, *options]) == 0
    errors = capfd.readouterr().err
    assert f"warning: {corpus}:1 (source, sentence 1) has 400 tokens" in errors
    assert errors.endswith("1 file, 0 failed, 0 skipped, 1 warning\n")


@pytest.mark.parametrize(
    "name, command",
    {
        "translate_ray.sh": "ray symmetric-run --address first:6379 --min-nodes 2 --num-cpus 8 --num-gpus 4 -- "
        "gtransformer translate --engine ray",
        "train.sh": "torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-id 7 --rdzv-endpoint "
        "first:29500 train/train.py",
    }.items(),
)
def test_what_slurm_runs(tmp_path, name, command):
    """With stand-ins for Slurm, which print what they are given."""
    for program, does in {"scontrol": "echo first; echo second", "srun": 'for word; do echo "$word"; done'}.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / program).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "n[1-2]"}
    numbers = {"JOB_NUM_NODES": 2, "CPUS_PER_TASK": 8, "GPUS_ON_NODE": 4, "JOB_ID": 7}
    environment |= {f"SLURM_{name}": str(number) for name, number in numbers.items()}
    script = [str(ROOT / "train" / "slurm" / name), "a b", "c"]
    printed = subprocess.run(script, env=environment, check=True, capture_output=True, text=True).stdout
    assert printed.splitlines() == [*command.split(), "a b", "c"]
