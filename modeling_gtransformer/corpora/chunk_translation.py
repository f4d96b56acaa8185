"""Translation of a corpus in chunks.

A worker translates and writes the documents of a chunk together, so an interruption loses only the current chunk.
"""

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, NamedTuple

import pyarrow
from datasets import Features

from ..pipeline_gtransformer import NamedDocument
from ..runtime.translator import Translator, as_document, as_its_source
from ..sentence import Sentence
from ..translation_options import CorpusOptions
from .corpus import Document, iterate_documents
from .corpus_files import TABLES, has_extension, open_table
from .fingerprint import hash_of_file, hashes_of_translator
from .free_translation import translate_freely


NUMBERS = pyarrow.list_(pyarrow.int64())
# Fields of a translation and their types in tables. Fields of an earlier translation would be wrong.
FIELDS = {
    "translation": pyarrow.list_(pyarrow.string()),
    "confidence": pyarrow.list_(pyarrow.float64()),
    "segments": NUMBERS,
    "translated_segments": NUMBERS,
}
# Key in the metadata of a schema with the features of `datasets`, such as class names.
FEATURES = b"huggingface"


class Chunk(NamedTuple):
    """Number of a file of the corpus, and of a chunk in this file, both from 0."""

    file: int
    number: int


@dataclass(frozen=True)
class FileContent:
    """An input file: path or URI, SHA-256, number of documents, columns of its translation (`None` for JSON lines)."""

    path: str
    hash: str
    documents: int
    schema: pyarrow.Schema | None


def examine(path: str, options: CorpusOptions, overwrite: bool) -> FileContent:
    """
    Reads and checks a file.

    Args:
        overwrite: whether documents may have fields of an earlier translation.

    Raises:
        ValueError: lists the problems of the file.
    """
    digest = hash_of_file(path)
    problems_of = partial(problems_of_source, options=options, overwrite=overwrite)
    documents = sum(1 for _ in iterate_documents([path], [options.source_column], problems_of=problems_of))
    return FileContent(path, digest, documents, schema_of(path, options) if has_extension(path, TABLES) else None)


def problems_of_source(document: Document, options: CorpusOptions, overwrite: bool) -> Iterator[str]:
    """Yields the reasons why a document cannot be translated."""
    column = options.source_column
    try:
        source = as_document(document.record.get(column), f"the column {column!r}")
        if options.free and isinstance(source, str):
            yield f"{document.place}: free translation needs a list of sentences, not a text"
    except ValueError as error:
        missing = column not in document.record
        yield f"{document.place}: {f'no document in the column {column!r}' if missing else error}"
    if not overwrite and (present := [name for name in FIELDS if name in document.record]):
        yield f"{document.place}: the document already has a field {present[0]!r}: --overwrite replaces it"


def schema_of(path: str, options: CorpusOptions) -> pyarrow.Schema:
    """Returns the columns of the translation of a table, with added fields at the end."""
    with open_table(path) as (schema, _):
        source = schema.field(options.source_column).type
        text = source if pyarrow.types.is_large_string(source) else pyarrow.string()
        # Texts may also be views, or words of a dictionary.
        types = FIELDS | ({} if pyarrow.types.is_nested(source) else {"translation": text})
        own = [field for field in schema if field.name not in FIELDS]
        added = [(name, types[name]) for name in added_fields(options)]
        translated = pyarrow.schema([*own, *added], metadata=schema.metadata)
        if FEATURES not in (schema.metadata or {}):
            return translated
        return translated.with_metadata(Features.from_arrow_schema(translated).arrow_schema.metadata)


def added_fields(options: CorpusOptions) -> list[str]:
    """Returns the names of the fields that a translation adds to a document."""
    extra = {"confidence": options.confidence, "translated_segments": options.free}
    return [name for name in FIELDS if extra.get(name, True)]


def read_chunks(
    files: Sequence[str], options: CorpusOptions, wanted: Collection[Chunk] | None = None
) -> Iterator[tuple[Chunk, list[Document]]]:
    """Reads chunks of a corpus that [`examine`] has checked, by default all."""
    wanted_files = range(len(files)) if wanted is None else {chunk.file for chunk in wanted}
    for file, path in enumerate(files):
        if file not in wanted_files:
            continue
        documents = iterate_documents([path], [options.source_column], problems_of=lambda document: ())
        chunks = map(Chunk, itertools.repeat(file), itertools.count())
        while group := list(itertools.islice(documents, options.chunk_documents)):
            if (chunk := next(chunks)) in (wanted or [chunk]):
                yield chunk, group


class TranslatedRecord(NamedTuple):
    """
    A translated document.

    Attributes:
        place: its first line in the corpus.
        record: its fields, with those of the translation.
        result: output of the pipeline.
    """

    place: str
    record: dict[str, Any]
    result: dict[str, Any]


class ChunkTranslator:
    """Translates the documents of a chunk. The first call loads the model; pickling preserves only settings."""

    def __init__(self, translator: Translator, options: CorpusOptions):
        self.translator, self.options = translator, options

    def __call__(self, documents: Sequence[Document], progress: bool = False) -> list[TranslatedRecord]:
        """
        Returns the documents with `translation` (a text or a list of sentences, like the source) and `segments`
        (numbers of sentences translated together). Options add `confidence` (a number per sentence) and, for free
        translation, `translated_segments` (numbers of output sentences for each segment).
        """
        column = self.options.source_column
        named = []
        for document in documents:
            source = as_document(document.record[column], document.place)
            places = None if isinstance(source, str) else [document.where(column, n) for n in range(len(source))]
            named.append(NamedDocument(document.place, source, places))
        translate = self._freely if self.options.free else self._aligned
        return [
            TranslatedRecord(
                document.place,
                {name: value for name, value in document.record.items() if name not in FIELDS}
                | {name: fields[name] for name in added_fields(self.options)},
                result,
            )
            for document, (fields, result) in zip(documents, translate(named, progress), strict=True)
        ]

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Values on which translations depend: hashes of the model, which this loads, and options."""
        translate = self.translator.pipeline
        options = {each.name: getattr(self.options, each.name) for each in fields(CorpusOptions)}
        if options["glossary"]:
            options["glossary"] = repr(options["glossary"])
        return {**hashes_of_translator(translate.model, translate.processor), **options}

    def _aligned(self, named: list[NamedDocument], progress: bool) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        results = self.translator.pipeline.translate_all(named, progress=progress)
        for document, result in zip(named, results, strict=True):
            added = {
                "translation": as_its_source(document.document, result),
                "segments": result["segments"],
                "confidence": [pair.get("confidence") for pair in result["sentences"]],
            }
            yield added, result

    def _freely(self, named: list[NamedDocument], progress: bool) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        pipeline, options = self.translator.pipeline, self.options.given
        names = ("segment_tokens", "segment_sentences", "max_tokens", "num_beams")
        given = {name: options[name] for name in names if name in options}
        documents = [
            [Sentence(str(text), place) for text, place in zip(document.document, document.places or (), strict=True)]
            for document in named
        ]
        for free in translate_freely(pipeline.model, pipeline.processor, documents, progress=progress, **given):
            numbers = list(map(len, free.translations))
            translation = list(itertools.chain(*free.translations))
            added = {"translation": translation, "segments": free.segments, "translated_segments": numbers}
            yield added, {"warnings": free.warnings}
