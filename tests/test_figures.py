"""The tables of the documents have the figures of the results files, which clean commits have written."""

import json
import re

import pytest
from repository import ROOT

from docs import fill_tables


RESULTS = sorted(file for folder in ("benchmarks", "train") for file in (ROOT / folder / "results").rglob("*.json"))
TEXTS = {path: path.read_text(encoding="utf-8") for path in fill_tables.DOCUMENTS}
SHOWN = {name for text in TEXTS.values() for _, name in fill_tables.TABLE.findall(text)}


@pytest.mark.parametrize("document", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_tables_have_the_figures_of_the_files(document):
    text = TEXTS[document]
    assert fill_tables.TABLE.search(text) and fill_tables.filled(text) == text, "run make tables"


def test_another_figure_is_noticed(monkeypatch):
    record = fill_tables.read("benchmarks/corpus-int8")
    record["results"]["1 beams"]["gtransformer"]["speed_ratio"] *= 2
    monkeypatch.setattr(fill_tables, "read", lambda name: record)
    assert fill_tables.make_table("corpus-int8") not in TEXTS[ROOT / "benchmarks" / "README.md"]


def test_every_result_comes_from_a_clean_commit_and_is_shown():
    for file in RESULTS:
        assert re.fullmatch(r"[0-9a-f]{7,}", json.loads(file.read_text(encoding="utf-8"))["commit"]), file
        name = file.stem if file.parent.name == "results" else file.parent.name
        assert {name, f"study:{name}"} & SHOWN, file
