"""A card says what the training and the scores left behind, and its code runs."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from cards import snippets
from huggingface_hub import ModelCard
from json_lines import write_json_lines
from transformers import pipeline

from modeling_gtransformer.evaluation.provenance import ROOT, commit_of
from modeling_gtransformer.evaluation.scores import ScoreOptions, evaluate_scores
from modeling_gtransformer.training.model_card import write_model_card


@pytest.fixture
def scored(trained_model, tmp_path):
    """The folder of a trained model, with the scores of a test set."""
    folder = shutil.copytree(trained_model, tmp_path / "scored")
    documents = [{"de": ["eins zwei drei vier .", "fünf ."]}, {"de": ["sechs sieben acht neun ."]}]
    write_json_lines(tmp_path / "test.jsonl", documents)
    for name, last in (("ours", "zehn ."), ("theirs", "elf zwölf .")):
        translations = [[*document["de"][:-1], last] for document in documents]
        rows = [{"translation": sentences, "segments": [len(sentences)]} for sentences in translations]
        write_json_lines(tmp_path / f"{name}.jsonl", rows)
    ours, test, theirs = (str(tmp_path / f"{name}.jsonl") for name in ("ours", "test", "theirs"))
    report = folder / "scores" / "dialogues.json"
    evaluate_scores(ScoreOptions(ours, test, baseline=theirs, reference_column="de", json=report))
    return folder


def test_card_of_a_scored_model(scored):
    write_model_card(scored, "mit", "user/corpus", "user/name")
    card = ModelCard.load(scored / "README.md")
    assert (card.data.license, card.data.language, card.data.model_name) == ("mit", ["en", "de"], "name")
    scores = json.loads((scored / "scores" / "dialogues.json").read_text())["scores"]
    results = {result.metric_name: result for result in card.data.eval_results}
    assert set(results) == set(scores)
    for name, score in scores.items():
        assert results[name].metric_value == round(score["score"], 2)
        assert results[name].metric_args == {"signature": score["signature"]}
        row = next(line for line in card.text.splitlines() if line.startswith(f"| dialogues | {name} |"))
        cells = re.split(r"(?<!\\) \| ", row)
        assert cells[2] == f"{score['score']:.2f}" and cells[4] == f"{score['difference']:+.2f}"
        assert len(cells) == 7
    assert "2 updates" in card.text and f"with the code at {commit_of(ROOT)}." in card.text
    assert "| learning rate | 0.01 |" in card.text
    curves = (scored / "training.svg").read_text()
    assert "<!-- training -->" in curves and "<!-- validation -->" in curves
    entries = yaml.safe_load((scored / ".eval_results" / "user-corpus.yaml").read_text())
    assert [entry["dataset"]["id"] for entry in entries] == ["user/corpus"] * len(scores)


def test_a_new_card_keeps_what_the_old_one_was_told(scored):
    attribution = "## Data\n\nOf somebody, CC BY 4.0."
    write_model_card(scored, "cc-by-4.0", "user/corpus", "user/name", notes=attribution)
    write_model_card(scored, repository="user/other")
    card = ModelCard.load(scored / "README.md")
    assert (card.data.license, card.data.datasets, card.data.model_name) == ("cc-by-4.0", ["user/corpus"], "other")
    assert f"{attribution}\n<!-- End of notes -->\n\n## Limits" in card.text
    write_model_card(scored, "mit", notes="Nobody's.")
    card = ModelCard.load(scored / "README.md")
    assert card.data.license == "mit" and "Nobody's." in card.text and "Of somebody" not in card.text


def test_a_card_is_kept_where_nothing_says_how_the_model_was_trained(scored):
    write_model_card(scored, "mit")
    before = (scored / "README.md").read_text()
    (scored / "arguments.json").unlink()
    (scored / "trainer_state.json").unlink()
    write_model_card(scored, repository="user/name")
    assert (scored / "README.md").read_text() == before
    write_model_card(scored, overwrite=True)
    assert "has no record of its training" in (scored / "README.md").read_text()
    write_model_card(scored, "cc-by-4.0", repository="user/name")  # there is nothing to lose
    card = ModelCard.load(scored / "README.md")
    assert card.data.license == "cc-by-4.0" and 'model="user/name"' in card.text


def test_a_licence_that_another_base_does_not_allow_is_not_kept(scored):
    write_model_card(scored, "mit")
    arguments = json.loads((scored / "arguments.json").read_text())
    arguments["model_name_or_path"] = "facebook/nllb-200-distilled-600M"
    (scored / "arguments.json").write_text(json.dumps(arguments))
    write_model_card(scored)
    assert ModelCard.load(scored / "README.md").data.license == "cc-by-nc-4.0"


def test_what_the_card_tells_the_reader_to_do(trained_model, run_without_package, tmp_path):
    folder = shutil.copytree(trained_model, tmp_path / "published")
    write_model_card(folder, repository="user/name")
    pipeline("document-translation", model=str(folder)).save_pretrained(tmp_path / "with_code")
    code = "\n".join(snippets(folder / "README.md")).replace('"user/name"', repr(str(tmp_path / "with_code")))
    out = run_without_package(code)
    assert out.count(" -> ") == 2 and out.splitlines()[-1].startswith("[[")


def test_a_checkpoint_of_which_little_is_known(checkpoint):
    folder = Path(checkpoint)
    write_model_card(folder)
    text = (folder / "README.md").read_text()
    assert "has no record of its training" in text and "No test set has been scored." in text
    assert "your-name/model" in text and not (folder / ".eval_results").exists()
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="holds no weights"):
        write_model_card(folder)


def test_a_card_by_hand_keeps_the_conditions_of_the_base(trained_model, tmp_path):
    folder = shutil.copytree(trained_model, tmp_path / "model")
    arguments = json.loads((folder / "arguments.json").read_text())
    arguments["model_name_or_path"] = "facebook/nllb-200-distilled-600M"
    (folder / "arguments.json").write_text(json.dumps(arguments))
    (folder / "README.md").write_text("---\nlicense: mit\n---\n\n# Ours\n")
    with pytest.raises(ValueError, match="mit is not known to keep its conditions"):
        write_model_card(folder)
    (folder / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n\n# Ours\n")
    write_model_card(folder)
    assert "# Ours" in (folder / "README.md").read_text()
