"""Translation of whole corpora by Ray Data: an actor for every GPU, or for so many cores, of a cluster. The chunks are
those of one process, and so are their translations."""

import math
import os
import pickle
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow
from transformers.utils.logging import tqdm

from ..usage_error import UsageError
from .chunk_translation import Chunk, ChunkTranslator, chunks_of, examine
from .corpus_files import TABLES, files_of, has_ending, lies_in
from .fingerprint import hash_of_file
from .translated_chunks import TranslatedChunks
from .translation_settings import TranslationSettings


FORMATS = ("jsonl", "parquet")
# Cores of an actor without a GPU, where a machine has as many: more of them hardly make decoding faster.
CORES = 4
# How often an actor that dies is started again with its chunk, as one that takes all the memory would never end.
RESTARTS = 3
# Files that are read at a time, which takes little next to translating.
READERS = 4


@dataclass
class ActorPool:
    """What translates: options of `translate_ray.py`."""

    actors: int | None = field(
        default=None, metadata={"help": "Number of actors, each with a model; default: as many as there is room for."}
    )
    gpus_per_actor: float | None = field(
        default=None,
        metadata={"help": "GPUs of an actor, such as 0.5 for two on one; default: 1 if the cluster has any, else 0."},
    )
    cpus_per_actor: int | None = field(
        default=None, metadata={"help": "Cores of an actor; default: up to 4, or 1 with a GPU."}
    )
    format: str | None = field(
        default=None,
        metadata={"help": "Form of the files that are written; default: that of the input.", "choices": FORMATS},
    )

    def __post_init__(self) -> None:
        for name, least in (("actors", 1), ("cpus_per_actor", 1), ("gpus_per_actor", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, not {value}.")

    def on(self, machines: list[dict[str, float]]) -> "ActorPool":
        """
        The pool with all of its numbers on machines that have these resources, "CPU" and "GPU".

        Raises:
            UsageError: none of them has room for an actor.
        """
        gpus = self.gpus_per_actor
        if gpus is None:
            gpus = min(1, max(machine.get("GPU", 0) for machine in machines))
        largest = max(int(machine.get("CPU", 0)) for machine in machines)
        cpus = self.cpus_per_actor or (1 if gpus else max(1, min(CORES, largest)))
        room = sum(
            int(min(machine.get("CPU", 0) / cpus, machine.get("GPU", 0) / gpus if gpus else math.inf))
            for machine in machines
        )
        if not room:
            raise UsageError(f"No machine of the cluster has {gpus:g} GPUs and {cpus} cores for an actor.")
        return ActorPool(self.actors or room, gpus, cpus, self.format)

    def writes_tables(self, files: list[str]) -> bool:
        """Whether the translation of these files is written as tables."""
        return self.format == "parquet" if self.format else all(has_ending(file, TABLES) for file in files)

    @property
    def resources(self) -> dict[str, float]:
        """What Ray reserves for an actor."""
        return {"num_cpus": self.cpus_per_actor or 0, "num_gpus": self.gpus_per_actor or 0}


def translate_with_ray(
    model: str, input: str, output: str, settings: TranslationSettings, pool: ActorPool, overwrite: bool = False
) -> None:
    """
    Translates a corpus of any size on the cluster to which Ray is or can be connected, else on this machine, and
    writes its documents as [`translate_corpus`] does, a file for every chunk. The names of the files have the order of
    the documents. A chunk whose file is there is not translated again, so the same call continues what was stopped.

    Args:
        model: folder or Hub name of a G-Transformer, or of a plain translator; every machine finds the same there.
        input: path or URI of a file, or of a folder of files, which are read side by side.
        output: path or URI of a folder that all machines can reach.
        pool: number and size of the actors.
        overwrite: whether fields of these names that documents have are replaced.

    Raises:
        UsageError: Ray is missing, the model cannot be used or is another one on some machine, or the folder holds
            something else.
        ValueError: the corpus has problems, or changed while it was translated.
    """
    ray = load_ray()
    files, folder = [_absolute(file) for file in files_of(input)], _absolute(output)
    if lies_in(folder, _absolute(input)):
        raise UsageError(f"The output {output} lies in the input {input}: give another one.")
    with connected(ray), errors_of_workers(ray):
        pool = pool.on([node["Resources"] for node in ray.nodes() if node["Alive"]])
        check = ray.remote(examine)
        corpus = ray.get(
            [check.remote(file, settings.source_column, overwrite, pool.writes_tables(files)) for file in files]
        )
        # Ray need not hide the GPUs of a machine from those who have asked for none.
        translate = ChunkTranslator(_local_model(model), settings, device=None if pool.gpus_per_actor else "cpu")
        identity = ray.get(ray.remote(**pool.resources)(_identity).remote(translate))
        chunks = TranslatedChunks(folder, corpus, settings.chunk_documents, translate.columns)
        chunks.begin(identity)
        translate_chunks(ray, translate, identity, chunks, pool)
        digest = ray.remote(hash_of_file)
        chunks.finish(ray.get([digest.remote(file) for file in files]))


def load_ray() -> ModuleType:
    """
    Imports Ray, which comes with an extra.

    Raises:
        UsageError: Ray is not installed.
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise UsageError(f"Ray is missing ({error}): pip install 'gtransformer-hf[ray]'") from error
    return ray


@contextmanager
def connected(ray: ModuleType) -> Iterator[None]:
    """Connects to a cluster, or starts one on this machine, unless that is done already."""
    if ray.is_initialized():
        yield
        return
    ray.init()
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def errors_of_workers(ray: ModuleType) -> Iterator[None]:
    """Raises what was raised in a worker as if it had been raised here."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"Ray gave up; the same command continues: {reason}") from error


def translate_chunks(
    ray: ModuleType, translate: ChunkTranslator, identity: dict[str, Any], chunks: TranslatedChunks, pool: ActorPool
) -> None:
    """Translates the chunks that are not there yet: every file is read by one task, from which actors get chunks."""
    left: dict[int, list[int]] = {}
    for chunk in chunks.left():
        left.setdefault(chunk.file, []).append(chunk.number)
    if not left:
        return
    number = sum(map(len, left.values()))
    context = ray.data.DataContext.get_current().copy()
    context.target_max_block_size = 1  # an actor takes a block at a time: a chunk
    context.execution_no_progress_timeout_s = -1  # a chunk takes as long as it takes
    context.raise_original_map_exception = True
    context.enable_progress_bars = False
    with ray.data.DataContext.current(context), tqdm(total=number, unit=" chunks") as bar:
        files = [{"path": chunks.corpus[file].path, "file": file, "numbers": left[file]} for file in left]
        read = ray.data.from_items(files, override_num_blocks=len(files)).map_batches(
            partial(read_chunks, settings=translate.settings),
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.TaskPoolStrategy(size=min(READERS, len(files))),
            num_cpus=0,  # the actors may have all the cores
        )
        written = read.map_batches(
            ChunkActor,
            fn_constructor_args=(translate, identity, chunks),
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=min(pool.actors or number, number)),
            max_restarts=RESTARTS,
            max_task_retries=RESTARTS,
            **pool.resources,
        )
        for _ in written.iter_rows():
            bar.update()


def read_chunks(files: pyarrow.Table, settings: TranslationSettings) -> Iterator[pyarrow.Table]:
    """The chunks of files of which these numbers are left, with their documents."""
    for row in files.to_pylist():
        wanted = {Chunk(row["file"], number) for number in row["numbers"]}
        for chunk, documents in chunks_of(row["path"], row["file"], settings, wanted):
            yield pyarrow.Table.from_pylist([{**chunk._asdict(), "documents": pickle.dumps(documents)}])


class ChunkActor:
    """
    Translates chunks and writes them, with a model that it keeps. If it dies, Ray starts it anew and gives it again
    the chunk at which it was.

    Args:
        identity: that of the model which it must find.
    """

    def __init__(self, translate: ChunkTranslator, identity: dict[str, Any], chunks: TranslatedChunks):
        self.translate, self.identity, self.chunks = translate, identity, chunks
        self.checked = False

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        """
        Translates the chunks of a batch that are missing.

        Raises:
            UsageError: another model is found here.
        """
        self._check_model()
        for row in batch.to_pylist():
            chunk = Chunk(row["file"], row["number"])
            if not self.chunks.has(chunk):  # who wrote it may have died before it could say so
                self.chunks.write(chunk, self.translate(pickle.loads(row["documents"])))
        return batch.select(Chunk._fields)

    def _check_model(self) -> None:
        # Not when it is made: Ray tells little of an error there.
        found = self.identity if self.checked else self.translate.identity()
        if changed := [name for name in found if found[name] != self.identity[name]]:
            model, machine = self.translate.translator.model, platform.node()
            raise UsageError(f"The model {model} has another {', '.join(changed)} on {machine}.")
        self.checked = True


def _identity(translate: ChunkTranslator) -> dict[str, Any]:
    return translate.identity()


def _absolute(path: str) -> str:
    """The path as workers find it, which need not be in the same folder."""
    return path if "://" in path else os.path.abspath(path)


def _local_model(model: str) -> str:
    return os.path.abspath(model) if Path(model).is_dir() else model
