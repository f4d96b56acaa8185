"""Cards say what the training and the scores left behind, their code runs, and they go to the Hub with their files."""

import json
import re
from pathlib import Path

import datasets
import evaluate
import pytest
import yaml
from huggingface_hub import ModelCard
from transformers import pipeline

import modeling_gtransformer
from hub_cards import dataset_card, metric_card
from hub_cards.model_card import main as model_card
from train.score_translations import main as score_translations
from train.train import main as train
from train.translate import main as translate


ROOT = str(Path(modeling_gtransformer.__file__).parents[1])


@pytest.fixture(scope="session")
def trained(experiment):
    """The folder of a trained model, with the scores of a test set."""
    recipe = experiment("published")
    train([recipe])
    settings = yaml.safe_load(Path(recipe).read_text())
    folder, [test] = Path(settings["output_dir"]), settings["validation_files"]
    outputs = [str(folder.parent / f"beam{beams}.jsonl") for beams in (1, 2)]
    for beams, output in enumerate(outputs, 1):
        translate([str(folder), test, output, "--num_beams", str(beams)])
    scores = ["--reference", test, "--json", str(folder / "scores" / "dialogues.json")]
    score_translations([outputs[0], *scores, "--baseline", outputs[1]])
    return folder


def snippets(card):
    return re.findall(r"```python\n(.*?)```", Path(card).read_text(encoding="utf-8"), re.DOTALL)


def test_model_card(trained, run_without_package, tmp_path):
    model_card([str(trained), "--license", "mit", "--dataset", "user/corpus", "--repository", "user/name"])
    card = ModelCard.load(trained / "README.md")
    assert (card.data.license, card.data.language, card.data.model_name) == ("mit", ["en", "de"], "name")
    scores = json.loads((trained / "scores" / "dialogues.json").read_text())["scores"]
    results = {result.metric_name: result for result in card.data.eval_results}
    assert set(results) == set(scores)
    for name, score in scores.items():
        assert results[name].metric_value == round(score["score"], 2)
        assert results[name].metric_args == {"signature": score["signature"]}
        row = next(line for line in card.text.splitlines() if line.startswith(f"| dialogues | {name} |"))
        cells = re.split(r"(?<!\\) \| ", row)
        assert cells[2] == f"{score['score']:.2f}" and cells[4] == f"{score['difference']:+.2f}"
        assert len(cells) == 7
    state = json.loads((trained / "trainer_state.json").read_text())
    assert f"{state['global_step']} updates" in card.text and "| learning rate | 0.01 |" in card.text
    assert (trained / "training.svg").read_text().count("<path") > 2
    [results] = yaml.safe_load((trained / ".eval_results" / "user-corpus.yaml").read_text())[:1]
    assert results["dataset"]["id"] == "user/corpus"

    # What it tells the reader to do can be done.
    pipeline("document-translation", model=str(trained)).save_pretrained(tmp_path / "with_code")
    code = "\n".join(snippets(trained / "README.md")).replace('"user/name"', repr(str(tmp_path / "with_code")))
    out = run_without_package(code)
    assert out.count(" -> ") == 2 and out.splitlines()[-1].startswith("[[")


def test_a_checkpoint_of_which_little_is_known(processor, tiny_model, tmp_path):
    tiny_model(vocab_size=len(processor.tokenizer)).save_pretrained(tmp_path / "bare")
    processor.save_pretrained(tmp_path / "bare")
    model_card([str(tmp_path / "bare")])
    text = (tmp_path / "bare" / "README.md").read_text()
    assert "says nothing about its training" in text and "No test set has been scored." in text
    assert "your-name/bare" in text and not (tmp_path / "bare" / ".eval_results").exists()
    (tmp_path / "bare" / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="holds no weights"):
        model_card([str(tmp_path / "bare")])


def test_publish(trained, hub, run):
    code = f"from hub_cards.publish import main; main([{str(trained)!r}, 'someone/name', '--dataset', 'user/corpus'])"
    run(code, PYTHONPATH=ROOT)
    repository = hub.repositories["someone/name"]
    assert len(repository.commits) == 1
    assert {"README.md", "training.svg", ".eval_results/user-corpus.yaml", "model.safetensors"} <= set(
        repository.files
    )
    assert "hub.py" in repository.files and b'model="someone/name"' in repository.files["README.md"]


def test_the_trainer_publishes(experiment, hub, run):
    recipe = experiment("pushed", max_steps=2, push_to_hub=True, hub_model_id="someone/trained")
    run(f"from train.train import main; main([{recipe!r}])", PYTHONPATH=ROOT)
    files = hub.repositories["someone/trained"].files
    assert {"model.safetensors", "generation_config.json", "processor_config.json", "tokenizer.json"} <= set(files)
    assert {
        "modeling_gtransformer.py",
        "pipeline_gtransformer.py",
        "terminology.py",
        "README.md",
        "training.svg",
    } <= set(files)
    assert "AutoModelForSeq2SeqLM" in json.loads(files["config.json"])["auto_map"]
    card = files["README.md"].decode()
    assert "2 updates" in card and "loss per token" in card and "someone/trained" in card


def test_dataset_card(experiment, tmp_path):
    settings = yaml.safe_load(Path(experiment("any")).read_text())
    files = ["--train", *settings["train_files"], "--validation", *settings["validation_files"]]
    dataset_card.main([str(tmp_path / "corpus"), "--columns", "source", "target", *files, "--license", "mit"])
    loaded = datasets.load_dataset(str(tmp_path / "corpus"), cache_dir=str(tmp_path / "cache"))
    assert {name: len(split) for name, split in loaded.items()} == {"train": 40, "validation": 4}
    sentences = sum(map(len, loaded["train"]["source"]))
    text = (tmp_path / "corpus" / "README.md").read_text()
    # The names of these columns are no languages.
    assert f"| train | 40 | {sentences} |" in text and "language:" not in text


def test_metric_card(tmp_path, monkeypatch):
    metric_card.main([str(tmp_path / "document_bleu")])
    [code] = snippets(tmp_path / "document_bleu" / "README.md")
    names = {}
    monkeypatch.chdir(tmp_path)
    exec(code, names)
    assert names["scores"]["d-BLEU/document"]["units"] == 1
    assert isinstance(names["metric"], evaluate.Metric)
    assert "sdk: gradio" in (tmp_path / "document_bleu" / "README.md").read_text()


@pytest.mark.parametrize("main", [dataset_card.main, metric_card.main])
def test_pushing_needs_a_name(main, capsys):
    columns = ["--columns", "a", "b", "--train", "x"] if main is dataset_card.main else []
    with pytest.raises(SystemExit):
        main(["folder", "--push", *columns])
    assert "--push needs --repository" in capsys.readouterr().err
