"""A study runs what is missing, reports what fails, and its table is what the scores are."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from json_lines import read_json_lines

from modeling_gtransformer.training.metrics import compare_systems, score_documents
from train import study, train, translate
from train.study import read_study, table


ONE = {"only": {"recipe": "recipe.yaml"}}
STUDIES = sorted((Path(study.__file__).parent / "studies").glob("*.yaml"))


@pytest.fixture
def make_study(experiment, tmp_path, monkeypatch):
    """A function that writes a study on tiny models, with changes; its scripts run in this process."""
    calls = []
    scripts = {"train.py": train.main, "translate.py": translate.main}

    def call(processes, run, script, arguments):
        calls.append((run.name, script))
        try:
            scripts[script](arguments)
        except ValueError as error:
            raise RuntimeError(str(error)) from error

    monkeypatch.setattr(study.Processes, "call", call)
    recipe = experiment("study", max_steps=2, eval_steps=1)
    documents = yaml.safe_load(Path(recipe).read_text())["validation_files"]

    def make(**changes):
        values = {
            "arguments": {"attention_entropy": True},
            "seeds": [1, 2],
            "test": {"valid": {"files": documents}},
            "generation": {"num_beams": 1},
            "baseline": "base",
            "systems": {
                "base": {"recipe": recipe},
                "next": {"recipe": recipe, "start": "base", "arguments": {"learning_rate": 0.1}},
            },
            **changes,
        }
        path = tmp_path / "study.yaml"
        path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
        return [str(path), "--output", str(tmp_path / "out")]

    make.calls, make.output, make.documents = calls, tmp_path / "out", documents
    return make


def test_scores_means_and_significance(make_study, capsys):
    results = study.main(make_study())
    assert [row["system"] for row in results["rows"]] == ["base", "next"]
    references = [record["target"] for record in read_json_lines(make_study.documents[0])]

    def translated(system, seed):
        rows = read_json_lines(make_study.output / system / f"seed{seed}" / "valid.jsonl")
        return [row["translation"] for row in rows]

    scores = results["rows"][1]["scores"]["valid"]["d-BLEU/document"]
    expected = [score_documents(translated("next", seed), references)["d-BLEU/document"]["score"] for seed in (1, 2)]
    assert scores["seeds"] == expected and scores["mean"] == pytest.approx(sum(expected) / 2)
    # Both seeds of a document are drawn together.
    both = [
        [a + b for a, b in zip(*(translated(system, seed) for seed in (1, 2)), strict=True)]
        for system in ("next", "base")
    ]
    segments = [[len(reference)] * 2 for reference in references]
    compared = compare_systems(*both, [r + r for r in references], segments)
    assert scores["p_value"] == compared["d-BLEU/segment"]["p_value"]
    assert "p_value" not in results["rows"][0]["scores"]["valid"]["s-BLEU"]

    # The second system starts from the first of the same seed, with its own learning rate.
    recipe = yaml.safe_load((make_study.output / "next" / "seed2" / "recipe.yaml").read_text())
    assert recipe["model_name_or_path"] == str(make_study.output / "base" / "seed2")
    assert (recipe["learning_rate"], recipe["seed"]) == (0.1, 2)

    curves = results["rows"][0]["curves"][1]
    assert [step for step, _ in curves["eval_loss"]] == [1, 2] and "eval_entropy_cross_group" in curves
    for name in ("loss.svg", "entropy.svg"):
        assert "</svg>" in (make_study.output / name).read_text()
    assert json.loads((make_study.output / "results.json").read_text())["rows"][0]["seeds"] == [1, 2]
    assert (make_study.output / "results.md").read_text() in capsys.readouterr().out


def test_run_again_it_does_nothing_but_what_is_missing(make_study):
    results = study.main(make_study())
    done = sorted(make_study.output.glob("*/seed*/valid.jsonl"))
    before = [path.stat().st_mtime_ns for path in done]
    done[0].unlink()
    make_study.calls.clear()
    assert study.main(make_study()) == results
    assert [name for name, script in make_study.calls if script == "translate.py"] == ["base, seed 1"]
    assert [path.stat().st_mtime_ns for path in done[1:]] == before[1:] and done[0].exists()


def test_what_has_changed_is_translated_again(make_study):
    def translated_again(**changes):
        make_study.calls.clear()
        study.main(make_study(seeds=[1], **changes))
        return [name for name, script in make_study.calls if script == "translate.py"]

    assert len(translated_again()) == 2 and not translated_again()
    assert len(translated_again(generation={"num_beams": 1, "parallel_sentences": True})) == 2
    # Another test set in the place of the first, and older than what was made of it.
    other = Path(make_study.documents[0]).with_name("other.jsonl")
    lines = Path(make_study.documents[0]).read_text().splitlines(keepends=True)
    other.write_text("".join(lines[::-1]))
    os.utime(other, (1, 1))
    assert len(translated_again(test={"valid": {"files": [str(other)]}})) == 2
    # A model that was trained anew.
    os.utime(make_study.output / "base/seed1/model.safetensors")
    assert translated_again(test={"valid": {"files": [str(other)]}}) == ["base, seed 1"]


def test_a_line_separator_ends_no_record(tmp_path):
    run = study.TrainingRun("base", 1, None, tmp_path, str)
    run.translations("test").write_text('{"translation": ["a\u2028b", "c\x85"]}\n', encoding="utf-8")
    assert run.hypotheses("test") == [["a\u2028b", "c\x85"]]


def test_detokenized_before_it_is_scored(make_study, monkeypatch):
    monkeypatch.setattr(study, "detokenizer", lambda language: lambda sentence: f"{language} all of them the same")
    results = study.main(make_study(seeds=[1], detokenize="de"))
    assert results["rows"][0]["scores"]["valid"]["s-BLEU"]["mean"] == pytest.approx(100)


def test_a_test_set_of_the_paper(make_study, monkeypatch, tmp_path):
    files = [tmp_path / "test.en", tmp_path / "test.de"]
    files[0].write_text("<d>\nba bu .\n<d>\nka .\nre .\n")
    files[1].write_text("<d>\nx .\n<d>\ny .\nz .\n")
    monkeypatch.setattr(study, "paper_corpus", lambda name, split: [str(file) for file in files])
    study.main(make_study(seeds=[1], test={"news": {"paper_corpus": "news"}}))
    rows = read_json_lines(make_study.output / "base/seed1/news.jsonl")
    assert [row["source"] for row in rows] == [["ba bu ."], ["ka .", "re ."]]


def test_a_run_waits_for_that_from_which_it_starts(make_study):
    plan = read_study(make_study(seeds=[1])[0]) | {"test": {}}
    base, following = study.plan_runs(plan, Path(), make_study.output, str)
    called, waits = [], threading.Event()

    class Watched(threading.Event):
        def wait(self, timeout=None):
            waits.set()
            return super().wait(timeout)

    class Recorder:
        def call(self, run, script, arguments):
            called.append(run.system)
            waits.set()  # also if it did not wait

    base.done = Watched()
    thread = threading.Thread(target=study.execute, args=(following, plan, Recorder()))
    thread.start()
    waits.wait()
    assert not called
    study.execute(base, plan, Recorder())
    thread.join()
    assert called == ["base", "next"]


@pytest.fixture
def one_run(make_study, monkeypatch):
    monkeypatch.undo()  # scripts run in processes of their own
    plan = read_study(make_study(systems=ONE, baseline=None, seeds=[1])[0])
    return study.plan_runs(plan, Path(), make_study.output, str)[0]


def test_a_study_that_is_stopped_ends_its_processes(one_run, monkeypatch):
    processes = study.Processes([sys.executable, "-c", "input()"], 1)
    popen, write_end = subprocess.Popen, []

    def started(*args, **kwargs):
        reader, writer = os.pipe()  # it reads from here, and so goes on until it is ended
        write_end.append(writer)
        return popen(*args, stdin=reader, **kwargs)

    monkeypatch.setattr(study.subprocess, "Popen", started)
    monkeypatch.setattr("builtins.print", lambda *args, **kwargs: processes.stop())  # as soon as it runs
    with pytest.raises(RuntimeError, match=r"train.py ended with -15"):
        processes.call(one_run, "train.py", [])
    assert not processes.running
    with pytest.raises(RuntimeError, match="stopped"):
        processes.call(one_run, "train.py", [])
    assert len(write_end) == 1
    os.close(write_end[0])


def test_a_process_that_starts_while_the_study_is_stopped_is_ended_too(one_run, monkeypatch):
    """A stop must not fall between starting a process and knowing of it."""
    processes, terminated = study.Processes(["train"], 1), []
    stopper = threading.Thread(target=processes.stop)

    class Starting:
        def __init__(self, *args, **kwargs):
            stopper.start()
            if processes.starting.acquire(blocking=False):  # it must be held by the one that starts
                processes.starting.release()
                raise AssertionError("a stop could go by here")

        def wait(self):
            stopper.join()
            return -15 if terminated else 0

        def terminate(self):
            terminated.append(self)

    monkeypatch.setattr(study.subprocess, "Popen", Starting)
    with pytest.raises(RuntimeError, match="ended with -15"):
        processes.call(one_run, "train.py", [])
    assert len(terminated) == 1


REFERENCES = [["the cat sat on the mat .", "it was warm there today ."], ["a dog came in from the cold ."]]


@pytest.fixture
def translated(tmp_path):
    """Makes a run whose test set has these translations, of which the given words are wrong."""

    def make(system, seed, *wrong):
        folder = tmp_path / f"{system}{seed}"
        folder.mkdir()
        run = study.TrainingRun(system, seed, None, folder, str)
        documents = [
            [" ".join("x" if word in wrong else word for word in text.split()) for text in document]
            for document in REFERENCES
        ]
        lines = (json.dumps({"translation": document}) + "\n" for document in documents)
        run.translations("test").write_text("".join(lines), encoding="utf-8")
        return run

    return make


def test_seeds_are_paired_and_documents_are_the_unit(translated):
    """Whatever the order of the seeds, and where one of them is missing: over what both systems have."""
    ours = [translated("new", seed, *words) for seed, words in ((1, ()), (2, ("cat",)), (3, ("dog", "it")))]
    theirs = [translated("old", seed, *words) for seed, words in ((3, ("mat",)), (2, ("cat", "dog")))]
    scores = study.test_scores("test", ours, theirs, REFERENCES)
    pairs = [(ours[1], theirs[1]), (ours[2], theirs[0])]
    joined = [
        [both[0][document] + both[1][document] for document in (0, 1)]
        for both in ([run.hypotheses("test") for run in system] for system in zip(*pairs, strict=True))
    ]
    compared = compare_systems(*joined, [document * 2 for document in REFERENCES], [[2, 2], [1, 1]])
    for name, expected in (("s-BLEU", "s-BLEU"), ("d-BLEU/document", "d-BLEU/segment")):
        assert {key: scores[name][key] for key in compared[expected]} == compared[expected]
        singles = [score_documents(run.hypotheses("test"), REFERENCES)[name]["score"] for run in ours]
        assert scores[name]["seeds"] == singles
        average = sum(singles) / 3
        deviation = (sum((single - average) ** 2 for single in singles) / 2) ** 0.5  # of a sample
        assert (scores[name]["mean"], scores[name]["spread"]) == pytest.approx((average, deviation))
    alone = study.test_scores("test", ours[:1], theirs, REFERENCES)["s-BLEU"]
    assert alone["spread"] is None and "p_value" not in alone


def test_systems_share_the_configuration_of_the_study(make_study):
    """What a system says of its own comes before what is said of all."""
    systems = {
        "base": {**ONE["only"], "arguments": {"config": {"dropout": 0.3, "encoder_layers": 1}}},
        "plain": ONE["only"],
    }
    shared = {"max_tokens": 512, "config": {"dropout": 0.1, "decoder_layers": 3}}
    plan = read_study(make_study(systems=systems, arguments=shared, seeds=[1])[0])
    base, plain = (
        yaml.safe_load(run.recipe.read_text()) for run in study.plan_runs(plan, Path(), make_study.output, str)
    )
    assert base["config"] == {"dropout": 0.3, "encoder_layers": 1, "decoder_layers": 3}
    assert plain["config"] == shared["config"] and base["max_tokens"] == plain["max_tokens"] == 512


def test_mistakes_in_the_generation_show_before_anything_runs(make_study, capsys):
    with pytest.raises(SystemExit):
        study.main(make_study(generation={"beams": 5}))
    assert "unrecognized arguments: --beams 5" in capsys.readouterr().err and not make_study.calls


def test_a_failure_is_reported_with_what_starts_from_it(make_study, experiment, capsys):
    broken = {"recipe": experiment("broken"), "arguments": {"max_tokens": 1}}
    systems = {"good": {"recipe": experiment("good", max_steps=1)}, "broken": broken}
    systems["child"] = {"recipe": broken["recipe"], "start": "broken"}
    results = study.main(make_study(systems=systems, baseline="good", seeds=[1]))
    good, failed, child = results["rows"]
    assert good["scores"] and not good["failures"] and not failed["scores"]
    assert "do not fit into a batch of max_tokens=1" in failed["failures"][1]
    assert child["failures"][1] == "broken failed, from which it starts"
    assert "| broken | 0 | failed | failed |" in capsys.readouterr().out


def test_a_script_that_ends_with_an_error(make_study, experiment, monkeypatch):
    monkeypatch.undo()  # the scripts run as they do for a user, in a process of their own
    systems = {"broken": {"recipe": experiment("ends", max_tokens=1)}}
    results = study.main([*make_study(systems=systems, baseline=None, seeds=[1]), "--jobs", "2"])
    [failure] = results["rows"][0]["failures"].values()
    assert "train.py ended with 1: ValueError" in failure and "study.log" in failure


def test_one_argument_varies(make_study, experiment):
    systems = {"base": {"recipe": experiment("varied", max_steps=1)}}
    results = study.main(make_study(systems=systems, seeds=[1], vary={"segment_tokens": [16, 64]}))
    assert [row["value"] for row in results["rows"]] == [16, 64]
    short, long = (
        [row["segments"] for row in read_json_lines(make_study.output / f"base.{value}/seed1/valid.jsonl")]
        for value in (16, 64)
    )
    assert sum(map(len, short)) > sum(map(len, long))
    assert "</svg>" in (make_study.output / "bleu.svg").read_text()
    assert table(results).splitlines()[0] == "| system | segment_tokens | seeds | valid s-BLEU | valid d-BLEU |"


def test_a_model_of_single_sentences_translates_single_sentences(make_study, experiment):
    systems = {"base": {"recipe": experiment("single", max_steps=1, segment_sentences=1)}}
    study.main(make_study(systems=systems, seeds=[1]))
    rows = read_json_lines(make_study.output / "base/seed1/valid.jsonl")
    assert {size for row in rows for size in row["segments"]} == {1}


def test_the_table_marks_what_is_significant():
    score = {"mean": 12.345, "spread": 0.5, "seeds": [12, 13], "signature": "tok:13a|version:2"}
    row = {"system": "new", "value": None, "seeds": [1, 2], "failures": {}}
    row["scores"] = {"test": {"s-BLEU": {**score, "p_value": 0.002}, "d-BLEU/document": {**score, "p_value": 0.02}}}
    lines = table({"rows": [row], "baseline": "old", "varied": None, "until": None}).splitlines()
    assert lines[2] in (r"| new | 2 | 12.35 ± 0.50\* | 12.35 ± 0.50 |", r"| new | 2 | 12.34 ± 0.50\* | 12.34 ± 0.50 |")
    assert "differs from old at p < 0.01" in lines[-1] and "s-BLEU: tok:13a|version:2" in lines


def test_updates_until_a_loss_is_reached(make_study, experiment):
    systems = {"only": {"recipe": experiment("until", max_steps=3, eval_steps=1)}}
    rows = []
    for loss in (1000, 0):
        study.main(make_study(systems=systems, baseline=None, seeds=[1, 2], until={"eval_loss": loss}))
        rows.append((make_study.output / "results.md").read_text().splitlines()[:3])
    assert rows[0][0].split(" | ")[2] == "updates until eval_loss ≤ 1000"
    assert [lines[2].split(" | ")[2] for lines in rows] == ["1, 1", "never, never"]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"system": {}}, "unknown keys system"),
        ({"test": {}}, "needs systems and test"),
        ({"test": {"x": {"files": ["a.jsonl", "b.jsonl"]}}}, "one JSON-lines file or a pair of texts"),
        ({"test": {"x": {"file": "y"}}}, "test x needs either files or paper_corpus"),
        ({"systems": {"a": {"recipe": "r", "start": "b"}}}, "starts from b, which must come before it"),
        ({"systems": {"a": {"recipe": "r", "arg": 1}}}, "system a has unknown keys arg"),
        ({"baseline": "nobody"}, "the baseline nobody is no system"),
        ({"vary": {"a": [1], "b": [2]}}, "vary names one argument"),
        ({"until": {"eval_loss": 1, "eval_bleu": 2}}, "until names one validation loss"),
    ],
)
def test_mistakes_are_named(make_study, changes, message):
    with pytest.raises(ValueError, match=message):
        read_study(make_study(**changes)[0])


def test_a_recipe_with_a_mistake_is_named_before_anything_runs(make_study, experiment):
    systems = {"good": {"recipe": experiment("fine")}, "bad": {"recipe": experiment("bad"), "arguments": {"lr": 1}}}
    with pytest.raises(ValueError, match="unknown keys lr"):
        study.main(make_study(systems=systems, baseline=None))
    assert not make_study.calls


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_shipped_study_can_be_planned(path, tmp_path):
    plan = read_study(str(path))
    for test in plan["test"].values():
        test.setdefault("files", ["test.en", "test.de"])
    for run in study.plan_runs(plan, path.parent, tmp_path, str):
        study.parse_recipe([str(run.recipe), "--fp16", "false", "--use_cpu"])
        for name in plan["test"]:
            study.parse_translation(study.translation_arguments(run, name, plan))
