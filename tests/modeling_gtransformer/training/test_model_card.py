"""A card says what the training and the scores left behind, keeps licences and edits, and goes to the Hub with its
checkpoint; its code runs."""

import json
import re
import shutil
from pathlib import Path

import pytest
from cards import snippets
from huggingface_hub import ModelCard
from json_lines import write_json_lines
from repository import ROOT
from transformers import pipeline

from modeling_gtransformer.evaluation.provenance import commit_of
from modeling_gtransformer.evaluation.scores import ScoreOptions, evaluate_scores
from modeling_gtransformer.runtime.usage_error import UsageError
from modeling_gtransformer.training.licenses import base_license, is_allowed
from modeling_gtransformer.training.model_card import write_model_card
from modeling_gtransformer.training.publish import PublishOptions, publish


NLLB = "facebook/nllb-200-distilled-600M"


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


def test_a_new_card_keeps_what_the_old_one_was_told(scored):
    attribution = "## Data\n\nOf somebody, CC BY 4.0."
    write_model_card(scored, "cc-by-4.0", "user/corpus", "user/name", notes=attribution)
    write_model_card(scored, repository="user/other")
    card = ModelCard.load(scored / "README.md")
    assert (card.data.license, card.data.datasets, card.data.model_name) == ("cc-by-4.0", ["user/corpus"], "other")
    assert f"{attribution}\n<!-- End of notes -->\n\n## Example" in card.text
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


def test_a_card_keeps_the_conditions_of_the_base(scored):
    """Whether it is generated or written by hand."""
    write_model_card(scored, "mit")
    arguments = json.loads((scored / "arguments.json").read_text())
    (scored / "arguments.json").write_text(json.dumps({**arguments, "model_name_or_path": NLLB}))
    write_model_card(scored)
    assert ModelCard.load(scored / "README.md").data.license == "cc-by-nc-4.0"
    (scored / "README.md").write_text("---\nlicense: mit\n---\n\n# Ours\n")
    with pytest.raises(ValueError, match="which may not permit mit"):
        write_model_card(scored)
    (scored / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n\n# Ours\n")
    write_model_card(scored)
    assert "# Ours" in (scored / "README.md").read_text()


@pytest.mark.parametrize(
    "license, of_base, expected",
    [
        ("mit", "cc-by-nc-4.0", False),
        ("cc-by-nc-4.0", "cc-by-nc-sa-4.0", False),
        ("cc0-1.0", "cc-by-4.0", False),
        ("mit", "gpl-3.0", False),
        ("mit", "llama2", False),
        ("cc-by-nd-4.0", "cc-by-nd-4.0", False),
        ("cc-by-nc-4.0", "cc-by-nc-4.0", True),
        ("apache-2.0", "mit", True),
        ("gpl-3.0", "cc-by-4.0", True),
        ("openrail", "openrail", True),
        ("mit", "cc0-1.0", True),
        ("mit", None, True),
    ],
)
def test_licences(license, of_base, expected):
    assert is_allowed(license, of_base) == expected


def test_the_licence_of_a_base_is_found(tmp_path):
    """In its card, in that of its own base, or by the name of a family; without either it is unknown."""
    (tmp_path / "base").mkdir()
    assert base_license(None) is base_license(str(tmp_path / "base")) is base_license("someone/unknown") is None
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "arguments.json").write_text(json.dumps({"model_name_or_path": str(tmp_path / "base")}))
    (tmp_path / "base" / "README.md").write_text("---\nlicense: cc-by-nc-sa-4.0\n---\n# Base\n")
    assert base_license(str(tmp_path / "tuned")) == base_license(str(tmp_path / "base")) == "cc-by-nc-sa-4.0"
    (tmp_path / "base" / "README.md").unlink()
    (tmp_path / "base" / "arguments.json").write_text(json.dumps({"model_name_or_path": NLLB}))
    assert base_license(str(tmp_path / "tuned")) == base_license(NLLB) == "cc-by-nc-4.0"
    (tmp_path / "base" / "arguments.json").write_text(json.dumps({"model_name_or_path": str(tmp_path / "base")}))
    assert base_license(str(tmp_path / "tuned")) is None


