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


# Fields that tell of a translation, and of no other.
OF_A_TRANSLATION = ("translation", "confidence", "segments", "translated_segments")


class JsonLines:
    """
    The records of a file on their way through a pipeline; those that fail are reported.

    Args:
        file: what messages call it.
        column: field that holds the source.
        confidence: whether the pipeline gives `confidence`.
        overwrite: whether records may have the fields of a translation already.

    Attributes:
        number: records that were read so far.
    """

    def __init__(self, file: str, column: str, confidence: bool, overwrite: bool, report: Report):
        self.file, self.column, self.confidence, self.overwrite = file, column, confidence, overwrite
        self.report = report
        self.records: dict[str, tuple[int, dict[str, Any]]] = {}
        self.number = 0

    def read(self, source: Iterable[bytes]) -> Iterator[NamedDocument]:
        """The sources of the records, by their lines; what is no record is reported."""
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
        """The lines of a chunk with their translations. If it fails as a whole, each is tried alone."""
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
    A record, checked.

    Args:
        column: field that holds the source, a text or a list of sentences.
        fields: fields that the translation adds.
        overwrite: whether the record may have them already.

    Raises:
        ValueError: the line is no such record.
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
        raise ValueError(f"the record has a field {present[0]!r} already: --overwrite replaces it")
    return record


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(fields := dict(pairs)) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"the field {twice!r} stands twice in an object")
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
    A record as a line, with its `translation`, which is a text or a list of sentences as its source is, and
    `confidence`. Fields of an earlier translation are left out.

    Args:
        translated: what the pipeline gives for its source.

    Raises:
        ValueError: it is nested too deeply to be written.
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
