"""A study runs what is missing, reports what fails, and its table is what the scores are."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from json_lines import read_json_lines
from repository import ROOT

from modeling_gtransformer import GTransformerProcessor
from modeling_gtransformer.cli.main import main
from modeling_gtransformer.evaluation.metrics import compare_systems, score_documents
from modeling_gtransformer.evaluation.provenance import commit_of
from modeling_gtransformer.evaluation.translations import SentenceCounts, Translations, segment_sizes
from modeling_gtransformer.training.experiment import train_recipe
from modeling_gtransformer.training.recipe import read_recipe
from modeling_gtransformer.training.study_results import describe_training, score_test, table
from train import study


STUDIES = sorted((ROOT / "train" / "studies").glob("*.yaml"))
DOCUMENTS = [["the cat sat on the mat .", "it was warm there today ."], ["a dog came in from the cold ."]]


@pytest.fixture
def make_study(experiment, tmp_path, monkeypatch):
    """A function that writes a study on tiny models, with changes; its commands run in this process."""
    calls = []

    def call(commands, run, command):
        is_training = study.TRAIN in command
        calls.append((run.name, "train" if is_training else "translate"))
        try:
            if is_training:
                train_recipe(command[-1:])
            elif main(command[3:]):
                raise ValueError("translate failed")
        except ValueError as error:
            raise RuntimeError(str(error)) from error

    monkeypatch.setattr(study.Commands, "call", call)
    recipe = experiment("study", max_steps=2, eval_steps=1)
    documents = yaml.safe_load(Path(recipe).read_text())["validation_files"]

    def make(jobs=1, **changes):
        values = {
            "arguments": {"attention_entropy": True},
            "seeds": [1],
            "test": {"valid": {"files": documents}},
            "generation": {"num_beams": 1},
            "systems": {"base": {"recipe": recipe}},
            **changes,
        }
        path = tmp_path / "study.yaml"
        path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
        return study.StudyOptions(str(path), tmp_path / "out", jobs)

    make.calls, make.output, make.documents, make.recipe = calls, tmp_path / "out", documents, recipe
    make.translated = lambda run: read_json_lines(make.output / run / "valid.jsonl")
    return make


def test_scores_means_and_significance(make_study, capsys):
    following = {"recipe": make_study.recipe, "start": "base", "arguments": {"learning_rate": 0.1}}
    systems = {"base": {"recipe": make_study.recipe}, "next": following}
    options = make_study(systems=systems, baseline="base", seeds=[1, 2])
    results = study.run_study(options)
    assert [row["system"] for row in results["rows"]] == ["base", "next"]
    references = [record["target"] for record in read_json_lines(make_study.documents[0])]
    outputs = {
        (system, seed): [row["translation"] for row in make_study.translated(f"{system}/seed{seed}")]
        for system in systems
        for seed in (1, 2)
    }
    scores = results["rows"][1]["scores"]["valid"]["d-BLEU/document"]
    expected = [score_documents(outputs["next", seed], references)["d-BLEU/document"]["score"] for seed in (1, 2)]
    assert scores["seeds"] == expected and scores["mean"] == pytest.approx(sum(expected) / 2)
    assert "p_value" in scores and "p_value" not in results["rows"][0]["scores"]["valid"]["s-BLEU"]
    # What others start from is trained first with all seeds.
    trained = [name for name, script in make_study.calls if script == "train"]
    assert trained == ["base, seed 1", "base, seed 2", "next, seed 1", "next, seed 2"]
    recipe = yaml.safe_load((make_study.output / "next" / "seed2" / "recipe.yaml").read_text())
    assert recipe["model_name_or_path"] == str(make_study.output / "base" / "seed2")
    assert (recipe["learning_rate"], recipe["seed"]) == (0.1, 2)

    for training in results["rows"][1]["trainings"]:
        assert training["commits"] == [commit_of(ROOT)] and 0 <= training["minutes"] < 60
    curves = results["rows"][0]["curves"][1]
    assert [step for step, _ in curves["eval_loss"]] == [1, 2] and "eval_entropy_cross_group" in curves
    for name in ("loss.svg", "entropy.svg"):
        assert "</svg>" in (make_study.output / name).read_text()
    assert json.loads((make_study.output / "results.json").read_text())["rows"][0]["seeds"] == [1, 2]
    assert (make_study.output / "results.md").read_text() in capsys.readouterr().out
    # The same command runs what is missing, and nothing else.
    (make_study.output / "next/seed1/valid.jsonl").unlink()
    make_study.calls.clear()
    assert study.run_study(options) == results
    assert [name for name, script in make_study.calls if script == "translate"] == ["next, seed 1"]


def test_what_has_changed_is_translated_again(make_study):
    def translates(**changes):
        make_study.calls.clear()
        study.run_study(make_study(**changes))
        return ("base, seed 1", "translate") in make_study.calls

    assert translates() and not translates()
    assert translates(generation={"num_beams": 1, "parallel_sentences": True})
    # Also where one of something else was cut off, which gtransformer translate would refuse to continue.
    begun = make_study.output / "base/seed1/valid.jsonl.partial"
    begun.mkdir()
    (begun / "begun.json").write_text("{}")
    assert translates() and not begun.exists()
    # Another test set in the place of the first, and older than what was made of it.
    other = Path(make_study.documents[0]).with_name("other.jsonl")
    lines = Path(make_study.documents[0]).read_text().splitlines(keepends=True)
    other.write_text("".join(lines[::-1]))
    os.utime(other, (1, 1))
    assert translates(test={"valid": {"files": [str(other)]}})
    os.utime(make_study.output / "base/seed1/model.safetensors")  # a model that was trained anew
    assert translates(test={"valid": {"files": [str(other)]}})


def test_a_detokenized_test_set_of_the_paper(make_study, monkeypatch, tmp_path):
    files = [tmp_path / "test.en", tmp_path / "test.de"]
    files[0].write_text("<d>\nba bu .\n<d>\nka .\nre .\n")
    files[1].write_text("<d>\nx .\n<d>\ny .\nz .\n")
    monkeypatch.setattr(study, "paper_corpus", lambda name, split, columns: [str(file) for file in files])
    monkeypatch.setattr(study, "detokenizer", lambda language: lambda sentence: f"{language} all of them the same")
    results = study.run_study(make_study(test={"valid": {"paper_corpus": "news"}}, detokenize="de"))
    assert [row["source"] for row in make_study.translated("base/seed1")] == [["ba bu ."], ["ka .", "re ."]]
    assert results["rows"][0]["scores"]["valid"]["s-BLEU"]["mean"] == pytest.approx(100)


def test_a_failure_is_reported_with_what_starts_from_it(make_study, experiment, capsys):
    broken = {"recipe": experiment("broken"), "arguments": {"max_tokens": 1}}
    systems = {"good": {"recipe": experiment("good", max_steps=1)}, "broken": broken}
    systems["child"] = {"recipe": broken["recipe"], "start": "broken"}
    good, failed, child = study.run_study(make_study(systems=systems, baseline="good"))["rows"]
    assert good["scores"] and not good["failures"] and not failed["scores"]
    assert "exceed max_tokens=1" in failed["failures"][1]
    assert child["failures"][1] == "it starts from broken, which failed"
    assert "| broken | 0 | – | – | – | failed | failed | failed |" in capsys.readouterr().out


def test_commands_run_in_processes(make_study, experiment, monkeypatch):
    monkeypatch.undo()
    systems = {"broken": {"recipe": experiment("ends", max_tokens=1)}}
    results = study.run_study(make_study(systems=systems, jobs=2))
    [failure] = results["rows"][0]["failures"].values()
    assert "train.py ended with 2: gtransformer train: " in failure and "study.log" in failure


def test_a_study_that_is_stopped_ends_its_processes(tmp_path, monkeypatch):
    commands, run = study.Commands([], 1), study.TrainingRun("only", 1, None, tmp_path)
    (tmp_path / "study.log").write_text("ValueError: long ago\n")  # no reason of what fails now
    popen, (reader, writer) = subprocess.Popen, os.pipe()  # it reads from here, and so goes on until it is ended
    monkeypatch.setattr(study.subprocess, "Popen", lambda *args, **kwargs: popen(*args, stdin=reader, **kwargs))
    monkeypatch.setattr("builtins.print", lambda *args, **kwargs: commands.stop())  # as soon as it runs
    with pytest.raises(RuntimeError, match=r"^translate was killed by SIGTERM \(see"):
        commands.call(run, [sys.executable, "-c", "input()"])
    assert not commands.running
    with pytest.raises(RuntimeError, match="stopped"):
        commands.call(run, [])
    os.close(writer)


def test_the_jobs_share_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("RAYON_NUM_THREADS", "5")  # whoever sets it knows why
    environment = study.Commands([], 2).environment
    assert (environment["OMP_NUM_THREADS"], environment["RAYON_NUM_THREADS"]) == ("2", "5")


def test_one_argument_varies(make_study, experiment):
    systems = {"base": {"recipe": experiment("varied", max_steps=1, eval_steps=1)}}
    changes = {"vary": {"segment_tokens": [16, 64]}, "until": {"eval_loss": 1000}}
    results = study.run_study(make_study(systems=systems, **changes))
    assert [(row["value"], row["updates"]) for row in results["rows"]] == [(16, [1]), (64, [1])]
    short, long = (
        sum(len(row["segments"]) for row in make_study.translated(f"base.{value}/seed1")) for value in (16, 64)
    )
    assert short > long
    for name in ("bleu.svg", "updates.svg"):
        assert "</svg>" in (make_study.output / name).read_text()
    assert table(results).splitlines()[0] == (
        "| system | segment_tokens | seeds | updates until eval_loss ≤ 1000 | validation loss "
        "| cross-attention, bits | valid s-BLEU | valid d-BLEU/segment | valid d-BLEU/document |"
    )
    rows = study.run_study(make_study(systems=systems, until={"eval_loss": 0}))["rows"]
    assert rows[0]["updates"] == [None] and "| never |" in (make_study.output / "results.md").read_text()


def test_a_system_that_decodes_freely_has_only_d_bleu(make_study, experiment, capsys):
    """It is the baseline of d-BLEU, and another system that of s-BLEU."""
    recipe = experiment("free", max_steps=1)
    systems = {
        "sentences": {"recipe": recipe, "arguments": {"segment_sentences": 1}},
        "free": {"recipe": recipe, "generation": {"free": True}},
        "ours": {"recipe": recipe},
    }
    results = study.run_study(make_study(systems=systems, baseline={"s-BLEU": "sentences", "d-BLEU": "free"}))
    sentences, free, ours = (row["scores"]["valid"] for row in results["rows"])
    assert set(free) == {"d-BLEU/segment", "d-BLEU/document", "sentences"}
    assert free["sentences"][0]["source"] == ours["sentences"][0]["written"]
    compared = {name for name in ours if "p_value" in ours[name]}
    assert compared == {"s-BLEU", "d-BLEU/document"}  # segments of its own cannot be compared
    assert "p_value" not in sentences["s-BLEU"] and "p_value" in sentences["d-BLEU/document"]
    printed = capsys.readouterr().out
    assert re.search(r"^\| free \| 1 \|.*\| – \|", printed, re.MULTILINE)
    assert "free, valid, decoded freely, in its own segments: " in printed
    assert "d-BLEU/segment is not tested against free, whose segments differ" in printed
    # A model of single sentences translates single sentences, and its segments for d-BLEU are those of training.
    assert {size for row in make_study.translated("sentences/seed1") for size in row["segments"]} == {1}
    records = read_json_lines(make_study.documents[0])
    sources, references = ([record[name] for record in records] for name in ("source", "target"))
    processor = GTransformerProcessor.from_pretrained(make_study.output / "ours" / "seed1")
    segments = segment_sizes(processor, sources, references, 64)
    translations = [row["translation"] for row in make_study.translated("sentences/seed1")]
    expected = score_documents(translations, references, segments)["d-BLEU/segment"]["score"]
    assert any(len(sizes) > 1 for sizes in segments) and sentences["d-BLEU/segment"]["mean"] == expected


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"system": {}}, "unknown keys system"),
        ({"test": {}}, "needs systems and test"),
        ({"systems": {"a": {"recipe": "demo", "start": "b"}}}, "starts from b, which must come before it"),
        ({"systems": {"a": {"arguments": {}}}}, "system a needs a recipe"),
        ({"baseline": {"d-BLEU": "nobody"}}, "the baseline nobody is not a system"),
        (
            {"generation": {"num_beam": 5}},
            r"generation: gtransformer translate has no num_beam \(did you mean num_beams\?\)",
        ),
        ({"arguments": {"lr": 1}}, "unknown keys lr"),
        ({"arguments": {"eval_strategy": "no"}, "until": {"eval_loss": 1}}, "base, seed 1 never validates"),
    ],
)
def test_mistakes_show_before_anything_runs(make_study, changes, message):
    with pytest.raises(ValueError, match=message):
        study.run_study(make_study(**changes))
    assert not make_study.calls


def test_arguments_of_a_system_come_before_those_of_all(make_study, tmp_path):
    (tmp_path / "shared.yaml").write_text("max_tokens: 2\nsave_steps: 2")
    shared = {"extends": ["shared.yaml"], "save_steps": 3, "config": {"dropout": 0.1, "decoder_layers": 2}}
    own = {"config": {"dropout": 0.3}}
    systems = {"base": {"recipe": make_study.recipe, "arguments": own}}
    options = make_study(systems=systems, arguments=shared)
    study.plan_runs(study.read_study(options.study), tmp_path, make_study.output)
    values = read_recipe(make_study.output / "base/seed1/recipe.yaml")
    assert (values["max_tokens"], values["save_steps"], values["warmup_steps"]) == (2, 3, 4)
    assert values["config"].items() >= {"dropout": 0.3, "decoder_layers": 2}.items()


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_shipped_study_can_be_planned(path, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "paper_corpus", lambda *_: ["test.en", "test.de"])
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    assert study.plan_runs(study.read_study(str(path)), path.parent, tmp_path)


def translated(*wrong):
    """Translations in which these words are wrong."""
    documents = [[" ".join("x" if w in wrong else w for w in text.split()) for text in d] for d in DOCUMENTS]
    return Translations(documents, [[1, 1], [1]], True, SentenceCounts(3, 3, 0))


def test_seeds_are_paired_and_documents_are_the_unit():
    """Whatever the order of the seeds, and where one of them is missing: over what both systems have."""
    ours = {1: translated(), 2: translated("cat"), 3: translated("dog", "it")}
    theirs = {3: translated("mat"), 2: translated("cat", "dog")}
    scores = score_test(ours, dict.fromkeys(("s-BLEU", "d-BLEU"), theirs), DOCUMENTS)
    both = [
        [[text for part in parts for text in part] for parts in zip(system[2], system[3], strict=True)]
        for system in ({seed: each[seed].documents for seed in (2, 3)} for each in (ours, theirs))
    ]
    cuts = {"s-BLEU": [[4], [2]], "d-BLEU/segment": [[1] * 4, [1] * 2], "d-BLEU/document": [[2, 2], [1, 1]]}
    for name, segments in cuts.items():
        compared = compare_systems(*both, [document * 2 for document in DOCUMENTS], segments)
        expected = compared["s-BLEU" if name == "s-BLEU" else "d-BLEU/segment"]
        assert {key: scores[name][key] for key in expected} == expected
        singles = [score_documents(t.documents, DOCUMENTS, t.segments)[name]["score"] for t in ours.values()]
        deviation = (sum((single - sum(singles) / 3) ** 2 for single in singles) / 2) ** 0.5  # of a sample
        assert scores[name]["seeds"] == singles and scores[name]["spread"] == pytest.approx(deviation)
    alone = score_test({1: ours[1]}, {"s-BLEU": theirs}, DOCUMENTS)["s-BLEU"]
    assert alone["spread"] is None and "p_value" not in alone


def test_the_table_marks_what_is_significant():
    score = {"mean": 12.344, "spread": 0.5, "seeds": [12, 13], "signature": "tok:13a|version:2"}
    curves = [
        {"eval_loss": [[1, 3.0], [2, loss], [3, 2.9]], "eval_entropy_cross_group": [[1, 4], [3, bits]]}
        for loss, bits in ((2.5, 1.0), (2.7, 2.0))
    ]
    row = {"system": "new", "value": None, "seeds": [1, 2], "failures": {}, "curves": curves}
    row["trainings"] = [{"minutes": minutes, "commits": ["abc"]} for minutes in (2.0, 5.0)]
    scores = {"s-BLEU": {**score, "p_value": 0.002}, "d-BLEU/segment": {**score, "p_value": 0.02}}
    row["scores"] = {"test": {**scores, "d-BLEU/document": score, "sentences": []}}
    baseline = {"s-BLEU": "old", "d-BLEU": "documents"}
    lines = table({"rows": [row], "baseline": baseline, "varied": None, "until": None}).splitlines()
    assert lines[2] == r"| new | 2 | 2, 2 | 2.60 | 1.50 group | 12.34 ± 0.50\* | 12.34 ± 0.50 | 12.34 ± 0.50 |"
    test = "(approximate randomization over the documents of these trainings, not over seeds)"
    assert rf"\* differs from old in s-BLEU at p < 0.01 {test}" in lines
    assert rf"no system differs from documents in d-BLEU at p < 0.01 {test}" in lines
    assert "d-BLEU/document, d-BLEU/segment, s-BLEU: tok:13a|version:2" in lines
    assert "trainings took 3.5 minutes (median), since they were started or last continued" in lines
    assert "trained at abc" in lines


def test_a_training_takes_the_time_since_it_was_last_continued(tmp_path):
    records = [{"train_runtime": 600.0, "step": 5}, {"loss": 1.0, "step": 6}, {"train_runtime": 90.0, "step": 9}]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": records}))
    starts = [{"commit": "a"}, {"commit": "b"}, {"commit": "a"}]
    (tmp_path / "starts.json").write_text(json.dumps(starts))
    assert describe_training(tmp_path) == {"minutes": 1.5, "commits": ["a", "b"]}
