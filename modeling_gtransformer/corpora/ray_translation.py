"""Translation of whole corpora with Ray: one actor per GPU, or per number of cores, of a cluster. Chunks and
translations equal a single process's."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ..runtime.translator import Translator
from ..runtime.usage_error import UsageError
from ..translation_options import CorpusOptions
from .chunk_translation import Chunk, ChunkTranslator, TranslatedRecord
from .corpus import Document
from .corpus_files import files_of, lies_in
from .corpus_translation import ChunkWorker, Engine, Watch, translate_in_chunks


# Upper bound on the cores of an actor without a GPU: more cores hardly make decoding faster.
CORES = 4
# Number of restarts of an actor with its chunk; a chunk that takes all the memory would otherwise never end.
RESTARTS = 3


class ActorPool(NamedTuple):
    """Number of actors, each with its own model, and the GPUs and cores of each."""

    actors: int
    gpus: int
    cpus: int


def pool_on(machines: Sequence[dict[str, float]], actors: int | None = None) -> ActorPool:
    """Plans actors for machines that have these resources, "CPU" and "GPU"; by default as many as fit: one per GPU or,
    if there are none, one per [`CORES`] cores."""
    gpus = int(any(machine.get("GPU") for machine in machines))
    cpus = 1 if gpus else int(min(CORES, max(1, *(machine.get("CPU", 0) for machine in machines))))
    kind, size = ("GPU", 1) if gpus else ("CPU", cpus)
    return ActorPool(actors or sum(int(machine.get(kind, 0) / size) for machine in machines), gpus, cpus)


def translate_with_ray(
    model: str | Translator,
    input: str,
    output: str,
    options: CorpusOptions,
    actors: int | None = None,
    overwrite: bool = False,
    watch: Watch = lambda translated: None,
) -> None:
    """
    Translates a corpus of any size on the cluster to which Ray is or can be connected, or else on this machine, and
    writes its documents as [`translate_corpus`] does, with one file per chunk. The names of the files have the order
    of the documents. The same call continues where it was stopped.

    Args:
        model: as for [`translate_corpus`]; it must be the same on every machine.
        input: path or URI of a file, or of a folder of files.
        output: path or URI of a folder that all machines can reach.
        actors: number of actors; by default as many as fit.
        overwrite: whether to replace the fields of an earlier translation in the documents.
        watch: called with the documents of each chunk that this call has translated.

    Raises:
        UsageError: Ray is missing, the model cannot be used or differs on some machine, or the folder holds something
            else.
        ValueError: the corpus has problems, or changed while it was translated.
    """
    with cluster() as ray:
        # Workers may run in another folder.
        files, folder = [_absolute(file) for file in files_of(input)], _absolute(output)
        if lies_in(folder, _absolute(input)):
            raise UsageError(f"The output {output} lies in the input {input}: give another one.")
        translator = model if isinstance(model, Translator) else Translator(model, **options.given)
        if Path(translator.model).is_dir():
            translator.model = os.path.abspath(translator.model)
        pool = pool_on([node["Resources"] for node in ray.nodes() if node["Alive"]], actors)
        if not pool.gpus:
            translator.device = "cpu"  # Ray need not hide the GPUs of a machine from actors that ask for none
        engine = Cluster(ray, pool)
        translate_in_chunks(engine, ChunkTranslator(translator, options), files, folder, overwrite, watch)


@contextmanager
def cluster() -> Iterator[ModuleType]:
    """
    Yields Ray, connected to a cluster or to one that it starts on this machine. Errors of workers are raised here.

    Raises:
        UsageError: Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"Ray is missing ({error}): pip install 'gtransformer-hf[ray]'") from error
    is_ours = not ray.is_initialized()
    if is_ours:
        ray.init()
    try:
        yield ray
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"Ray gave up; the same command continues: {reason}") from error
    finally:
        if is_ours:
            ray.shutdown()


class Cluster(Engine):
    """Runs a translation on the machines of a Ray cluster."""

    def __init__(self, ray: ModuleType, pool: ActorPool):
        self.ray, self.actors = ray, pool.actors
        self.resources = {"num_cpus": pool.cpus, "num_gpus": pool.gpus}

    def map(self, function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
        task = self.ray.remote(**self.resources)(_call)
        return self.ray.get([task.remote(function, value) for value in values])

    def translate(
        self, worker: ChunkWorker, waiting: Iterator[tuple[Chunk, list[Document]]], left: int
    ) -> Iterator[list[TranslatedRecord]]:
        # If an actor dies, Ray starts it again with the chunk that it was translating.
        actor = self.ray.remote(max_restarts=RESTARTS, max_task_retries=RESTARTS, **self.resources)(ChunkWorker)
        parts = (worker.translator, worker.identity, worker.chunks)
        actors = [actor.remote(*parts) for _ in range(min(self.actors or left, left))]
        # An actor gets its first chunk when it has started, for which the cluster may have to grow.
        running = {each.check_model.remote(): each for each in actors}
        try:
            while left:
                [first], _ = self.ray.wait([*running])
                free, translated = running.pop(first), self.ray.get(first)
                if following := next(waiting, None):
                    running[free.translate.remote(*following)] = free
                if translated is not None:
                    left -= 1
                    yield translated
        finally:
            for each in actors:  # the next call needs their resources
                self.ray.kill(each)


def _call(function: Callable[[Any], Any], value: Any) -> Any:
    return function(value)


def _absolute(path: str) -> str:
    return path if "://" in path else os.path.abspath(path)
