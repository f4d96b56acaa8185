"""Fills the tables of the documents with figures from results files, according to `tables.yaml`.

    python -m docs.fill_tables

A table stands between `<!-- table NAME -->` and `<!-- end of table -->`, followed by its provenance: command,
hardware, versions and commit of its results file, or of one of its files.
"""

import json
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any

import yaml

from modeling_gtransformer.evaluation.report import markdown
from modeling_gtransformer.training.study_results import table as study_table

from . import table_rows


ROOT = Path(__file__).parent.parent
DOCUMENTS = (
    *(ROOT / name for name in ("docs/quickstart.md", "docs/testing.md", "benchmarks/README.md")),
    *(ROOT / "train" / name for name in ("README.md", "RESULTS.md")),
    *sorted((ROOT / "train" / "results").glob("*.md")),
)
TABLE = re.compile(r"(<!-- table (\S+) -->\n).*?(?=<!-- end of table -->)", re.DOTALL)
TABLES = yaml.safe_load((ROOT / "docs" / "tables.yaml").read_text(encoding="utf-8"))


class Cells(Formatter):
    """Format strings of cells; fields may be quotients or differences of two figures."""

    OPERATORS = {" / ": operator.truediv, " - ": operator.sub}

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        for sign, apply in self.OPERATORS.items():
            left, is_found, right = field_name.partition(sign)
            if is_found:
                values = [super(Cells, self).get_field(each, args, kwargs)[0] for each in (left, right)]
                return apply(*values), None
        return super().get_field(field_name, args, kwargs)

    def row(self, form: str, labels: Sequence[Any], figures: Mapping[str, Any]) -> list[str]:
        return [self.cell(cell.strip(), labels, figures) for cell in form.split("|")]

    def cell(self, form: str, labels: Sequence[Any], figures: Mapping[str, Any]) -> str:
        try:
            return self.vformat(form.removeprefix("?"), labels, figures)
        except (KeyError, TypeError):  # missing, or None
            if form.startswith("?"):
                return ""
            raise


def filled(text: str) -> str:
    """Fills the tables of a document."""
    return TABLE.sub(lambda match: match[1] + make_table(match[2]), text)


def make_table(name: str) -> str:
    """Returns a table with its provenance. Raises `KeyError` for unknown names."""
    kind, _, study = name.rpartition(":")
    if kind == "study":
        record = read(f"train/{study}")
        if isinstance(record.get("baseline"), str):  # an older file: one system for all scores
            record["baseline"] = dict.fromkeys(("s-BLEU", "d-BLEU"), record["baseline"])
        return f"{study_table(record)}\n\n{origin(record)}\n"
    table = TABLES[name]
    records = [read(file) for file in table.get("files", [f"benchmarks/{name}"])]
    text, number = markdown([*rows_of(table, records)]), table.get("origin", 0)
    if number < 0:
        return f"{text}\n"
    others = sorted({record["commit"] for record in records} - {records[number]["commit"]})
    places = f", some at {', '.join(others)}" if others else ""
    likewise = f" (the other files likewise{places})" * (len(records) > 1)
    return f"{text}\n\n{origin(records[number])}{likewise}\n"


def rows_of(table: dict[str, Any], records: list[dict[str, Any]]) -> Iterator[list[str]]:
    """Yields the head and the rows of a table."""
    cells, forms, rows = Cells(), table["cells"], table["rows"]
    yield cells.row(table["head"], (), records[0])
    if isinstance(rows, int):
        made = table_rows.nested(records[0]["results"], rows)
    else:
        made = getattr(table_rows, rows)(table.get("labels"), *records)
    for labels, figures in made:
        for form in forms if isinstance(forms, list) else [forms]:
            yield cells.row(form, labels, figures)


def read(name: str) -> dict[str, Any]:
    """Reads a results file, such as `benchmarks/corpus` or `train/unseen/1`."""
    folder, _, file = name.partition("/")
    text = (ROOT / folder / "results" / f"{file}.json").read_text(encoding="utf-8")
    return json.loads(text, object_hook=table_rows.Figures)


def origin(record: dict[str, Any]) -> str:
    versions = record["versions"]
    made_with = f"torch {versions['torch']}, Transformers {versions['transformers']}, commit {record['commit']}"
    return f"`{record['command']}`: {record['hardware']}, {made_with}"


def main() -> None:
    for path in DOCUMENTS:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
