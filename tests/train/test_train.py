"""Training runs as the recipe says: the same on one and two processes, the same after an interruption."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import datasets
import pytest
import torch
import yaml
from safetensors.torch import load_file

import train.train
from train.recipe import DataArguments
from train.train import load_documents, main


def output(recipe):
    return Path(yaml.safe_load(Path(recipe).read_text())["output_dir"])


def history(recipe):
    """What was logged, by step: `{(step, name): value}` of losses and learning rates."""
    log = json.loads((output(recipe) / "trainer_state.json").read_text())["log_history"]
    return {(r["step"], k): r[k] for r in log for k in ("loss", "eval_loss", "learning_rate", "grad_norm") if k in r}


def weights(recipe):
    return load_file(output(recipe) / "model.safetensors")


def test_two_processes_train_as_one_with_twice_the_accumulation(experiment):
    """As `accelerate launch` starts them, on the CPU."""
    one = experiment("one", gradient_accumulation_steps=2)
    two = experiment("two")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    command = [*launch, train.train.__file__, two]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert process.returncode == 0, process.stderr[-3000:]
    main([one])
    assert history(two) == pytest.approx(history(one), rel=1e-5)
    assert {name for _, name in history(one)} == {"loss", "eval_loss", "learning_rate", "grad_norm"}
    for name, value in weights(one).items():
        torch.testing.assert_close(weights(two)[name], value, rtol=1e-4, atol=1e-5)


def test_resumed_training_equals_the_uninterrupted(experiment, tiny_config):
    """With all that is random, from the middle of an epoch, from its end, and from the next one."""
    settings = {"max_tokens": 512, "max_steps": 11, "save_steps": 1, "config": {**tiny_config, "dropout": 0.1}}
    straight = experiment("straight", **settings)
    main([straight])
    epochs = json.loads((output(straight) / "trainer_state.json").read_text())["log_history"]
    epoch_end = next(record["step"] for record in epochs if record["epoch"] == 1)
    for step in (3, epoch_end, epoch_end + 1):
        resumed = experiment(f"resumed{step}", **settings)
        shutil.copytree(output(straight) / f"checkpoint-{step}", output(resumed) / f"checkpoint-{step}")
        (output(resumed) / "checkpoint-99").mkdir()  # one whose saving was cut off
        main([resumed])
        assert all(value.equal(weights(resumed)[name]) for name, value in weights(straight).items())
        assert history(resumed) == history(straight)


def test_early_stopping_is_resumed_with_its_patience(experiment):
    """A learning rate at which nothing gets better: the second evaluation without a gain ends it, resumed or not."""
    settings = {"learning_rate": 1e-9, "max_steps": 9, "eval_steps": 1, "save_steps": 1, "early_stopping_patience": 3}
    settings |= {"metric_for_best_model": "loss", "load_best_model_at_end": True, "warmup_steps": 1}
    straight = experiment("stopping", **settings)
    main([straight])
    last = max(step for step, _ in history(straight))
    assert last < 9
    resumed = experiment("stopping-resumed", **settings)
    shutil.copytree(output(straight) / f"checkpoint-{last - 1}", output(resumed) / f"checkpoint-{last - 1}")
    main([resumed])
    assert max(step for step, _ in history(resumed)) == last


def test_started_again(experiment, caplog):
    """A finished training is left alone, and none is continued with other arguments."""
    recipe = experiment("again", max_steps=2, save_steps=1)
    scores, trained = main([recipe]), weights(recipe)
    assert main([recipe]) == scores and "nothing is left to do" in caplog.text
    assert all(value.equal(trained[name]) for name, value in weights(recipe).items())
    with pytest.raises(ValueError, match="another learning_rate: choose another output_dir"):
        main([recipe, "--learning_rate", "0.5"])


def test_documents_of_a_dataset(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "data").mkdir()
    for split, size in (("train", 2), ("validation", 1)):
        line = json.dumps({"source": ["a", "b"], "target": ["c", "d"]}) + "\n"
        (tmp_path / "data" / f"{split}.jsonl").write_text(line * size)
    splits = load_documents(DataArguments(dataset_name=str(tmp_path / "data")))
    assert [len(split) for split in splits] == [2, 1] and splits[1][0]["target"] == ["c", "d"]
