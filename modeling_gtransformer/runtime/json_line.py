"""JSON lines."""

import json
from collections.abc import Mapping
from typing import Any


def json_line(record: Mapping[str, Any]) -> bytes:
    """Encodes a record as a line of JSON. Only unpaired surrogates, which UTF-8 lacks, are escaped as in ASCII."""
    return f"{json.dumps(record, ensure_ascii=False)}\n".encode("utf-8", "backslashreplace")  # \ud800 is also JSON's
