"""Reads and checks documents of aligned sentences.

A corpus is one of

* JSON lines (`.jsonl`, also `.gz` or `.xz`): one document per line, each column a list of sentences; several files are
  concatenated.
* parquet, or a folder written by `save_to_disk` of `datasets`: one document per row.
* a folder of such files, in the order of their names.
* plain text, one file per column with one sentence per line, and a line `<d>` before or between documents, as in the
  paper's corpora.
* a `datasets` dataset with columns of lists of sentences.

Readers collect all problems of a corpus, with files and lines, and raise them as one `ValueError`.
"""

import gzip
import itertools
import json
import logging
import lzma
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow

from .corpus_files import TABLES, files_of_all, has_columns, has_extension, open_decompressed, open_table


logger = logging.getLogger(__name__)

DOCUMENT_LINE = "<d>"
# Extensions of files that are not text with a sentence per line.
OTHERS = (".json", ".csv", ".tsv", ".bz2", ".zst", ".zip", ".tar")
PROBLEMS_SHOWN = 20


@dataclass(frozen=True)
class Document:
    """
    A document.

    Attributes:
        record: its columns (lists of sentences) and any other fields of the corpus.
        place: its first line, e.g. `train.jsonl:5`.
        lines: in plain text, file and first line of each column.
    """

    record: dict[str, Any]
    place: str
    lines: Mapping[str, tuple[str, int]] | None = None

    def __getitem__(self, column: str) -> list[str]:
        return self.record[column]

    def where(self, column: str, sentence: int) -> str:
        """Returns the place of a sentence, e.g. `train.de:57`."""
        if self.lines is None:
            return f"{self.place} ({column}, sentence {sentence + 1})"
        path, first = self.lines[column]
        return f"{path}:{first + sentence}"


# Lists the problems of a document.
Problems = Callable[[Document], Iterable[str]]


def read_documents(files: Sequence[str], columns: Sequence[str], blank_ok: bool = False) -> list[Document]:
    """Returns all documents of [`iterate_documents`]."""
    return list(iterate_documents(files, columns, blank_ok))


def iterate_documents(
    files: Sequence[str], columns: Sequence[str], blank_ok: bool = False, problems_of: Problems | None = None
) -> Iterator[Document]:
    """
    Reads and checks documents with aligned sentences in `columns`, and yields the valid ones.

    Args:
        files: paths or URIs of files with all the columns, of folders of such files, or of plain text files, one per
            column in this order.
        blank_ok: whether to accept sentences without text, which a system may have written.
        problems_of: lists the problems of a document instead of the default checks: missing columns, wrong types,
            documents without sentences, unequal numbers of sentences, sentences without text.

    Raises:
        ValueError: lists the problems of all files at the end, including broken lines.
    """
    problems: list[str] = []
    files = files_of_all(files, len(columns))
    problems_of = problems_of or partial(_problems_of, columns=columns, blank_ok=blank_ok)
    yield from _checked(_read(files, columns, problems), problems_of, problems, ", ".join(files))


def _read(files: Sequence[str], columns: Sequence[str], problems: list[str]) -> Iterator[Document]:
    """Reads files with all columns, or one text file per column. Raises `ValueError` for other extensions."""
    if all(map(has_columns, files)):
        readers = (_read_table if has_extension(file, TABLES) else _read_json_lines for file in files)
        return (document for read, file in zip(readers, files, strict=True) for document in read(file, problems))
    if len(files) == len(columns) and not any(has_columns(file) or has_extension(file, OTHERS) for file in files):
        return _read_text(files, columns, problems)
    raise ValueError(
        f"{files}: expected files named *.jsonl[.gz|.xz] or *.parquet, or one text file for each of {list(columns)}."
    )


def iterate_dataset(dataset: Iterable[dict], columns: Sequence[str], name: str = "dataset") -> Iterator[Document]:
    """Yields documents of a `datasets` dataset, or any iterable of dicts with these columns, checked like files."""
    documents = (Document(record, f"{name}[{i}]") for i, record in enumerate(dataset))
    return _checked(documents, partial(_problems_of, columns=columns, blank_ok=False), [], name)


def _read_table(path: str, problems: list[str]) -> Iterator[Document]:
    try:
        with open_table(path) as (_, batches):
            for number, record in enumerate(record for batch in batches for record in batch.to_pylist()):
                yield Document(record, f"{path}[{number}]")
    except (FileNotFoundError, PermissionError):
        raise
    except (pyarrow.ArrowException, OSError) as error:
        problems.append(f"{path}: broken file, {error}")


def _read_json_lines(path: str, problems: list[str]) -> Iterator[Document]:
    for number, line in read_lines(path, problems):
        if not line:
            continue  # such as a trailing line feed
        try:
            yield Document(parse_record(line), f"{path}:{number}")
        except ValueError as error:
            problems.append(f"{path}:{number}: {error}")


