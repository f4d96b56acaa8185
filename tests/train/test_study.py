"""A study runs what is missing, reports what fails, and its table is what the scores are."""

import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from json_lines import read_json_lines

from modeling_gtransformer import GTransformerProcessor
from modeling_gtransformer.cli.main import main
from modeling_gtransformer.evaluation.metrics import compare_systems, score_documents
from modeling_gtransformer.evaluation.provenance import ROOT, commit_of
from modeling_gtransformer.evaluation.translations import segment_sizes
from modeling_gtransformer.training.experiment import train_recipe
from modeling_gtransformer.training.study_plan import plan_runs, read_study
from modeling_gtransformer.training.study_results import table
from train import study


ONE = {"only": {"recipe": "randinit"}}


def translate(arguments):
    if main(["translate", *arguments]):
        raise ValueError("translate failed")


@pytest.fixture
def make_study(experiment, tmp_path, monkeypatch):
    """A function that writes a study on tiny models, with changes; its scripts run in this process."""
    calls = []
    scripts = {"train.py": train_recipe, "translate": translate}

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
        return study.StudyOptions(str(path), tmp_path / "out")

    make.calls, make.output, make.documents = calls, tmp_path / "out", documents
    return make


def test_scores_means_and_significance(make_study, capsys):
    results = study.run_study(make_study())
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

    # What others start from is trained first with all seeds, so that jobs side by side do not wait.
    trained = [name for name, script in make_study.calls if script == "train.py"]
    assert trained == ["base, seed 1", "base, seed 2", "next, seed 1", "next, seed 2"]

    # The second system starts from the first of the same seed, with its own learning rate.
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


def test_run_again_it_does_nothing_but_what_is_missing(make_study):
    results = study.run_study(make_study())
    done = sorted(make_study.output.glob("*/seed*/valid.jsonl"))
    before = [path.stat().st_mtime_ns for path in done]
    done[0].unlink()
    make_study.calls.clear()
    assert study.run_study(make_study()) == results
    assert [name for name, script in make_study.calls if script == "translate"] == ["base, seed 1"]
    assert [path.stat().st_mtime_ns for path in done[1:]] == before[1:] and done[0].exists()


def test_what_has_changed_is_translated_again(make_study):
    def translated_again(**changes):
        make_study.calls.clear()
        study.run_study(make_study(seeds=[1], **changes))
        return [name for name, script in make_study.calls if script == "translate"]

    assert len(translated_again()) == 2 and not translated_again()
    assert len(translated_again(generation={"num_beams": 1, "parallel_sentences": True})) == 2
    # Also where one of something else was cut off, which gtransformer translate would refuse to continue.
    begun = make_study.output / "base/seed1/valid.jsonl.partial"
    begun.mkdir()
    (begun / "begun.json").write_text("{}")
    assert len(translated_again()) == 2 and not begun.exists()
    # Another test set in the place of the first, and older than what was made of it.
    other = Path(make_study.documents[0]).with_name("other.jsonl")
    lines = Path(make_study.documents[0]).read_text().splitlines(keepends=True)
    other.write_text("".join(lines[::-1]))
    os.utime(other, (1, 1))
    assert len(translated_again(test={"valid": {"files": [str(other)]}})) == 2
    # A model that was trained anew.
    os.utime(make_study.output / "base/seed1/model.safetensors")
    assert translated_again(test={"valid": {"files": [str(other)]}}) == ["base, seed 1"]


def test_detokenized_before_it_is_scored(make_study, monkeypatch):
    monkeypatch.setattr(study, "detokenizer", lambda language: lambda sentence: f"{language} all of them the same")
    results = study.run_study(make_study(seeds=[1], detokenize="de"))
    assert results["rows"][0]["scores"]["valid"]["s-BLEU"]["mean"] == pytest.approx(100)


def test_a_test_set_of_the_paper(make_study, monkeypatch, tmp_path):
    files = [tmp_path / "test.en", tmp_path / "test.de"]
    files[0].write_text("<d>\nba bu .\n<d>\nka .\nre .\n")
    files[1].write_text("<d>\nx .\n<d>\ny .\nz .\n")
    monkeypatch.setattr(study, "paper_corpus", lambda name, split, columns: [str(file) for file in files])
    study.run_study(make_study(seeds=[1], test={"news": {"paper_corpus": "news"}}))
    rows = read_json_lines(make_study.output / "base/seed1/news.jsonl")
    assert [row["source"] for row in rows] == [["ba bu ."], ["ka .", "re ."]]


