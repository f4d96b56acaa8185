"""A checkpoint goes to the Hub in one commit, with its code, its card and what belongs to it."""

import json
import shutil

import pytest
from repository import ROOT

from hub_cards.publish import main as publish
from modeling_gtransformer.usage_error import UsageError


def test_publish(trained_model, hub, run, tmp_path):
    folder = shutil.copytree(trained_model, tmp_path / "model")
    (folder / "scores").mkdir()
    scores = {"s-BLEU": {"score": 12.345, "unit": "sentences", "units": 9, "signature": "tok:13a"}}
    (folder / "scores" / "dialogues.json").write_text(json.dumps({"scores": scores}))
    code = f"from hub_cards.publish import main; main([{str(folder)!r}, 'someone/name', '--dataset', 'user/corpus'])"
    run(code, PYTHONPATH=str(ROOT))
    repository = hub.repositories["someone/name"]
    assert len(repository.commits) == 1 and not repository.private
    assert {"README.md", "training.svg", ".eval_results/user-corpus.yaml", "model.safetensors"} <= set(
        repository.files
    )
    assert "hub.py" in repository.files and b'model="someone/name"' in repository.files["README.md"]


def test_a_private_repository(trained_model, hub, run):
    code = f"from hub_cards.publish import main; main([{str(trained_model)!r}, 'someone/name', '--private'])"
    run(code, PYTHONPATH=str(ROOT))
    assert hub.repositories["someone/name"].private


def test_a_card_by_hand_is_published_as_it_is(trained_model, hub, run, tmp_path):
    """Even where it has no metadata by which it would be known."""
    folder = shutil.copytree(trained_model, tmp_path / "model")
    (folder / "README.md").write_text("# Our model\n\nWritten by us.\n")
    code = f"from hub_cards.publish import main; main([{str(folder)!r}, 'someone/name'])"
    run(code, PYTHONPATH=str(ROOT))
    published = hub.repositories["someone/name"].files["README.md"]
    assert b"# Our model\n\nWritten by us." in published and b"document-translation" in published
    assert (folder / "README.md").read_text() == "# Our model\n\nWritten by us.\n"


def test_what_cannot_be_published_is_refused_before_anything_is_written(
    trained_model, sentence_level_checkpoint, tmp_path
):
    with pytest.raises(UsageError, match="there is no such folder"):
        publish([str(tmp_path / "none"), "someone/name"])
    with pytest.raises(UsageError, match="is not a G-Transformer but a plain marian: fine-tune it first"):
        publish([sentence_level_checkpoint("marian"), "someone/name"])
    broken = shutil.copytree(trained_model, tmp_path / "broken")
    (broken / "README.md").unlink(missing_ok=True)
    (broken / "model.safetensors").write_bytes(b"x")
    with pytest.raises(UsageError, match="cannot be loaded: SafetensorError"):
        publish([str(broken), "someone/name"])
    assert not (broken / "README.md").exists()
