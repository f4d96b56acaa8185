"""Fixtures of a training: a small corpus, a tokenizer trained on it, and a recipe for a tiny model."""

import json
import random

import pytest
import yaml

from modeling_gtransformer.training.invented_language import InventedLanguagePair
from train.train_tokenizer import main as train_tokenizer


TINY_CONFIG = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "encoder_global_layers": 1,
    "decoder_global_layers": 1,
    "cross_global_layers": 1,
    "max_position_embeddings": 128,
    "dropout": 0.0,
}


def write_documents(path, documents):
    path.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="session")
def tiny_config():
    return dict(TINY_CONFIG)


@pytest.fixture(scope="session")
def experiment(tmp_path_factory):
    """A function that writes a recipe for the tiny model, with changes, and gives its path."""
    folder = tmp_path_factory.mktemp("experiment")
    language, rng = InventedLanguagePair(seed=1), random.Random(2)
    documents = [language.document(rng) for _ in range(44)]
    train_file = write_documents(folder / "train.jsonl", documents[:40])
    validation_file = write_documents(folder / "validation.jsonl", documents[40:])
    tokenizer = str(folder / "tokenizer")
    languages = ["--columns", "source", "target", "--languages", "[en]", "[de]"]
    train_tokenizer([tokenizer, "--files", train_file, *languages, "--vocab_size", "200"])
    recipe = {
        "config": TINY_CONFIG,
        "tokenizer_name_or_path": tokenizer,
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
