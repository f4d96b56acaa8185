"""Translation of whole corpora with Ray, with one actor per GPU, or per number of cores, of a cluster.

Chunks and translations equal those of a single process.
"""

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from ..runtime.translator import Translator
from ..runtime.usage_error import UsageError
from ..translation_options import CorpusOptions
from .chunk_translation import Chunk, ChunkTranslator, TranslatedRecord
from .corpus import Document
from .corpus_files import files_of, lies_in
from .corpus_translation import ChunkWorker, Engine, Watch, translate_in_chunks


# Upper bound on the cores of an actor without a GPU; decoding scales little beyond.
CORES = 4
# Number of restarts of an actor with its chunk, as a chunk may need more memory than the machine has.
RESTARTS = 3


def pool_on(machines: Sequence[dict[str, float]], actors: int | None = None) -> tuple[int, dict[str, int]]:
    """
    Plans actors, each with a copy of the model, for machines with the resources "CPU" and "GPU". By default, each GPU
    gets one or, without GPUs, every [`CORES`] cores.

    Returns:
        The number of actors, and the resources that each of them requests from Ray.
    """
    gpus = int(any(machine.get("GPU") for machine in machines))
    cpus = 1 if gpus else int(min(CORES, max(1, *(machine.get("CPU", 0) for machine in machines))))
    kind, size = ("GPU", 1) if gpus else ("CPU", cpus)
    fitting = sum(int(machine.get(kind, 0) / size) for machine in machines)
    return actors or fitting, {"num_cpus": cpus, "num_gpus": gpus}


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
    Translates a corpus of any size on a Ray cluster, or on this machine if Ray cannot connect to one. Writes documents
    like [`translate_corpus`], with one file per chunk, named in the order of the documents. The same call continues an
    interrupted translation.

    Args:
        model: as for [`translate_corpus`]; every machine needs the same model.
        input: path or URI of a file, or of a folder of files.
        output: path or URI of a folder that all machines can reach.
        actors: number of actors; by default as many as fit.
        overwrite: whether to replace fields of an earlier translation in the documents.
        watch: called with the translated documents of each chunk.

    Raises:
        UsageError: Ray is missing, the model cannot be used or differs between machines, or the folder contains other
            files.
        ValueError: the corpus has problems, or changed during the translation.
    """
    with cluster() as ray:
        # Workers may have another working directory.
        files, folder = [_absolute(file) for file in files_of(input)], _absolute(output)
        if lies_in(folder, _absolute(input)):
            raise UsageError(f"The output {output} lies in the input {input}: choose another one.")
        translator = copy.copy(model) if isinstance(model, Translator) else Translator(model, **options.given)
        if Path(translator.model).is_dir():
            translator.model = os.path.abspath(translator.model)
        number, resources = pool_on([node["Resources"] for node in ray.nodes() if node["Alive"]], actors)
        if not resources["num_gpus"]:
            translator.device = "cpu"  # Ray may leave GPUs visible to actors that request none
        engine = Cluster(ray, number, resources)
        translate_in_chunks(engine, ChunkTranslator(translator, options), files, folder, overwrite, watch)


@contextmanager
def cluster() -> Iterator[ModuleType]:
    """
    Yields Ray, connected to a cluster or started on this machine, and raises the errors of workers.

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

    def __init__(self, ray: ModuleType, actors: int, resources: dict[str, int]):
        self.ray, self.actors, self.resources = ray, actors, resources

    def map(self, function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
        task = self.ray.remote(**self.resources)(lambda function, value: function(value))
        return self.ray.get([task.remote(function, value) for value in values])

    def translate(
        self, worker: ChunkWorker, waiting: Iterator[tuple[Chunk, list[Document]]], left: int
    ) -> Iterator[list[TranslatedRecord]]:
        # Ray restarts an actor that dies, with its current chunk.
        actor = self.ray.remote(max_restarts=RESTARTS, max_task_retries=RESTARTS, **self.resources)(ChunkWorker)
        parts = (worker.translator, worker.identity, worker.chunks)
        actors = [actor.remote(*parts) for _ in range(min(self.actors or left, left))]
        # Actors get their first chunk once they have started, for which the cluster may have to grow.
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
            for each in actors:  # release their resources
                self.ray.kill(each)


def _absolute(path: str) -> str:
    return path if "://" in path else os.path.abspath(path)
