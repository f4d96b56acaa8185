"""A checkpoint goes to the Hub in one commit, with its code, its card and what belongs to it."""

import json
import shutil

from repository import ROOT


def test_publish(trained_model, hub, run, tmp_path):
    folder = shutil.copytree(trained_model, tmp_path / "model")
    (folder / "scores").mkdir()
    scores = {"s-BLEU": {"score": 12.345, "unit": "sentences", "units": 9, "signature": "tok:13a"}}
    (folder / "scores" / "dialogues.json").write_text(json.dumps({"scores": scores}))
    code = f"from hub_cards.publish import main; main([{str(folder)!r}, 'someone/name', '--dataset', 'user/corpus'])"
    run(code, PYTHONPATH=str(ROOT))
    repository = hub.repositories["someone/name"]
    assert len(repository.commits) == 1
    assert {"README.md", "training.svg", ".eval_results/user-corpus.yaml", "model.safetensors"} <= set(
        repository.files
    )
    assert "hub.py" in repository.files and b'model="someone/name"' in repository.files["README.md"]
