"""Fixtures of a training: a small corpus, a tokenizer trained on it, and a recipe for a tiny model."""

import random
from pathlib import Path

import pytest
import yaml
from json_lines import write_json_lines
from tiny import GROUP_BELOW_COMBINED, SIZE
from transformers import set_seed

from modeling_gtransformer.training.experiment import make_trainer as trainer_and_corpus
from modeling_gtransformer.training.experiment import train_recipe
from modeling_gtransformer.training.invented_language import InventedLanguagePair
from modeling_gtransformer.training.recipe import parse_recipe
from modeling_gtransformer.training.tokenizer import TokenizerOptions, convert_tokenizer


RECIPE_CONFIG = {**SIZE, **GROUP_BELOW_COMBINED, "dropout": 0.0}


@pytest.fixture(scope="session")
def experiment(tmp_path_factory):
    """A function that writes a recipe for the tiny model, with changes, and gives its path."""
    folder = tmp_path_factory.mktemp("experiment")
    language, rng = InventedLanguagePair(seed=1), random.Random(2)
    documents = [language.document(rng) for _ in range(44)]
    train_file = write_json_lines(folder / "train.jsonl", documents[:40])
    validation_file = write_json_lines(folder / "validation.jsonl", documents[40:])
    tokenizer = folder / "tokenizer"
    columns, languages = ["source", "target"], ["[en]", "[de]"]
    convert_tokenizer(TokenizerOptions(tokenizer, columns, languages, [train_file], vocab_size=200))
    recipe = {
        "config": RECIPE_CONFIG,
        "tokenizer_name_or_path": str(tokenizer),
        "src_lang": "[en]",
        "tgt_lang": "[de]",
        "train_files": [train_file],
        "validation_files": [validation_file],
        "segment_tokens": 64,
        "max_tokens": 256,
        "label_smoothing_factor": 0.1,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "inverse_sqrt",
        "warmup_steps": 4,
        "pretrained_lr_scale": 0.2,
        "word_dropout": 0.2,
        "max_steps": 8,
        "logging_steps": 1,
        "eval_strategy": "steps",
        "eval_steps": 4,
        "per_device_eval_batch_size": 3,
        "report_to": "none",
        "use_cpu": True,
        "disable_tqdm": True,
        "ddp_find_unused_parameters": False,
    }

    def write_recipe(name, **changes):
        values = {**recipe, "output_dir": str(folder / name), **changes}
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(values), encoding="utf-8")
        return str(path)

    return write_recipe


@pytest.fixture
def make_trainer(experiment):
    """A function that makes a trainer for the recipe, with changes."""

    def make(**changes):
        arguments = parse_recipe([experiment("trainer", **changes)])
        set_seed(arguments[2].seed)
        return trainer_and_corpus(*arguments)[0]

    return make


@pytest.fixture(scope="session")
def trained_model(experiment):
    """The folder of a model after two updates, with its processor and what its training left behind."""
    recipe = experiment("trained", max_steps=2, eval_steps=1)
    train_recipe([recipe])
    return Path(recipe).with_suffix("")
