"""Translation of a corpus in chunks. One worker translates and writes the documents of a chunk together, so a worker
that stops loses only its current chunk."""

import itertools
from collections.abc import Container, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import pyarrow

from ..pipeline_gtransformer import NamedDocument
from ..translator import Translator
from ..usage_error import UsageError
from .corpus import Document, iterate_documents
from .corpus_files import TABLES, has_ending, open_table
from .fingerprint import hash_of_file, hashes_of_translator
from .free_translation import translate_freely
from .record_encoding import to_json_lines, widened
from .translation_settings import TranslationSettings


# Fields that a translation adds to a document.
FIELDS = {
    "translation": pyarrow.list_(pyarrow.string()),
    "segments": pyarrow.list_(pyarrow.int64()),
    "translated_segments": pyarrow.list_(pyarrow.int64()),
}
# Number of documents that are checked at a time.
CHECKED = 64


class Chunk(NamedTuple):
    """The number of a file of the corpus, and of a chunk in this file, both from 0."""

    file: int
    number: int


@dataclass(frozen=True)
class FileContent:
    """
    The properties of a file of the corpus that are known before it is translated.

    Attributes:
        path: path or URI of the file.
        hash: its SHA-256.
        documents: number of its documents.
        schema: columns of its documents; `None` if their translations are written as JSON lines.
    """

    path: str
    hash: str
    documents: int
    schema: pyarrow.Schema | None


def examine(path: str, column: str, overwrite: bool, as_table: bool) -> FileContent:
    """
    Reads and checks a whole file.

    Args:
        column: column that holds the source sentences.
        overwrite: whether to replace fields of an earlier translation.
        as_table: whether to write the translation as a table instead of JSON lines.

    Raises:
        ValueError: the file has problems, or fields that the format of the output cannot hold.
        UsageError: a document has a field that the translation would overwrite.
    """
    digest, number, schema = hash_of_file(path), 0, None
    is_table = has_ending(path, TABLES)
    for documents in _groups(_checked_documents(path, column, overwrite), CHECKED):
        number += len(documents)
        records = [document.record for document in documents]
        if not as_table:
            to_json_lines(records, path)
        elif not is_table:
            schema = widened(schema, records, path)
    if as_table and is_table:
        with open_table(path) as (schema, _):
            pass
    return FileContent(path, digest, number, schema)


def chunks_of(
    path: str, file: int, settings: TranslationSettings, wanted: Container[Chunk]
) -> Iterator[tuple[Chunk, list[Document]]]:
    """Reads the wanted chunks, with their documents, of the file that has this number in the corpus."""
    documents = iterate_documents([path], [settings.source_column])
    for number, group in enumerate(_groups(documents, settings.chunk_documents)):
        if (chunk := Chunk(file, number)) in wanted:
            yield chunk, group


def _groups(documents: Iterator[Document], size: int) -> Iterator[list[Document]]:
    while group := list(itertools.islice(documents, size)):
        yield group


def _checked_documents(path: str, column: str, overwrite: bool) -> Iterator[Document]:
    for document in iterate_documents([path], [column]):
        if not overwrite and (present := [name for name in FIELDS if name in document.record]):
            place = document.where(column, 0)
            raise UsageError(f"{place}: the document already has a field {present[0]!r}: --overwrite replaces it.")
        yield document


class ChunkTranslator:
    """
    Translates the documents of a chunk. Like a [`Translator`], it loads its model at the first call, and pickling
    keeps only its settings.

    Args:
        model: folder or Hub name of a G-Transformer, or of a sentence-level translator.
        device: device of the model, as for [`Translator`].
    """

    def __init__(self, model: str, settings: TranslationSettings, device: str | None = None):
        # Scores need the model's own translation, without copied placeholders.
        self.translator = Translator(model, device=device, keep_placeholders=False, **settings.translation_arguments())
        self.settings = settings

    def __call__(self, documents: list[Document], progress: bool = False) -> list[dict[str, Any]]:
        """
        Returns the records of the documents with `translation` (list of sentences) and `segments` (numbers of
        sentences that were translated at once). Free decoding adds `translated_segments` (numbers of sentences that
        the model wrote for each segment).
        """
        translate = self._aligned if self.settings.align_sentences else self._freely
        return [
            {name: value for name, value in document.record.items() if name not in FIELDS} | fields
            for document, fields in zip(documents, translate(documents, progress), strict=True)
        ]

    @property
    def columns(self) -> dict[str, pyarrow.DataType]:
        """Names and types of the fields that translation adds to a document."""
        aligned = self.settings.align_sentences
        return {name: kind for name, kind in FIELDS.items() if name != "translated_segments" or not aligned}

    def identity(self) -> dict[str, Any]:
        """Values on which translations depend: hashes of the model, which this loads, and settings."""
        translate = self.translator.pipeline
        return {**hashes_of_translator(translate.model, translate.processor), **asdict(self.settings)}

    def _aligned(self, documents: list[Document], progress: bool) -> Iterator[dict[str, list]]:
        column = self.settings.source_column
        named = [
            NamedDocument(document.where(column, 0), document[column], places_of(document, column))
            for document in documents
        ]
        for translated in self.translator.pipeline.translate_all(named, progress=progress):
            sentences = [pair["translation_text"] for pair in translated["sentences"]]
            yield {"translation": sentences, "segments": translated["segments"]}

    def _freely(self, documents: list[Document], progress: bool) -> Iterator[dict[str, list]]:
        pipeline, column = self.translator.pipeline, self.settings.source_column
        for free in translate_freely(
            pipeline.model,
            pipeline.processor,
            [document[column] for document in documents],
            progress=progress,
            **self.settings.free_arguments(),
        ):
            yield {
                "translation": list(itertools.chain(*free.translations)),
                "segments": free.segments,
                "translated_segments": list(map(len, free.translations)),
            }


def places_of(document: Document, column: str) -> list[str]:
    """Names the place of a document for errors."""
    return [document.where(column, number) for number in range(len(document[column]))]
