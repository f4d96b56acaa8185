"""JSON lines: records with the translations of their sources."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..files.aligned_pairs import Pairs
from ..json_line import json_line
from ..pipeline_gtransformer import DocumentTranslationPipeline, NamedDocument
from ..translator import as_document, as_its_source
from .report import Report


# Fields that belong to one translation, and would be wrong for another.
OF_A_TRANSLATION = ("translation", "confidence", "segments", "translated_segments")


class JsonLines:
    """
    The records of a file on their way through a pipeline; those that fail are reported.

    Args:
        file: name of the file in messages.
        column: field that holds the source.
        confidence: whether the pipeline returns `confidence`.
        overwrite: whether records may already have the fields of a translation.

    Attributes:
        number: number of records read so far.
    """

    def __init__(self, file: str, column: str, confidence: bool, overwrite: bool, report: Report):
        self.file, self.column, self.confidence, self.overwrite = file, column, confidence, overwrite
        self.report = report
        self.records: dict[str, tuple[int, dict[str, Any]]] = {}
        self.number = 0

    def read(self, source: Iterable[bytes]) -> Iterator[NamedDocument]:
        """Yields the sources of the records, named by their lines; what is not a record is reported."""
        fields = ["translation", "confidence"] if self.confidence else ["translation"]
        for number, line in enumerate(source, 1):
            line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if not line.strip():
                continue
            self.number += 1
            name = f"{self.file}, line {number}"
            try:
                record = read_record(line, self.column, fields, self.overwrite)
            except ValueError as error:
                self.report.fail(self.file, error, number)
                continue
            self.records[name] = number, record
            yield NamedDocument(name, record[self.column])

    def translated(self, chunk: list[NamedDocument], translate: DocumentTranslationPipeline) -> Iterator[bytes]:
        """Yields the lines of a chunk with their translations. If the chunk fails as a whole, each record is tried
        alone."""
        try:
            translations = list(translate.translate_all(chunk))
        except Exception as error:
            if len(chunk) > 1:
                for document in chunk:
                    yield from self.translated([document], translate)
            else:
                self.report.fail(self.file, error, self.records.pop(chunk[0].name)[0])
            return
        done: dict[str, Pairs] = {}
        for document, translation in zip(chunk, translations, strict=True):
            number, record = self.records.pop(document.name)
            try:
                yield write_record(record, translation, self.column, self.confidence)
                done[document.name] = translation["sentences"]
            except ValueError as error:
                self.report.fail(self.file, error, number)
        self.report.note(done, translate)


def read_record(line: bytes, column: str, fields: list[str], overwrite: bool) -> dict[str, Any]:
    """
    Reads and checks a record.

    Args:
        column: field that holds the source, a text or a list of sentences.
        fields: fields that the translation adds.
        overwrite: whether the record may already have them.

    Raises:
        ValueError: the line is not such a record.
    """
    try:
        record = json.loads(line.decode("utf-8"), object_pairs_hook=_object, parse_float=_number)
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8, {error.reason} at byte {error.start + 1}") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"broken JSON, {error}") from error
    if not isinstance(record, dict):
        raise ValueError(f"a record must be a JSON object, not {type(record).__name__}")
    if column not in record:
        raise ValueError(f"no document in the column {column!r}")
    as_document(record[column], f"the column {column!r}")
    if not overwrite and (present := [name for name in fields if name in record]):
        raise ValueError(f"the record already has a field {present[0]!r}: --overwrite replaces it")
    return record


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(fields := dict(pairs)) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"the field {twice!r} appears twice in an object")
    return fields


def _number(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise ValueError(f"the number {digits} is too large")
    return number


def count_records(path: Path) -> int:
    """Number of lines of a file that are not blank."""
    with path.open("rb") as file:
        return sum(not line.isspace() for line in file)


def write_record(record: dict[str, Any], translated: dict[str, Any], column: str, confidence: bool) -> bytes:
    """
    Returns a record as a line with its `translation`, a text or a list of sentences like its source, and `confidence`
    if asked for. Fields of an earlier translation are left out.

    Args:
        translated: what the pipeline returned for its source.

    Raises:
        ValueError: the record is nested too deeply to be written.
    """
    earlier = OF_A_TRANSLATION if "translation" in record else ()
    record = {name: value for name, value in record.items() if name == column or name not in earlier}
    record["translation"] = as_its_source(record[column], translated)
    if confidence:
        record["confidence"] = [pair["confidence"] for pair in translated["sentences"]]
    try:
        return json_line(record)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
