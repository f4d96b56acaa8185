"""The metric with its card loads from its folder, and the code of the card runs."""

import ast
import re
import sys

import evaluate
import pytest
from cards import snippets
from repository import ROOT

from hub_cards import metric_card


def test_metric_card(tmp_path, monkeypatch, evaluate_cache):
    metric_card.main([str(tmp_path / "document_bleu")])
    [code] = snippets(tmp_path / "document_bleu" / "README.md")
    names = {}
    monkeypatch.chdir(tmp_path)
    exec(code, names)
    assert names["scores"]["d-BLEU/document"]["units"] == 1
    assert isinstance(names["metric"], evaluate.Metric)
    assert "sdk: gradio" in (tmp_path / "document_bleu" / "README.md").read_text()


def test_the_metric_is_uploaded(hub, run):
    arguments = ["document_bleu", "--repository", "someone/document_bleu", "--push"]
    run(f"from hub_cards.metric_card import main; main({arguments!r})", PYTHONPATH=str(ROOT))
    repository = hub.repositories["someone/document_bleu"]
    assert (repository.type, repository.private) == ("space", False)
    assert set(repository.files) == {"README.md", "app.py", "requirements.txt", "document_bleu.py"}


def test_its_requirements_have_what_it_imports(tmp_path):
    metric_card.main([str(tmp_path / "document_bleu")])
    tree = ast.parse((tmp_path / "document_bleu" / "document_bleu.py").read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
    required = re.findall(r"^\w+", (tmp_path / "document_bleu" / "requirements.txt").read_text(), re.MULTILINE)
    assert imported <= set(required)


def test_nothing_of_others_is_replaced(tmp_path):
    (tmp_path / "requirements.txt").write_text("precious")
    with pytest.raises(ValueError, match=r"requirements\.txt exists and would be replaced"):
        metric_card.main([str(tmp_path)])
    with pytest.raises(ValueError, match="cannot be called app"):
        metric_card.main([str(tmp_path / "app")])
