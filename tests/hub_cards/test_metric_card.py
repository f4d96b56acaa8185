"""The metric with its card loads from its folder, and the code of the card runs."""

import evaluate
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
