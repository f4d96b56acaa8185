"""Training runs as the recipe says: the same on one and two processes, the same after an interruption."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import datasets
import huggingface_hub
import pytest
import torch
import yaml
from safetensors.torch import load_file

import train.train
from modeling_gtransformer.training.experiment import load_corpora
from modeling_gtransformer.training.recipe import DataArguments, read_recipe
from train.paper_corpora import main as paper_corpora
from train.train import main


def output(recipe):
    return Path(yaml.safe_load(Path(recipe).read_text())["output_dir"])


def history(recipe):
    """What was logged, by step: `{(step, name): value}` of losses and learning rates."""
    log = json.loads((output(recipe) / "trainer_state.json").read_text())["log_history"]
    return {(r["step"], k): r[k] for r in log for k in ("loss", "eval_loss", "learning_rate", "grad_norm") if k in r}


def weights(recipe):
    return load_file(output(recipe) / "model.safetensors")


def test_two_processes_train_as_one(experiment):
    """As `accelerate launch` starts them, on the CPU; and one process continues what two began."""
    settings = {"tokens_per_update": 512, "save_steps": 5}
    one, two, continued = (experiment(name, **settings) for name in ("one", "two", "continued"))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    command = [*launch, train.train.__file__, two]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert process.returncode == 0, process.stderr[-3000:]
    main([one])
    for name in ("checkpoint-5", "arguments.json"):
        copy = shutil.copytree if name.startswith("checkpoint") else shutil.copy
        output(continued).mkdir(exist_ok=True)
        copy(output(two) / name, output(continued) / name)
    main([continued])
    assert {name for _, name in history(one)} == {"loss", "eval_loss", "learning_rate", "grad_norm"}
    for other in (two, continued):
        assert history(other) == pytest.approx(history(one), rel=1e-5)
        for name, value in weights(one).items():
            torch.testing.assert_close(weights(other)[name], value, rtol=1e-4, atol=1e-5)


def test_machines_with_disks_of_their_own(experiment, tmp_path):
    """Each prepares the corpus, and keeps what it needs to continue."""
    recipe = experiment("machines", output_dir="output", max_steps=2, save_steps=1, save_on_each_node=True)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        rendezvous = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    machines = []
    for rank in (0, 1):
        disk = tmp_path / str(rank)
        disk.mkdir()
        environment = {**os.environ, **rendezvous, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
        environment |= {"RANK": str(rank), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        environment |= {"HF_DATASETS_CACHE": str(disk / "cache"), "PYTHONPATH": str(Path(train.__file__).parents[1])}
        command = [sys.executable, train.train.__file__, recipe]
        machines.append(subprocess.Popen(command, env=environment, cwd=disk, stderr=subprocess.PIPE, text=True))
    for machine in machines:
        _, errors = machine.communicate(timeout=240)
        assert machine.returncode == 0, errors[-3000:]
    for disk in (tmp_path / "0", tmp_path / "1"):
        assert [*disk.glob("cache/**/cache-*.arrow")]
        for name in ("arguments.json", "checkpoint-2/trainer_state.json", "checkpoint-2/model.safetensors"):
            assert (disk / "output" / name).exists(), name


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


def test_other_updates_are_not_continued(experiment):
    """A checkpoint counts updates: with others it would lie elsewhere in the corpus."""
    settings = {"max_steps": 2, "save_steps": 1, "eval_strategy": "no"}
    begun = experiment("begun", **settings, gradient_accumulation_steps=2)
    main([begun])
    checkpoint = ["--resume_from_checkpoint", str(output(begun) / "checkpoint-1")]
    other = [experiment("other", **settings, gradient_accumulation_steps=3), *checkpoint]
    with pytest.raises(ValueError, match=r"has 2 batches per update, this training 3 \(1 processes, 3 each\)"):
        main(other)
    main([*other, "--ignore_data_skip", "true"])


def test_max_steps_does_not_shorten_the_decay(experiment):
    decay = {"lr_scheduler_type": "linear", "warmup_steps": 0, "max_steps": 8, "eval_strategy": "no"}
    rates = []
    for name, settings in {"whole": {}, "short": {"max_steps": 3, "decay_steps": 8}}.items():
        recipe = experiment(f"decay-{name}", **{**decay, **settings})
        main([recipe])
        rates.append([rate for (_, name), rate in sorted(history(recipe).items()) if name == "learning_rate"])
    assert len(rates[1]) == 3 and rates[1] == rates[0][:3]


def test_a_metric_that_no_evaluation_has_is_refused_at_once(experiment):
    """Transformers would miss it at the first evaluation, which may be hours later."""
    recipe = experiment("metric", load_best_model_at_end=True, metric_for_best_model="s_bleu", train_files=["absent"])
    with pytest.raises(ValueError, match="metric_for_best_model is one of loss, not s_bleu"):
        main([recipe])
    with pytest.raises(FileNotFoundError, match="absent"):
        main([recipe, "--predict_with_generate", "true"])


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


def test_a_sample_of_the_instances(experiment):
    """Drawn by the seed, without replacement; more than there are is an error."""
    settings = {"max_steps": 2, "train_segments": 8, "eval_strategy": "no", "max_tokens": 512}
    scores = [main([experiment(f"sample{i}", **settings, seed=seed)]) for i, seed in enumerate((1, 1, 2))]
    assert scores[0]["eval_loss"] == scores[1]["eval_loss"] != scores[2]["eval_loss"]
    with pytest.raises(ValueError, match="train_segments=999, but the corpus has"):
        main([experiment("sample-999", train_segments=999)])


def test_every_recipe_trains(experiment, tmp_path, tiny_config):
    """A step of each, at the size of the tiny model: from random weights, or from a sentence-level Transformer."""
    recipes = Path(train.train.__file__).parent / "recipes"
    base = yaml.safe_load(Path(experiment("recipes")).read_text())
    layers = dict.fromkeys(("encoder_layers", "decoder_layers"), 6)
    small = {name: value for name, value in tiny_config.items() if "global" not in name} | layers
    keep = (
        "train_files",
        "validation_files",
        "src_lang",
        "tgt_lang",
        "max_tokens",
        "use_cpu",
        "report_to",
    )
    shared = {name: base[name] for name in keep} | {"max_steps": 1, "tokens_per_update": 256, "segment_tokens": 64}
    shared |= {"eval_strategy": "no", "save_strategy": "no", "load_best_model_at_end": False, "disable_tqdm": True}
    shared |= {"early_stopping_patience": None}
    names = sorted(path.stem for path in recipes.glob("*.yaml"))
    names.sort(key="transformer_sentences".__ne__)  # from which others start
    for name in names:
        values = {**shared, "extends": str(recipes / f"{name}.yaml"), "output_dir": str(tmp_path / name)}
        if "model_name_or_path" in read_recipe(recipes / f"{name}.yaml") or name == "demo":
            values["model_name_or_path"] = str(tmp_path / "transformer_sentences")
            twelve = read_recipe(recipes / f"{name}.yaml")["config"].get("encoder_attention_types")
            if twelve:
                values["config"] = {
                    f"{stack}_attention_types": twelve[:6] for stack in ("encoder", "decoder", "cross")
                }
            elif "encoder_global_layers" not in read_recipe(recipes / f"{name}.yaml")["config"]:
                values["config"] = {f"{stack}_global_layers": 2 for stack in ("encoder", "decoder", "cross")}
        else:
            values["tokenizer_name_or_path"] = base["tokenizer_name_or_path"]
            values["config"] = small
            if name == "randinit_large":
                values["config"] = small | {"encoder_layers": 12, "decoder_layers": 12}
        recipe = tmp_path / f"{name}.yaml"
        recipe.write_text(yaml.safe_dump(values))
        assert main([str(recipe)])["eval_loss"] > 0, name


def test_the_papers_corpora_come_from_the_hub(tmp_path, monkeypatch, capsys):
    """Read from the Hub's cache, as it is after a download."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "datasets--gshbao--DocNMT"
    files = folder / "snapshots" / "0123456789abcdef0123456789abcdef01234567" / "nc2016"
    files.mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(files.parent.name)
    for split in ("train", "dev", "test"):
        for language in ("en", "de"):
            text = f"<d>\n{split} {language} one .\ntwo .\n<d>\nthree .\n"
            (files / f"concatenated_en2de_{split}_{language}.txt").write_text(text)
    arguments = DataArguments(paper_corpus="news", source_column="en", target_column="de")
    corpus, validation = load_corpora(arguments)
    assert [document["de"] for document in corpus.documents] == [["train de one .", "two ."], ["three ."]]
    assert validation.documents[0]["en"] == ["dev en one .", "two ."]
    paper_corpora(["news"])
    assert str(files / "concatenated_en2de_test_de.txt") in capsys.readouterr().out


def test_documents_of_a_dataset(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "data").mkdir()
    for split, size in (("train", 2), ("validation", 1)):
        line = json.dumps({"source": ["a", "b"], "target": ["c", "d"]}) + "\n"
        (tmp_path / "data" / f"{split}.jsonl").write_text(line * size)
    corpora = load_corpora(DataArguments(dataset_name=str(tmp_path / "data")))
    assert [len(corpus.documents) for corpus in corpora] == [2, 1]
    assert corpora[1].documents[0]["target"] == ["c", "d"]
