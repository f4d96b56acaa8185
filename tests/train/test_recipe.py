"""Every shipped recipe is understood, the command line has the last word, and mistakes are named."""

from pathlib import Path

import pytest
import yaml

import train.recipe
from modeling_gtransformer import GTransformerConfig
from train.recipe import parse_recipe


TRAIN = Path(train.recipe.__file__).parent
RECIPES = sorted((TRAIN / "recipes").glob("*.yaml"))
# What a recipe leaves to the user, and what this machine may not have.
OWN = ["--tokenizer_name_or_path", "tokenizer", "--train_files", "a.en", "a.de", "--validation_files", "b.jsonl"]
OWN += ["--fp16", "false", "--bf16", "false", "--use_cpu"]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_parses(path):
    model, data, training = parse_recipe([str(path), *OWN])
    values = yaml.safe_load(path.read_text())
    assert training.learning_rate == values["learning_rate"] and training.adam_beta2 == 0.98
    assert data.train_files == ["a.en", "a.de"] and data.segment_tokens == 512
    assert not set(model.config_values) - set(GTransformerConfig().to_dict())
    GTransformerConfig(**model.config_values)


def test_the_paper_has_its_settings():
    _, _, fresh = parse_recipe([str(TRAIN / "recipes" / "randinit.yaml"), *OWN])
    assert (fresh.word_dropout, fresh.word_dropout_epochs, fresh.max_tokens) == (0.3, 29, 4096)
    assert (fresh.lr_scheduler_type, fresh.warmup_steps, fresh.label_smoothing_factor) == ("inverse_sqrt", 4000, 0.1)
    _, _, mbart = parse_recipe([str(TRAIN / "recipes" / "mbart25.yaml"), *OWN])
    assert (mbart.lr_scheduler_type, mbart.max_steps, mbart.label_smoothing_factor) == ("polynomial", 10**6, 0.2)
    assert (mbart.max_tokens, mbart.gradient_accumulation_steps, mbart.word_dropout) == (2048, 2, 0.0)


@pytest.mark.parametrize("path", sorted((TRAIN / "accelerate").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_launch_configuration_is_accelerates(path):
    from accelerate.commands.config.config_args import load_config_from_file

    assert load_config_from_file(str(path)).num_processes > 1


def test_the_command_line_overrides(experiment):
    recipe = experiment("override")
    overrides = ["--learning_rate", "7e-5", "--config", '{"d_model": 32}', "--train_files", "x.jsonl", "y.jsonl"]
    model, data, training = parse_recipe([recipe, *overrides])
    assert (training.learning_rate, model.config_values["d_model"]) == (7e-5, 32)
    # The other values of the recipe's configuration stay.
    kept = parse_recipe([recipe])[0].config_values
    assert len(kept) > 5 and model.config_values == kept | {"d_model": 32}
    assert data.train_files == ["x.jsonl", "y.jsonl"]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"word_drop": 0.1, "lr": 1}, "unknown keys lr, word_drop"),
        ({"config": {"droput": 0.1}}, "GTransformerConfig has no droput"),
        ({"tokenizer_name_or_path": None}, "Give model_name_or_path, or"),
        ({"validation_files": None}, "Give either train_files and validation_files, or"),
        ({"dataset_name": "some/name"}, "Give either train_files and validation_files, or"),
    ],
)
def test_mistakes_are_named(experiment, changes, message):
    with pytest.raises(ValueError, match=message):
        parse_recipe([experiment("mistake", **changes)])


def test_an_argument_that_nobody_has_is_an_error(experiment):
    with pytest.raises(ValueError, match="--word_drop"):
        parse_recipe([experiment("unknown"), "--word_drop", "0.1"])
