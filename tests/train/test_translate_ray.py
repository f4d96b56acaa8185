"""The command on Ray: its options, how Slurm starts it, and what it says if it cannot begin."""

import os
import subprocess
import sys

import pytest
from repository import ROOT

from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.corpora.ray_translation import ActorPool
from modeling_gtransformer.corpora.translation_settings import TranslationSettings
from train import translate_ray


def test_options_of_the_translation_and_of_the_actors(monkeypatch):
    calls = []
    monkeypatch.setattr(translate_ray, "translate_with_ray", lambda *arguments: calls.append(arguments))
    options = "--actors 3 --gpus_per_actor 0.5 --format parquet --num_beams 2 --chunk_documents 8 --overwrite"
    translate_ray.main(["model", "s3://bucket/in", "out", *options.split()])
    settings = TranslationSettings(num_beams=2, chunk_documents=8)
    pool = ActorPool(actors=3, gpus_per_actor=0.5, format="parquet")
    assert calls == [("model", "s3://bucket/in", "out", settings, pool, True)]


@pytest.mark.parametrize("option", [["--actors", "0"], ["--gpus_per_actor", "-1"], ["--format", "csv"]])
def test_options_out_of_their_range(option, capsys):
    with pytest.raises(SystemExit) as exit:
        translate_ray.main(["model", "in.jsonl", "out", *option])
    assert exit.value.code == 2 and option[0] in capsys.readouterr().err


def test_without_ray_it_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "in.jsonl").write_text("")
    arguments = ["model", str(tmp_path / "in.jsonl"), str(tmp_path / "out")]
    assert run("translate_ray.py", lambda: translate_ray.main(arguments)) == 2
    assert "pip install 'gtransformer-hf[ray]'" in capsys.readouterr().err


COMMANDS = {
    "translate_ray.sh": "ray symmetric-run --address first:6379 --min-nodes 2 --num-cpus 8 --num-gpus 4 -- "
    "python train/translate_ray.py",
    "train.sh": "torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-id 7 --rdzv-endpoint first:29500 "
    "train/train.py",
}


@pytest.mark.parametrize("name, command", COMMANDS.items())
def test_what_slurm_runs(tmp_path, name, command):
    """With stand-ins for Slurm, which print what they are given."""
    for program, does in {"scontrol": "echo first; echo second", "srun": 'for word; do echo "$word"; done'}.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / program).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "n[1-2]"}
    numbers = {"JOB_NUM_NODES": 2, "CPUS_PER_TASK": 8, "GPUS_ON_NODE": 4, "JOB_ID": 7}
    environment |= {f"SLURM_{name}": str(number) for name, number in numbers.items()}
    script = [str(ROOT / "train" / "slurm" / name), "a b", "c"]
    printed = subprocess.run(script, env=environment, check=True, capture_output=True, text=True).stdout
    assert printed.splitlines() == [*command.split(), "a b", "c"]
