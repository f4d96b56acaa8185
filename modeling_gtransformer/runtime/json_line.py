"""A record as a line of JSON."""

import json
from collections.abc import Mapping
from typing import Any


def json_line(record: Mapping[str, Any]) -> bytes:
    """A record as a line of JSON. One with an unpaired surrogate is written in ASCII, to preserve it."""
    try:
        return f"{json.dumps(record, ensure_ascii=False)}\n".encode()
    except UnicodeEncodeError:
        return f"{json.dumps(record)}\n".encode()
