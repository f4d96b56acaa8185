"""JSON lines: records one by one, each with the translation of its source."""

import json
from pathlib import Path
from typing import Any


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
        record = json.loads(line.decode("utf-8"))
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
    _check_source(record[column], column)
    if not overwrite and (present := [name for name in fields if name in record]):
        raise ValueError(f"the record has a field {present[0]!r} already: --overwrite replaces it")
    return record


def count_records(path: Path) -> int:
    """Number of lines of a file that are not blank."""
    with path.open("rb") as file:
        return sum(not line.isspace() for line in file)


def _check_source(source: Any, column: str) -> None:
    sentences = source if isinstance(source, list) else [source]
    for sentence in sentences:
        if not isinstance(sentence, str):
            raise ValueError(
                f"the column {column!r} must hold a text or a list of sentences, not {type(sentence).__name__}"
                + (" in a list" if isinstance(source, list) else "")
            )
        try:
            sentence.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(f"half of a character (a lone surrogate) in the column {column!r}") from error


def write_record(record: dict[str, Any], translated: dict[str, Any], column: str, confidence: bool) -> bytes:
    """
    A record as a line, with its `translation`, which is a text or a list of sentences as its source is, and
    `confidence`.

    Args:
        translated: what the pipeline gives for its source.

    Raises:
        ValueError: it is nested too deeply to be written.
    """
    as_list = [pair["translation_text"] for pair in translated["sentences"]]
    record = {**record, "translation": translated["translation_text"] if isinstance(record[column], str) else as_list}
    if confidence:
        record["confidence"] = [pair["confidence"] for pair in translated["sentences"]]
    try:
        text = json.dumps(record, ensure_ascii=False)
        return f"{text}\n".encode()
    except UnicodeEncodeError:  # another field has half of a character, which stays as it was
        return f"{json.dumps(record)}\n".encode()
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
