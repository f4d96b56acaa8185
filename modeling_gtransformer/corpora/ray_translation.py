"""Translation of whole corpora with Ray Data: one actor per GPU, or per number of cores, of a cluster. Chunks and
translations are the same as those of one process."""

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
# Upper bound on the cores of an actor without a GPU: more cores hardly make decoding faster.
CORES = 4
# Number of restarts of an actor with its chunk; a chunk that takes all the memory would otherwise never end.
RESTARTS = 3
# Number of files that are read at a time; reading takes little time compared with translating.
READERS = 4


@dataclass
class ActorPool:
    """Number and size of the actors that translate: options of `translate_ray.py`."""

    actors: int | None = field(
        default=None,
        metadata={"help": "Number of actors, each with its own model; default: as many as fit the cluster."},
    )
    gpus_per_actor: float | None = field(
        default=None,
        metadata={
            "help": "GPUs per actor, such as 0.5 for two actors on one GPU; default: 1 if the cluster has any, else 0."
        },
    )
    cpus_per_actor: int | None = field(
        default=None, metadata={"help": "Cores per actor; default: up to 4, or 1 with a GPU."}
    )
    format: str | None = field(
        default=None,
        metadata={"help": "Format of the output files; default: that of the input.", "choices": FORMATS},
    )

    def __post_init__(self) -> None:
        for name, least in (("actors", 1), ("cpus_per_actor", 1), ("gpus_per_actor", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, not {value}.")

    def on(self, machines: list[dict[str, float]]) -> "ActorPool":
        """
        Fills in the numbers of the pool for machines that have these resources, "CPU" and "GPU".

        Raises:
            UsageError: no machine has room for an actor.
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
        """Tells whether the translation of these files is written as tables."""
        return self.format == "parquet" if self.format else all(has_ending(file, TABLES) for file in files)

    @property
    def resources(self) -> dict[str, float]:
        """Resources that Ray reserves for an actor."""
        return {"num_cpus": self.cpus_per_actor or 0, "num_gpus": self.gpus_per_actor or 0}


def translate_with_ray(
    model: str, input: str, output: str, settings: TranslationSettings, pool: ActorPool, overwrite: bool = False
) -> None:
    """
    Translates a corpus of any size on the cluster to which Ray is or can be connected, or else on this machine, and
    writes its documents as [`translate_corpus`] does, with one file per chunk. The names of the files have the order
    of the documents. A chunk whose file exists is not translated again, so the same call continues where it was
    stopped.

    Args:
        model: folder or Hub name of a G-Transformer, or of a sentence-level translator; it must be the same on every
        machine. input: path or URI of a file, or of a folder of files, which are read in parallel.
        output: path or URI of a folder that all machines can reach.
        pool: number and size of the actors.
        overwrite: whether to replace fields of these names in the documents.

    Raises:
        UsageError: Ray is missing, the model cannot be used or differs on some machine, or the folder holds something
            else.
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
        # Ray need not hide the GPUs of a machine from actors that ask for none.
        translate = ChunkTranslator(_local_model(model), settings, device=None if pool.gpus_per_actor else "cpu")
        identity = ray.get(ray.remote(**pool.resources)(_identity).remote(translate))
        chunks = TranslatedChunks(folder, corpus, settings.chunk_documents, translate.columns)
        chunks.begin(identity)
        translate_chunks(ray, translate, identity, chunks, pool)
        digest = ray.remote(hash_of_file)
        chunks.finish(ray.get([digest.remote(file) for file in files]))


def load_ray() -> ModuleType:
    """
    Imports Ray, which an extra installs.

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
    """Connects to a cluster, or starts one on this machine, unless Ray is already running."""
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
    """Raises the error of a worker as if it had been raised here."""
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
    """Translates the missing chunks: one task reads each file, and passes its chunks to actors."""
    left: dict[int, list[int]] = {}
    for chunk in chunks.left():
        left.setdefault(chunk.file, []).append(chunk.number)
    if not left:
        return
    number = sum(map(len, left.values()))
    context = ray.data.DataContext.get_current().copy()
    context.target_max_block_size = 1  # an actor takes one block, a chunk, at a time
    context.execution_no_progress_timeout_s = -1  # chunks may take any time
    context.raise_original_map_exception = True
    context.enable_progress_bars = False
    with ray.data.DataContext.current(context), tqdm(total=number, unit=" chunks") as bar:
        files = [{"path": chunks.corpus[file].path, "file": file, "numbers": left[file]} for file in left]
        read = ray.data.from_items(files, override_num_blocks=len(files)).map_batches(
            partial(read_chunks, settings=translate.settings),
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.TaskPoolStrategy(size=min(READERS, len(files))),
            num_cpus=0,  # the actors may use all cores
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
    """Reads the chunks of files that are left, by their numbers, with their documents."""
    for row in files.to_pylist():
        wanted = {Chunk(row["file"], number) for number in row["numbers"]}
        for chunk, documents in chunks_of(row["path"], row["file"], settings, wanted):
            yield pyarrow.Table.from_pylist([{**chunk._asdict(), "documents": pickle.dumps(documents)}])


class ChunkActor:
    """
    Translates chunks and writes them, with a model that it keeps. If the actor dies, Ray starts it again with the
    chunk that it was translating.

    Args:
        identity: hashes of the model that it must find.
    """

    def __init__(self, translate: ChunkTranslator, identity: dict[str, Any], chunks: TranslatedChunks):
        self.translate, self.identity, self.chunks = translate, identity, chunks
        self.checked = False

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        """
        Translates the missing chunks of a batch.

        Raises:
            UsageError: this machine has another model.
        """
        self._check_model()
        for row in batch.to_pylist():
            chunk = Chunk(row["file"], row["number"])
            if not self.chunks.has(chunk):  # its writer may have died before it could report this
                self.chunks.write(chunk, self.translate(pickle.loads(row["documents"])))
        return batch.select(Chunk._fields)

    def _check_model(self) -> None:
        # Not in the constructor, because Ray reports little about an error there.
        found = self.identity if self.checked else self.translate.identity()
        if changed := [name for name in found if found[name] != self.identity[name]]:
            model, machine = self.translate.translator.model, platform.node()
            raise UsageError(f"The model {model} has another {', '.join(changed)} on {machine}.")
        self.checked = True


def _identity(translate: ChunkTranslator) -> dict[str, Any]:
    return translate.identity()


def _absolute(path: str) -> str:
    """Makes a path absolute, because workers may run in another folder."""
    return path if "://" in path else os.path.abspath(path)


def _local_model(model: str) -> str:
    return os.path.abspath(model) if Path(model).is_dir() else model