def test_a_run_waits_for_that_from_which_it_starts(make_study):
    plan = read_study(make_study(seeds=[1]).study) | {"test": {}}
    base, following = plan_runs(plan, Path(), make_study.output, str)
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
    thread = threading.Thread(target=study.execute, args=(following, plan, {}, Recorder()))
    thread.start()
    assert waits.wait(60)
    assert not called
    study.execute(base, plan, {}, Recorder())
    thread.join()
    assert called == ["base", "next"]


@pytest.fixture
def one_run(make_study, monkeypatch):
    monkeypatch.undo()  # scripts run in processes of their own
    plan = read_study(make_study(systems=ONE, baseline=None, seeds=[1]).study)
    return plan_runs(plan, Path(), make_study.output, str)[0]


def test_a_study_that_is_stopped_ends_its_processes(one_run, monkeypatch):
    processes = study.Processes([sys.executable, "-c", "input()"], 1)
    popen, write_end = subprocess.Popen, []

    def started(*args, **kwargs):
        reader, writer = os.pipe()  # it reads from here, and so goes on until it is ended
        write_end.append(writer)
        return popen(*args, stdin=reader, **kwargs)

    monkeypatch.setattr(study.subprocess, "Popen", started)
    monkeypatch.setattr("builtins.print", lambda *args, **kwargs: processes.stop())  # as soon as it runs
    with pytest.raises(RuntimeError, match=r"train.py was killed by SIGTERM"):
        processes.call(one_run, "train.py", [])
    assert not processes.running
    with pytest.raises(RuntimeError, match="stopped"):
        processes.call(one_run, "train.py", [])
    assert len(write_end) == 1
    os.close(write_end[0])


def test_mistakes_in_the_generation_show_before_anything_runs(make_study):
    with pytest.raises(ValueError, match=r"generation has an unknown option: .*'beams'"):
        study.run_study(make_study(generation={"beams": 5}))
    assert not make_study.calls


def test_a_failure_is_reported_with_what_starts_from_it(make_study, experiment, capsys):
    broken = {"recipe": experiment("broken"), "arguments": {"max_tokens": 1}}
    systems = {"good": {"recipe": experiment("good", max_steps=1)}, "broken": broken}
    systems["child"] = {"recipe": broken["recipe"], "start": "broken"}
    results = study.run_study(make_study(systems=systems, baseline="good", seeds=[1]))
    good, failed, child = results["rows"]
    assert good["scores"] and not good["failures"] and not failed["scores"]
    assert "do not fit into a batch of max_tokens=1" in failed["failures"][1]
    assert child["failures"][1] == "broken failed, from which it starts"
    assert "| broken | 0 | – | – | – | failed | failed | failed |" in capsys.readouterr().out


def test_a_script_that_ends_with_an_error(make_study, experiment, monkeypatch):
    monkeypatch.undo()  # the scripts run as they do for a user, in a process of their own
    systems = {"broken": {"recipe": experiment("ends", max_tokens=1)}}
    results = study.run_study(replace(make_study(systems=systems, baseline=None, seeds=[1]), jobs=2))
    [failure] = results["rows"][0]["failures"].values()
    assert "train.py ended with 2: gtransformer train: " in failure and "study.log" in failure


def test_the_reason_of_a_failure_is_its_own(one_run):
    """Not the last line of what ran before it."""
    one_run.folder.mkdir(parents=True, exist_ok=True)
    (one_run.folder / "study.log").write_text("ValueError: long ago\n")
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(RuntimeError, match=r"^train.py was killed by SIGKILL \(see"):
        study.Processes([sys.executable, "-c", kill], 1).call(one_run, "train.py", [])


def test_one_argument_varies(make_study, experiment):
    systems = {"base": {"recipe": experiment("varied", max_steps=1)}}
    results = study.run_study(make_study(systems=systems, seeds=[1], vary={"segment_tokens": [16, 64]}))
    assert [row["value"] for row in results["rows"]] == [16, 64]
    short, long = (
        [row["segments"] for row in read_json_lines(make_study.output / f"base.{value}/seed1/valid.jsonl")]
        for value in (16, 64)
    )
    assert sum(map(len, short)) > sum(map(len, long))
    assert "</svg>" in (make_study.output / "bleu.svg").read_text()
    assert table(results).splitlines()[0] == (
        "| system | segment_tokens | seeds | updates until the lowest validation loss | validation loss "
        "| cross-attention, bits | valid s-BLEU | valid d-BLEU/segment | valid d-BLEU/document |"
    )


