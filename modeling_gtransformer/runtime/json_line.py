"""JSON lines."""

import json
from collections.abc import Mapping
from typing import Any


def json_line(record: Mapping[str, Any]) -> bytes:
    """Encodes a record as a line of JSON, in ASCII if it contains an unpaired surrogate."""
    try:
        return f"{json.dumps(record, ensure_ascii=False)}\n".encode()
    except UnicodeEncodeError:
        return f"{json.dumps(record)}\n".encode()
