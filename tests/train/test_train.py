"""Training runs as the recipe says, on one process, two, or two machines, and every recipe does."""

import json
import re
import shutil
from pathlib import Path

import adapters
import pytest
import torch
import yaml
from json_lines import write_json_lines
from tiny import SIZE, STACKS
from training_runs import history, output, weights
from two_processes import run_on_two_machines, run_on_two_processes

import train.train
from modeling_gtransformer.training.experiment import train_recipe
from modeling_gtransformer.training.recipe import RECIPES, read_recipe


def typical_confidence(recipe):
    return json.loads((output(recipe) / "processor_config.json").read_text())["typical_confidence"]


def test_two_processes_train_as_one(experiment):
    """And one process continues what two began."""
    settings = {"tokens_per_update": 512, "save_steps": 5}
    one, two, continued = (experiment(name, **settings) for name in ("one", "two", "continued"))
    run_on_two_processes(train.train.__file__, two)
    train_recipe([one])
    shutil.copytree(output(two) / "checkpoint-5", output(continued) / "checkpoint-5")
    shutil.copy(output(two) / "arguments.json", output(continued))
    train_recipe([continued])
    assert {name for _, name in history(one)} == {"loss", "eval_loss", "learning_rate", "grad_norm"}
    for other in (two, continued):
        assert history(other) == pytest.approx(history(one), rel=1e-5)
        for name, value in weights(one).items():
            torch.testing.assert_close(weights(other)[name], value, rtol=1e-4, atol=1e-5)
        assert (output(other) / "sample.json").read_text() == (output(one) / "sample.json").read_text()
        assert typical_confidence(other) == pytest.approx(typical_confidence(one), abs=2e-3)


def test_machines_with_disks_of_their_own(experiment, tmp_path):
    """Each prepares the corpus, and keeps what it needs to continue."""
    recipe = experiment("machines", output_dir="output", max_steps=2, save_steps=1, save_on_each_node=True)
    disks = [tmp_path / "0", tmp_path / "1"]
    run_on_two_machines(disks, train.train.__file__, recipe)
    for disk in disks:
        assert [*disk.glob("cache/**/cache-*.arrow")]
        for name in ("arguments.json", "checkpoint-2/trainer_state.json", "checkpoint-2/model.safetensors"):
            assert (disk / "output" / name).exists(), name


def small(name):
    """Values of the tiny size for the configuration of a recipe, with as many layers as it has."""
    config = read_recipe(RECIPES / f"{name}.yaml")["config"]
    if "model_name_or_path" not in read_recipe(RECIPES / f"{name}.yaml") and name != "demo":
        layers = {stack: config[stack] for stack in ("encoder_layers", "decoder_layers")}
        return {**SIZE, **layers, "dropout": 0.0}
    if "encoder_attention_types" in config:
        return {f"{stack}_attention_types": config[f"{stack}_attention_types"][:1] * 6 for stack in STACKS}
    return {} if "encoder_global_layers" in config else {f"{stack}_global_layers": 2 for stack in STACKS}


# Recipes that start from a sentence-level translator, with its family, and the languages of the tiny one.
TRANSLATORS = {"opus_mt": "marian", "nllb": "m2m_100-nllb", "nllb_lora": "m2m_100-nllb", "mbart50": "mbart-50"}


def test_every_recipe_trains(experiment, tmp_path, sentence_level_checkpoint):
    """A step of each, at the size of the tiny model: from random weights, from a sentence-level Transformer, or from a
    sentence-level translator."""
    base = yaml.safe_load(Path(experiment("recipes")).read_text())
    keep = ("train_files", "src_lang", "tgt_lang", "max_tokens", "use_cpu", "report_to")
    shared = {name: base[name] for name in keep} | {"max_steps": 1, "tokens_per_update": 256, "segment_tokens": 64}
    shared |= {"eval_strategy": "no", "save_strategy": "no", "load_best_model_at_end": False, "disable_tqdm": True}
    shared |= {"early_stopping_patience": None}
    # One sentence: a model after one step translates it to the longest length.
    short = {"source": ["ba ."], "target": ["ba ."]}
    shared["validation_files"] = [write_json_lines(tmp_path / "short.jsonl", [short])]
    names = sorted(path.stem for path in RECIPES.glob("*.yaml"))
    names = [name for name in names if "lora" not in name or not adapters.refusal()]
    names.sort(key="transformer_sentences".__ne__)  # from which others start
    for name in names:
        values = {**shared, "extends": str(RECIPES / f"{name}.yaml"), "output_dir": str(tmp_path / name)}
        values["config"] = small(name) if name not in TRANSLATORS else {}
        if name in TRANSLATORS:
            values["model_name_or_path"] = sentence_level_checkpoint(TRANSLATORS[name])
            for language in ("src_lang", "tgt_lang"):  # those of the recipe
                del values[language]
        elif "encoder_layers" in values["config"]:
            values["tokenizer_name_or_path"] = base["tokenizer_name_or_path"]
        else:
            values["model_name_or_path"] = str(tmp_path / "transformer_sentences")
        recipe = tmp_path / f"{name}.yaml"
        recipe.write_text(yaml.safe_dump(values))
        loss = train_recipe([str(recipe)])["eval_loss"]
        # About as good as guessing one of 200 words: ln(200) = 5.3 nats; a translator of other words is sure of these.
        assert 4 < loss < (40 if name in TRANSLATORS else 7), name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ranidnit"], "There is no recipe ranidnit (did you mean randinit?)."),
        (["{recipe}", "--max_step", "3"], "Unknown options max_step (did you mean max_steps?)."),
        (["{recipe}", "--train_files", "absent.jsonl"], "absent.jsonl: No such file or directory"),
        (["{recipe}", "--train_files", "broken.jsonl"], "1 problems in the corpus:\n  broken.jsonl:1: broken JSON"),
        (
            ["{recipe}", "--model_name_or_path", "outputs/transformer_sentences"],
            "starts from outputs/transformer_sentences, which does not exist: first run gtransformer train "
            "transformer_sentences.",
        ),
        (
            ["{recipe}", "--model_name_or_path", "outputs/bert_start"],
            "first run gtransformer convert bert google-bert/bert-base-multilingual-cased outputs/bert_start.",
        ),
        (["{recipe}", "--model_name_or_path", "./absent"], "The training starts from ./absent, which does not exist."),
        (["{recipe}", "--tokenizer_name_or_path", "./absent"], "absent"),
        (["{recipe}", "--max_steps", "3"], "has a training with another max_steps (8, now 3): choose another"),
        (["{recipe}", "--max_tokens", "9", "--output_dir", "other"], "9"),
        (["{recipe}", "--decay_steps", "2", "--output_dir", "other"], "before the 8 updates of the training"),
    ],
)
def test_a_training_that_cannot_begin_says_why(experiment, arguments, message, tmp_path, monkeypatch, capsys):
    recipe = experiment("cannot_begin")
    (output(recipe) / "checkpoint-4").mkdir(parents=True, exist_ok=True)
    kept = {"max_steps": 8} if "--max_steps" in arguments else {}
    (output(recipe) / "arguments.json").write_text(json.dumps(kept))
    monkeypatch.chdir(tmp_path)
    Path("broken.jsonl").write_text("{\n")
    assert train.train.main(["train", *(word.format(recipe=recipe) for word in arguments)]) == 2
    error = capsys.readouterr().err
    assert re.search(r"^gtransformer train: ", error, re.MULTILINE) and message in error and "Traceback" not in error
