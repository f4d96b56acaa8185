"""The figures of the documents are those of the results files, which clean commits have written."""

import json
import re

import pytest
from repository import ROOT

from docs import fill_tables
from docs.quoted_figures import quotes


RESULTS = sorted(file for folder in ("benchmarks", "train") for file in (ROOT / folder / "results").rglob("*.json"))


@pytest.mark.parametrize("document", fill_tables.DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_tables_have_the_figures_of_the_files(document):
    text = document.read_text(encoding="utf-8")
    assert fill_tables.TABLE.search(text) and fill_tables.filled(text) == text, "run make tables"


def test_another_figure_is_noticed(monkeypatch):
    benchmark = fill_tables.benchmark
    record = benchmark("corpus")
    record["results"]["1 beams"]["gtransformer"]["speed_ratio"] *= 2
    monkeypatch.setattr(fill_tables, "benchmark", lambda name: record if name == "corpus" else benchmark(name))
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert fill_tables.filled(text) != text


@pytest.mark.parametrize(("document", "text"), quotes())
def test_sentences_quote_the_figures_of_the_files(document, text):
    assert text in " ".join((ROOT / document).read_text(encoding="utf-8").split())


@pytest.mark.parametrize("file", RESULTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_results_come_from_a_clean_commit_and_are_shown(file):
    record = json.loads(file.read_text(encoding="utf-8"))
    assert re.fullmatch(r"[0-9a-f]{7,}", record["commit"])
    documents = "".join(path.read_text(encoding="utf-8") for path in fill_tables.DOCUMENTS)
    name = file.stem if file.parent.name == "results" else file.parent.name
    assert f"table {name} " in documents or f"table study:{name} " in documents