@pytest.mark.parametrize("edit", [lambda text: text.replace("# scored", "# ours"), lambda text: text + "ours"])
def test_an_edited_card_is_kept_unless_told_otherwise(scored, caplog, edit):
    path = scored / "README.md"
    write_model_card(scored, "mit")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))  # as a checkout may have it
    write_model_card(scored, "apache-2.0")
    assert ModelCard.load(path).data.license == "apache-2.0"
    path.write_text(edit(path.read_text()))
    edited = path.read_text()
    write_model_card(scored, "mit")
    assert path.read_text() == edited and "edited by hand and is kept: --overwrite_card replaces it" in caplog.text
    write_model_card(scored, "mit", overwrite=True)
    assert path.read_text() != edited


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
    assert "your-name/model" in text
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="holds no weights"):
        write_model_card(folder)


@pytest.fixture
def published(hub, run):
    """Publishes a folder from a process for which there is a Hub; returns the repository."""

    def call(folder, **options):
        code = "from modeling_gtransformer.training.publish import *\n"
        run(
            f"{code}publish(PublishOptions(Path({str(folder)!r}), 'someone/name', **{options!r}))",
            PYTHONPATH=str(ROOT),
        )
        return hub.repositories["someone/name"]

    return call


def test_a_checkpoint_is_published_in_one_commit(scored, published):
    repository = published(scored, dataset="user/corpus", private=True)
    assert len(repository.commits) == 1 and repository.private
    assert {"README.md", "model.safetensors", "hub.py"} <= set(repository.files)
    assert b'model="someone/name"' in repository.files["README.md"]


def test_a_card_by_hand_is_published_unchanged(trained_model, published, tmp_path):
    """Even if it has no metadata."""
    folder = shutil.copytree(trained_model, tmp_path / "model")
    (folder / "README.md").write_text("# Our model\n\nWritten by us.\n")
    repository = published(folder)
    card = repository.files["README.md"]
    assert b"# Our model\n\nWritten by us." in card and b"document-translation" in card
    assert (folder / "README.md").read_text() == "# Our model\n\nWritten by us.\n" and not repository.private


def test_only_the_card(trained_model, tmp_path, capsys):
    folder = shutil.copytree(trained_model, tmp_path / "model")
    (tmp_path / "notes.md").write_text("Data by Ann.")
    options = {"license": "mit", "dataset": "user/corpus", "repository": "user/name", "notes": tmp_path / "notes.md"}
    publish(PublishOptions(folder, card_only=True, **options))
    assert capsys.readouterr().out == f"{folder / 'README.md'}\n"
    card = ModelCard.load(folder / "README.md")
    assert (card.data.license, card.data.datasets) == ("mit", ["user/corpus"])
    assert 'pipeline(model="user/name"' in card.text and "Data by Ann." in card.text


def test_checkpoints_that_cannot_be_published(trained_model, sentence_level_checkpoint, tmp_path):
    """An error comes before anything is written."""
    broken = shutil.copytree(trained_model, tmp_path / "broken")
    (broken / "README.md").unlink(missing_ok=True)
    (broken / "model.safetensors").write_bytes(b"x")
    for folder, repository, message in (
        (tmp_path / "none", "someone/name", "none is not a folder"),
        (trained_model, None, "--repository is missing"),
        (sentence_level_checkpoint("marian"), "someone/name", "but a sentence-level marian: fine-tune it first"),
        (broken, "someone/name", "cannot be loaded: SafetensorError"),
    ):
        with pytest.raises(UsageError, match=message):
            publish(PublishOptions(Path(folder), repository))
    assert not (broken / "README.md").exists()
