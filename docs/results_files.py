"""The results files of benchmarks and of trainings, as the tables of the documents read them."""

import json
from pathlib import Path
from typing import Any


ROOT = Path(__file__).parent.parent
Record = dict[str, Any]
Table = list[list[str]]


def benchmark(name: str) -> Record:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def study(name: str) -> Record:
    record = json.loads((ROOT / "train" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    if isinstance(record.get("baseline"), str):  # an older file: one system for all scores
        record["baseline"] = dict.fromkeys(("s-BLEU", "d-BLEU"), record["baseline"])
    return {"until": None, **record}
