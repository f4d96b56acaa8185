"""The command on Ray: its options, and what it says if it cannot begin."""

import sys

import pytest

from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.training.ray_translation import ActorPool
from modeling_gtransformer.training.translation_settings import TranslationSettings
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
