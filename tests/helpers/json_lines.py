"""JSON lines: a record per line."""

import json
from pathlib import Path


def read_json_lines(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_json_lines(path, records):
    """Writes the records, and gives the path as commands take it."""
    Path(path).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)