def test_a_system_that_decodes_freely_has_only_d_bleu(make_study, experiment, capsys):
    """It is the baseline of d-BLEU, and another system that of s-BLEU."""
    recipe = experiment("free", max_steps=1)
    systems = {
        "sentences": {"recipe": recipe, "arguments": {"segment_sentences": 1}},
        "free": {"recipe": recipe, "generation": {"align_sentences": False}},
        "ours": {"recipe": recipe},
    }
    baseline = {"s-BLEU": "sentences", "d-BLEU": "free"}
    results = study.run_study(make_study(systems=systems, baseline=baseline, seeds=[1]))
    sentences, free, ours = (row["scores"]["valid"] for row in results["rows"])
    assert set(free) == {"d-BLEU/segment", "d-BLEU/document", "sentences"}
    assert free["sentences"][0]["source"] == ours["sentences"][0]["written"]
    compared = {name for name in ours if "p_value" in ours[name]}
    assert compared == {"s-BLEU", "d-BLEU/document"}  # segments of its own cannot be compared
    assert "p_value" not in sentences["s-BLEU"] and "p_value" in sentences["d-BLEU/document"]
    assert all("p_value" not in score for score in free.values() if "mean" in score)
    printed = capsys.readouterr().out
    assert re.search(r"^\| free \| 1 \|.*\| – \|", printed, re.MULTILINE)
    assert "free, valid, decoded freely, in its own segments: " in printed


def test_d_bleu_per_segment_is_that_of_the_paper(make_study, experiment):
    """The segments are those of training, whatever a system translates at once."""
    recipe = experiment("cut", max_steps=1)
    systems = {"ours": {"recipe": recipe}, "single": {"recipe": recipe, "arguments": {"segment_sentences": 1}}}
    results = study.run_study(make_study(systems=systems, baseline="ours", seeds=[1]))
    records = read_json_lines(make_study.documents[0])
    sources, references = ([record[name] for record in records] for name in ("source", "target"))
    processor = GTransformerProcessor.from_pretrained(make_study.output / "ours" / "seed1")
    segments = segment_sizes(processor, sources, references, 64)
    assert any(len(sizes) > 1 for sizes in segments)
    for row in results["rows"]:
        rows = read_json_lines(make_study.output / row["system"] / "seed1" / "valid.jsonl")
        expected = score_documents([each["translation"] for each in rows], references, segments)
        assert row["scores"]["valid"]["d-BLEU/segment"]["mean"] == expected["d-BLEU/segment"]["score"]


def test_a_model_of_single_sentences_translates_single_sentences(make_study, experiment):
    systems = {"base": {"recipe": experiment("single", max_steps=1, segment_sentences=1)}}
    study.run_study(make_study(systems=systems, seeds=[1]))
    rows = read_json_lines(make_study.output / "base/seed1/valid.jsonl")
    assert {size for row in rows for size in row["segments"]} == {1}


def test_updates_until_a_loss_is_reached(make_study, experiment):
    systems = {"only": {"recipe": experiment("until", max_steps=3, eval_steps=1)}}
    rows = []
    for loss in (1000, 0):
        study.run_study(make_study(systems=systems, baseline=None, seeds=[1, 2], until={"eval_loss": loss}))
        rows.append((make_study.output / "results.md").read_text().splitlines()[:3])
    assert rows[0][0].split(" | ")[2] == "updates until eval_loss ≤ 1000"
    assert [lines[2].split(" | ")[2] for lines in rows] == ["1, 1", "never, never"]


def test_a_loss_that_is_never_measured_is_refused_before_anything_runs(make_study, experiment):
    systems = {"only": {"recipe": experiment("blind", eval_strategy="no", load_best_model_at_end=False)}}
    with pytest.raises(ValueError, match="only, seed 1 never validates: set eval_strategy"):
        study.run_study(make_study(systems=systems, baseline=None, until={"eval_loss": 1}))
    assert not make_study.calls


def test_a_recipe_with_a_mistake_is_named_before_anything_runs(make_study, experiment):
    systems = {"good": {"recipe": experiment("fine")}, "bad": {"recipe": experiment("bad"), "arguments": {"lr": 1}}}
    with pytest.raises(ValueError, match="unknown keys lr"):
        study.run_study(make_study(systems=systems, baseline=None))
    assert not make_study.calls


def test_the_jobs_share_the_cores(make_study, experiment, monkeypatch):
    made, systems = [], {"only": {"recipe": experiment("shared", max_steps=2, eval_steps=1)}}

    class Processes(study.Processes):
        def __init__(self, launch, threads):
            super().__init__(launch, threads)
            made.append(self.environment)

    monkeypatch.setattr(study, "Processes", Processes)
    monkeypatch.setattr(study.os, "cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("RAYON_NUM_THREADS", "5")  # whoever sets it knows why
    for jobs in (3, 16):
        study.run_study(replace(make_study(systems=systems, baseline=None, seeds=[1]), jobs=jobs))
    assert [(each["OMP_NUM_THREADS"], each["RAYON_NUM_THREADS"]) for each in made] == [("2", "5"), ("1", "5")]
