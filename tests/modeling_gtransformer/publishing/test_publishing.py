"""Checkpoints, datasets and the metric go to the Hub in one commit each, with cards that describe them."""

import json
import shutil
from pathlib import Path

import datasets
import evaluate
import pytest
from cards import snippets
from huggingface_hub import ModelCard
from json_lines import write_json_lines
from repository import ROOT

from modeling_gtransformer.publishing.checkpoint import PublishOptions, publish
from modeling_gtransformer.publishing.dataset import DatasetOptions, publish_dataset
from modeling_gtransformer.publishing.metric import MetricOptions, publish_metric
from modeling_gtransformer.runtime.usage_error import UsageError


TRAIN = [
    {"id": i, "source": ["one two", "three"][: 1 + i % 2], "target": ["a", "b c d"][: 1 + i % 2]} for i in range(4)
]


@pytest.fixture
def call(hub, run):
    """Calls a function of the package in a process for which there is a Hub; returns the repository."""

    def call(module, function, kind, **options):
        options = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
        folder = options.pop("folder")
        name = f"modeling_gtransformer.publishing.{module}"
        code = f"from {name} import *\n{function}({kind}(folder=Path({folder!r}), **{options!r}))"
        run(code, PYTHONPATH=str(ROOT))
        return hub.repositories[options["repository"]]

    return call


def test_a_checkpoint(trained_model, call, tmp_path):
    folder = shutil.copytree(trained_model, tmp_path / "model")
    (folder / "scores").mkdir()
    scores = {"s-BLEU": {"score": 12.345, "unit": "sentences", "units": 9, "signature": "tok:13a"}}
    (folder / "scores" / "dialogues.json").write_text(json.dumps({"scores": scores}))
    options = {"folder": folder, "repository": "someone/name", "dataset": "user/corpus", "private": True}
    repository = call("checkpoint", "publish", "PublishOptions", **options)
    assert len(repository.commits) == 1 and repository.private
    expected = {"README.md", "training.svg", ".eval_results/user-corpus.yaml", "model.safetensors", "hub.py"}
    assert expected <= set(repository.files) and b'model="someone/name"' in repository.files["README.md"]


def test_a_card_by_hand_is_published_unchanged(trained_model, call, tmp_path):
    """Even if it has no metadata."""
    folder = shutil.copytree(trained_model, tmp_path / "model")
    (folder / "README.md").write_text("# Our model\n\nWritten by us.\n")
    repository = call("checkpoint", "publish", "PublishOptions", folder=folder, repository="someone/name")
    published = repository.files["README.md"]
    assert b"# Our model\n\nWritten by us." in published and b"document-translation" in published
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
    """They are refused before anything is written."""
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


def test_a_dataset_loads_as_it_is_described(tmp_path):
    train = write_json_lines(tmp_path / "train.jsonl", TRAIN)
    validation = write_json_lines(tmp_path / "validation.jsonl", TRAIN[:1])
    files = {"train": [train], "validation": [validation]}
    notes = tmp_path / "notes.md"
    notes.write_text("## Source\n\nNumbers.\n")
    options = {"columns": ("source", "target"), "license": "mit", "notes": notes}
    publish_dataset(DatasetOptions(folder=tmp_path / "corpus", **options, **files))
    loaded = datasets.load_dataset(str(tmp_path / "corpus"), cache_dir=str(tmp_path / "cache"))
    columns = [{"source": record["source"], "target": record["target"]} for record in TRAIN]
    assert loaded["train"].to_list() == columns and loaded["validation"].to_list() == columns[:1]
    text = (tmp_path / "corpus" / "README.md").read_text()
    # Documents, sentences, words on both sides, and the spread of the sentences per document.
    assert "| train | 4 | 6 | 10 | 10 | 1, 2, 2 |" in text and "| validation | 1 | 1 | 2 | 1 | 1, 1, 1 |" in text
    # The names of these columns are no languages.
    assert "license: mit" in text and "language:" not in text
    assert "\n## Source\n\nNumbers.\n\n## Limits\n" in text


def test_a_dataset_is_uploaded(call, tmp_path):
    path = write_json_lines(tmp_path / "train.jsonl", [{"de": ["a"], "en": ["b"]}])
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "notes.txt").write_text("mine")
    options = {"folder": tmp_path / "corpus", "repository": "someone/corpus", "push": True, "private": True}
    options |= {"columns": ("en", "de"), "train": [path]}
    repository = call("dataset", "publish_dataset", "DatasetOptions", **options)
    assert (repository.type, repository.private) == ("dataset", True)
    # Only what the command wrote.
    assert set(repository.files) == {"README.md", "train.jsonl"} and len(repository.commits) == 1


def test_the_metric(tmp_path, monkeypatch, evaluate_cache):
    """It loads from its folder, and the code of its card runs."""
    publish_metric(MetricOptions(folder=tmp_path / "document_bleu"))
    [code] = snippets(tmp_path / "document_bleu" / "README.md")
    names = {}
    monkeypatch.chdir(tmp_path)
    exec(code, names)
    assert names["scores"]["d-BLEU/document"]["units"] == 1
    assert isinstance(names["metric"], evaluate.Metric)
    assert "sdk: gradio" in (tmp_path / "document_bleu" / "README.md").read_text()


def test_the_metric_is_uploaded(call, tmp_path):
    options = {"folder": tmp_path / "document_bleu", "repository": "someone/document_bleu", "push": True}
    repository = call("metric", "publish_metric", "MetricOptions", **options)
    assert (repository.type, repository.private) == ("space", False)
    assert set(repository.files) == {"README.md", "app.py", "requirements.txt", "scores.py", "document_bleu.py"}


def test_files_of_others_are_not_replaced(tmp_path):
    path = write_json_lines(tmp_path / "train.jsonl", [{"id": 1, "de": ["a"], "en": ["b"]}])
    for train in (path, str(tmp_path)):
        with pytest.raises(ValueError, match=r"train.jsonl would take the place of an input: choose another output"):
            publish_dataset(DatasetOptions(folder=tmp_path, columns=("en", "de"), train=[train]))
    assert '"id"' in (tmp_path / "train.jsonl").read_text()
    for name in ("train.jsonl", "requirements.txt"):
        (tmp_path / "other").mkdir(exist_ok=True)
        (tmp_path / "other" / name).write_text("precious")
    with pytest.raises(ValueError, match=r"train\.jsonl exists and would be replaced"):
        publish_dataset(DatasetOptions(folder=tmp_path / "other", columns=("en", "de"), train=[path]))
    with pytest.raises(ValueError, match=r"requirements\.txt exists and would be replaced"):
        publish_metric(MetricOptions(folder=tmp_path / "other"))
    with pytest.raises(ValueError, match="a name other than app"):
        publish_metric(MetricOptions(folder=tmp_path / "app"))


def test_options_that_need_others():
    with pytest.raises(UsageError, match="push needs --repository"):
        MetricOptions(folder=Path("a"), push=True)
    with pytest.raises(UsageError, match="private needs --push"):
        MetricOptions(folder=Path("a"), repository="b", private=True)
