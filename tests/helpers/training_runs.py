"""What a training leaves in its folder."""

import json
from pathlib import Path

import yaml
from safetensors.torch import load_file


def output(recipe):
    return Path(yaml.safe_load(Path(recipe).read_text())["output_dir"])


def validation_files(recipe):
    return yaml.safe_load(Path(recipe).read_text())["validation_files"]


def history(recipe):
    """What was logged, by step: `{(step, name): value}` of losses and learning rates."""
    log = json.loads((output(recipe) / "trainer_state.json").read_text())["log_history"]
    return {(r["step"], k): r[k] for r in log for k in ("loss", "eval_loss", "learning_rate", "grad_norm") if k in r}


def weights(recipe):
    return load_file(output(recipe) / "model.safetensors")