def parse_record(line: str) -> dict[str, Any]:
    """
    Parses a line of JSON lines.

    Raises:
        ValueError: the line is not a JSON object, or parsing would lose information.
    """
    try:
        record = json.loads(line, object_pairs_hook=_object, parse_float=_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"broken JSON, {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise ValueError("JSON is nested too deeply") from error
    if not isinstance(record, dict):
        raise ValueError(f"a document must be a JSON object, not {type(record).__name__}")
    return record


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(fields := dict(pairs)) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the field {twice!r} appears twice in an object")
    return fields


def _number(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise ValueError(f"the number {digits} is too large")
    return number


def _read_text(files: Sequence[str], columns: Sequence[str], problems: list[str]) -> Iterator[Document]:
    counts = dict.fromkeys(files, 0)
    for parts in itertools.zip_longest(*(_documents_of_text(file, problems) for file in files)):
        for file, part in zip(files, parts, strict=True):
            counts[file] += part is not None
        if None not in parts:
            lines = {column: (file, part[0]) for column, file, part in zip(columns, files, parts, strict=True)}
            record = {column: part[1] for column, part in zip(columns, parts, strict=True)}
            yield Document(record, f"{files[0]}:{parts[0][0]}", lines)
    if len(set(counts.values())) > 1:
        unequal = ", ".join(f"{file} has {count}" for file, count in counts.items())
        problems.append(f"unequal numbers of documents: {unequal}")


def _documents_of_text(path: str, problems: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yields `(number of the first line, sentences)` of each document of a text file."""
    first, sentences = 0, []
    for number, line in read_lines(path, problems):
        if line != DOCUMENT_LINE:
            first = first or number
            sentences.append(line)
            continue
        if first:
            yield first, sentences
        first, sentences = number + 1, []
    if sentences:  # a trailing <d> opens no document
        yield first, sentences


def read_lines(path: str, problems: list[str]) -> Iterator[tuple[int, str]]:
    """Yields numbered lines, split only at line feeds: other Unicode line separators may occur inside sentences. Adds
    lines that are not UTF-8, and a broken archive, to the problems."""
    number = 0
    try:
        with open_decompressed(path) as file:
            for number, raw in enumerate(file, 1):
                try:
                    line = decode_line(raw)
                except ValueError as error:
                    problems.append(f"{path}:{number}: {error}")
                    line = "\ufffd"  # preserves the alignment, so that later problems are real
                yield number, line
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        problems.append(f"{path}:{number + 1}: broken archive, {error}")


def decode_line(line: bytes) -> str:
    """
    Decodes a line, and strips white space and a byte order mark.

    Raises:
        ValueError: the line is not UTF-8.
    """
    try:
        return line.decode("utf-8").removeprefix("\ufeff").strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8, {error.reason} at byte {error.start + 1}") from error


def _checked(
    documents: Iterable[Document], problems_of: Problems, problems: list[str], name: str
) -> Iterator[Document]:
    """Yields the documents without problems. Raises `ValueError` after the last one if there are `problems`, to which
    reading adds its own."""
    read = 0
    for document in documents:
        read += 1
        found = list(problems_of(document))
        problems.extend(found)
        if not found:
            yield document
    if not read and not problems:
        problems.append(f"{name}: no documents")
    raise_if_any(problems, "problems in the corpus")
    logger.info(f"{name}: {read} documents.")


def _problems_of(document: Document, columns: Sequence[str], blank_ok: bool) -> Iterator[str]:
    sound: list[str] = []
    for column in columns:
        sentences = document.record.get(column)
        if not isinstance(sentences, list):
            yield f"{document.where(column, 0)}: no list of sentences in column {column!r}"
        elif not sentences:
            yield f"{document.where(column, 0)}: a document without sentences"
        else:
            sound.append(column)
            yield from _problems_of_sentences(sentences, partial(document.where, column), blank_ok)
    for column in sound[1:]:
        if len(document[column]) != len(document[sound[0]]):
            yield (
                f"{document.where(sound[0], 0)}: {len(document[sound[0]])} sentences in {sound[0]!r}, but "
                f"{len(document[column])} in {column!r} ({document.where(column, 0)})"
            )


def _problems_of_sentences(sentences: list, where: Callable[[int], str], blank_ok: bool) -> Iterator[str]:
    for position, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            yield f"{where(position)}: a sentence must be text, not {type(sentence).__name__}"
        elif not blank_ok and not sentence.strip():
            yield f"{where(position)}: a sentence without text"
        elif not _encodable(sentence):
            yield f"{where(position)}: an unpaired surrogate"


def _encodable(sentence: str) -> bool:
    try:
        sentence.encode()
    except UnicodeEncodeError:
        return False
    return True


def raise_if_any(problems: list[str], what: str) -> None:
    """Raises one `ValueError` with the number of problems and the first of them, if there are any."""
    if problems:
        shown = "\n  ".join(problems[:PROBLEMS_SHOWN])
        rest = f"\n  and {len(problems) - PROBLEMS_SHOWN} more" if len(problems) > PROBLEMS_SHOWN else ""
        raise ValueError(f"{len(problems)} {what}:\n  {shown}{rest}")
