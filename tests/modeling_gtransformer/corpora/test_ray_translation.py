"""Translation by actors of Ray on this machine: what one process translates, also if an actor dies or all stop."""

import json
import os
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import datasets
import pyarrow
import pyarrow.parquet
import pytest
from json_lines import write_json_lines

from modeling_gtransformer.corpora import ray_translation
from modeling_gtransformer.corpora.chunk_translation import ChunkTranslator
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.corpora.corpus_translation import translate_corpus
from modeling_gtransformer.corpora.ray_translation import ActorPool, ChunkActor, translate_with_ray
from modeling_gtransformer.corpora.translation_settings import TranslationSettings
from modeling_gtransformer.usage_error import UsageError


SETTINGS = TranslationSettings(num_beams=1, chunk_documents=2)
TWO_ACTORS = ActorPool(actors=2, gpus_per_actor=0, cpus_per_actor=1)


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
    translate_corpus(str(trained_model), corpus, str(tmp_path / "expected.jsonl"), SETTINGS)
    return [document.record for document in read_documents([str(tmp_path / "expected.jsonl")], ["translation"])]


class Noting(ChunkTranslator):
    """Notes in a file what it has translated. It is killed, once or always, or fails when it has a document of these
    numbers."""

    def __init__(self, *args, notes, fatal=None, always=False, failing=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.notes, self.fatal, self.always, self.failing = Path(notes), fatal, always, failing

    def __call__(self, documents, progress=False):
        records = super().__call__(documents, progress)
        numbers = [record["id"] for record in records]
        killed = self.notes.with_suffix(".killed")
        if self.fatal in numbers and (self.always or not killed.exists()):
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.failing in numbers:
            raise ValueError("What is wrong.")
        with self.notes.open("a") as file:
            print(json.dumps(numbers), file=file)
        return records


@pytest.fixture
def run(ray_cluster, trained_model, corpus, tmp_path, monkeypatch):
    """Translates with two actors into a folder; gives its records and which chunks were translated."""
    ray_cluster.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this file

    def run(output, input=corpus, settings=SETTINGS, pool=TWO_ACTORS, overwrite=False, **options):
        notes = tmp_path / "notes"
        notes.write_text("")
        monkeypatch.setattr(ray_translation, "ChunkTranslator", partial(Noting, notes=notes, **options))
        translate_with_ray(str(trained_model), str(input), f"{tmp_path}/{output}", settings, pool, overwrite)
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
    assert names == [".manifest.json", *(f"{file:05}-{number:06}.jsonl" for file, number in files)]
    assert datasets.load_dataset(str(tmp_path / "out"), split="train").to_list() == expected
    # Once more, nothing is left to do; otherwise it is refused.
    assert run("out") == (expected, [])
    for changes, words in (
        ({"settings": replace(SETTINGS, num_beams=2)}, "was begun with another num_beams"),
        ({"pool": replace(TWO_ACTORS, format="parquet")}, "was begun with another format"),
        ({"input": tmp_path / "out"}, "lies in the input"),
    ):
        with pytest.raises(UsageError, match=words):
            run("out", **changes)


def test_a_run_that_fails_is_continued(run, expected, tmp_path):
    """With another number of actors, and only what is not there. A table at a URI becomes tables."""
    given = [{"id": row["id"], "source": row["source"]} for row in expected]
    schema = pyarrow.schema({"id": pyarrow.int8(), "source": pyarrow.list_(pyarrow.string())})
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(given, schema=schema), tmp_path / "t.parquet")
    table = f"file://{tmp_path}/t.parquet"
    with pytest.raises(ValueError, match=r"^What is wrong\."):
        run("out", input=table, failing=9, pool=replace(TWO_ACTORS, actors=1))
    before = translated(tmp_path)
    assert [8, 9] not in before
    records, after = run("out", input=table)
    assert records == expected and sorted(before + after) == [[number, number + 1] for number in range(0, 12, 2)]
    assert pyarrow.parquet.read_schema(tmp_path / "out" / "00000-000005.parquet").field("id").type == pyarrow.int8()


def test_a_chunk_that_kills_whoever_translates_it(run, monkeypatch):
    """As for want of memory: it is not tried for ever."""
    monkeypatch.setattr(ray_translation, "RESTARTS", 1)
    with pytest.raises(ValueError, match="Ray gave up; the same command continues"):
        run("out", fatal=0, always=True)


def test_a_machine_with_another_model_is_named(trained_model):
    translate = ChunkTranslator(str(trained_model), SETTINGS)
    actor = ChunkActor(translate, {**translate.identity(), "weights": "others"}, None)
    with pytest.raises(UsageError, match=f"The model {trained_model} has another weights on "):
        actor(pyarrow.table({"file": [], "number": [], "documents": []}))


MACHINES = {
    "two GPUs and one": ([{"CPU": 16, "GPU": 2}, {"CPU": 16, "GPU": 1}, {"CPU": 8}], {}, (3, 1, 1)),
    "half a GPU each": ([{"CPU": 16, "GPU": 2}], {"gpus_per_actor": 0.5}, (4, 0.5, 1)),
    "cores, though there are GPUs": ([{"CPU": 16, "GPU": 2}], {"gpus_per_actor": 0, "cpus_per_actor": 8}, (2, 0, 8)),
    "cores": ([{"CPU": 16}, {"CPU": 6}, {}], {}, (5, 0, 4)),
    "few cores": ([{"CPU": 2}], {}, (1, 0, 2)),
    "what is asked for": ([{"CPU": 4}], {"actors": 9, "cpus_per_actor": 4}, (9, 0, 4)),
}


@pytest.mark.parametrize("machines, asked, expected", MACHINES.values(), ids=MACHINES)
def test_actors_fill_the_machines(machines, asked, expected):
    pool = ActorPool(**asked).on(machines)
    assert (pool.actors, pool.gpus_per_actor, pool.cpus_per_actor) == expected


def test_there_is_no_room(monkeypatch):
    with pytest.raises(UsageError, match="No machine of the cluster has 1 GPUs and 1 cores"):
        ActorPool(actors=1, gpus_per_actor=1).on([{"CPU": 4}])
    with pytest.raises(ValueError, match="actors must be at least 1"):
        ActorPool(actors=0)


def test_an_output_in_the_input(trained_model, corpus, monkeypatch):
    monkeypatch.setattr(ray_translation, "load_ray", lambda: None)
    with pytest.raises(UsageError, match="lies in the input"):
        translate_with_ray(str(trained_model), corpus, f"{corpus}/out", SETTINGS, TWO_ACTORS)


def test_without_ray(monkeypatch, trained_model, corpus, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'gtransformer-hf\[ray\]'"):
        translate_with_ray(str(trained_model), corpus, str(tmp_path / "out"), SETTINGS, TWO_ACTORS)
