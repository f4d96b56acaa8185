"""The metric loads from its folder, and the code of its card runs."""

import shutil
import sys

import evaluate
import pytest
from cards import snippets
from repository import ROOT

from modeling_gtransformer.evaluation import metrics


def test_the_metric(tmp_path, monkeypatch):
    # Imported metrics are cached as a package, which would stay that of the test that imported it first.
    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "cache"))
    for name in [name for name in sys.modules if name.split(".")[0] == "evaluate_modules"]:
        monkeypatch.delitem(sys.modules, name)
    folder = shutil.copytree(ROOT / "hub_cards" / "metric", tmp_path / "your-name" / "document_bleu")
    shutil.copyfile(metrics.__file__, folder / "scores.py")
    monkeypatch.chdir(tmp_path)
    names = {}
    [code] = snippets(folder / "README.md")
    exec(code, names)
    assert names["scores"]["d-BLEU/document"]["units"] == 1
    assert isinstance(names["metric"], evaluate.Metric)


def test_the_page_shows_the_card():
    gradio = pytest.importorskip("gradio")
    from hub_cards.metric import app

    [card] = [block.value for block in app.page.blocks.values() if isinstance(block, gradio.Markdown)]
    assert card.lstrip().startswith("# Document BLEU") and "## Upload" in card
