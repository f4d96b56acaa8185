"""Translation of whole corpora by one process, which continues where it was stopped."""

from pathlib import Path

from transformers.utils.logging import tqdm

from ..usage_error import UsageError
from .chunk_translation import ChunkTranslator, chunks_of, examine
from .corpus_files import files_of
from .fingerprint import hash_of_file
from .record_encoding import joint_schema
from .translated_chunks import TranslatedChunks
from .translation_output import check_output, is_table, put_together
from .translation_settings import TranslationSettings


def translate_corpus(
    model: str, input: str, output: str, settings: TranslationSettings, overwrite: bool = False
) -> None:
    """
    Translates a corpus of any size, and writes its documents with `translation` (list of sentences) and `segments`
    (numbers of sentences that were translated at once). Free decoding adds `translated_segments` (numbers of sentences
    that the model wrote for each segment).

    Args:
        model: folder or Hub name of a G-Transformer, or of a sentence-level translator.
        input: path or URI of a file or a folder of documents as [`iterate_documents`] reads them.
        output: a file, `.jsonl[.gz|.xz]` or `.parquet`, or the folder of a dataset for `load_from_disk` of `datasets`.
            Until everything is translated, the chunks are in a folder `.partial` beside it, from which the same call
            continues; another corpus, model or setting is refused, by its content.
        overwrite: whether to replace an existing output, and fields of these names in the documents.

    Raises:
        UsageError: the model cannot be used, or the output or another unfinished translation is in the way.
        ValueError: the corpus has problems, or changed while it was translated.
    """
    check_output(input, output, overwrite)
    partial = f"{output.rstrip('/')}.partial"
    if Path(partial).is_symlink():
        raise UsageError(f"{partial} is a link: remove it.")
    # The whole corpus is checked before any of it is translated.
    corpus = [examine(file, settings.source_column, overwrite, is_table(output)) for file in files_of(input)]
    if is_table(output):
        joint_schema([content.schema for content in corpus if content.schema is not None], input)
    translate = ChunkTranslator(model, settings)
    chunks = TranslatedChunks(partial, corpus, settings.chunk_documents, translate.columns)
    chunks.begin(translate.identity())
    translate_left(translate, chunks)
    chunks.finish([hash_of_file(content.path) for content in corpus])
    put_together([chunks.path(chunk) for chunk in chunks], output)
    chunks.remove()


def translate_left(translate: ChunkTranslator, chunks: TranslatedChunks) -> None:
    """Translates the missing chunks."""
    left = set(chunks.left())
    with tqdm(total=len(left), unit=" chunks") as bar:
        for file in sorted({chunk.file for chunk in left}):
            for chunk, documents in chunks_of(chunks.corpus[file].path, file, translate.settings, left):
                chunks.write(chunk, translate(documents, progress=len(left) == 1))
                bar.update()
