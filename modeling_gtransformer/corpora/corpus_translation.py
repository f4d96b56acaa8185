"""Resumable translation of whole corpora."""

import platform
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from transformers.utils.logging import tqdm

from ..runtime.translator import Translator
from ..runtime.usage_error import UsageError
from ..translation_options import CorpusOptions
from .chunk_translation import Chunk, ChunkTranslator, TranslatedRecord, examine, read_chunks
from .corpus import Document
from .corpus_files import files_of
from .fingerprint import hash_of_file
from .translated_chunks import TranslatedChunks
from .translation_output import check_output, put_together


Watch = Callable[[Sequence[TranslatedRecord]], None]


@dataclass(frozen=True)
class ChunkWorker:
    """Translates chunks with a loaded model, whose hashes must be `identity`, and writes them."""

    translator: ChunkTranslator
    identity: dict[str, Any]
    chunks: TranslatedChunks

    def check_model(self) -> None:
        """Loads the model. Raises `UsageError` if this machine has another one."""
        found = self.translator.identity
        if changed := [name for name in found if found[name] != self.identity[name]]:
            model, machine = self.translator.translator.model, platform.node()
            raise UsageError(f"The model {model} has another {', '.join(changed)} on {machine}.")

    def translate(self, chunk: Chunk, documents: list[Document], progress: bool = False) -> list[TranslatedRecord]:
        """Translates and writes a chunk, unless it was written before a restart of the worker."""
        self.check_model()
        if self.chunks.has(chunk):
            return []
        translated = self.translator(documents, progress)
        self.chunks.write(chunk, [each.record for each in translated])
        return translated


class Engine:
    """Runs a translation in this process; subclasses run it elsewhere."""

    def map(self, function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
        return [*map(function, values)]

    def translate(
        self, worker: ChunkWorker, waiting: Iterator[tuple[Chunk, list[Document]]], left: int
    ) -> Iterator[list[TranslatedRecord]]:
        """Translates the waiting chunks, whose number is `left`, with copies of the worker, and yields the results."""
        for chunk, documents in waiting:
            yield worker.translate(chunk, documents, progress=left == 1)


def translate_corpus(
    model: str | Translator,
    input: str,
    output: str,
    options: CorpusOptions,
    overwrite: bool = False,
    watch: Watch = lambda translated: None,
) -> None:
    """
    Translates a corpus of any size in this process, and writes its documents with `translation` (a text or a list of
    sentences, like the source) and `segments` (numbers of sentences translated together). Free translation adds
    `translated_segments` (numbers of output sentences for each segment).

    An interrupted translation leaves its chunks in the folder `OUTPUT.partial`, from which the same call continues.

    Args:
        model: folder or Hub name of a G-Transformer or a sentence-level model; or a translator made with these
            options.
        input: path or URI of a file, or of the folder of a dataset, in a format of [`iterate_documents`].
        output: path in the format of the input; JSON lines for text.
        overwrite: whether to replace an existing output, and fields of an earlier translation in the documents.
        watch: called with the translated documents of each chunk.

    Raises:
        UsageError: the model cannot be used, the output exists, or an unfinished translation has another corpus, model
            or options.
        ValueError: the corpus has problems, or changed during the translation.
    """
    files = files_of(input)
    check_output(files, output, overwrite)
    partial_folder = f"{output.rstrip('/')}.partial"
    if Path(partial_folder).is_symlink():
        raise UsageError(f"{partial_folder} is a link: remove it.")
    translator = model if isinstance(model, Translator) else Translator(model, **options.given)
    translate = ChunkTranslator(translator, options)
    chunks = translate_in_chunks(Engine(), translate, files, partial_folder, overwrite, watch)
    put_together([chunks.path(chunk) for chunk in chunks], output)
    shutil.rmtree(partial_folder)


def translate_in_chunks(
    engine: Engine, translate: ChunkTranslator, files: Sequence[str], folder: str, overwrite: bool, watch: Watch
) -> TranslatedChunks:
    """
    Checks all files, then translates them into the chunks of a folder.

    Raises:
        UsageError: the model cannot be used, or the folder contains other files.
        ValueError: the files have problems, or change during the translation.
    """
    corpus = engine.map(partial(examine, options=translate.options, overwrite=overwrite), files)
    chunks = TranslatedChunks(folder, corpus, translate.options.chunk_documents)
    [identity] = engine.map(attrgetter("identity"), [translate])
    chunks.begin(identity)
    left = set(chunks.left())
    waiting = read_chunks(files, translate.options, left)
    with tqdm(total=len(left), unit=" chunks") as bar:
        for translated in engine.translate(ChunkWorker(translate, identity, chunks), waiting, len(left)):
            watch(translated)
            bar.update()
    chunks.finish(engine.map(hash_of_file, files))
    return chunks
