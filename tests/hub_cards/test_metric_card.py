"""The metric with its card loads from its folder, and the code of the card runs."""

import evaluate
import pytest
from cards import snippets

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


def test_pushing_needs_a_name_for_the_metric(capsys):
    with pytest.raises(SystemExit):
        metric_card.main(["folder", "--push"])
    assert "--push needs --repository" in capsys.readouterr().err
