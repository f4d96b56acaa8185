"""What results say of their origin."""

import subprocess
from pathlib import Path

from modeling_gtransformer import __version__
from modeling_gtransformer.evaluation.formality import FormalityOptions
from modeling_gtransformer.evaluation.provenance import ROOT, commit_of, keep_start, provenance, read_starts
from modeling_gtransformer.evaluation.report import command_line
from modeling_gtransformer.evaluation.scores import ScoreOptions


def test_command_runs_anywhere():
    """A result that is published names no folder of the machine it comes from."""
    assert (
        provenance([f"{ROOT}/benchmarks/loss.py", "--repeats", "1"])["command"]
        == "python benchmarks/loss.py --repeats 1"
    )
    assert provenance(["/elsewhere/script.py", "a b"])["command"] == "python /elsewhere/script.py 'a b'"


def test_the_command_line_of_options():
    options = FormalityOptions(["a b.jsonl", "c.jsonl"], "r.jsonl", baseline=["d.jsonl"], json=Path("f.json"))
    assert command_line("evaluate formality", options) == (
        "gtransformer evaluate formality 'a b.jsonl' c.jsonl --json f.json --reference r.jsonl --baseline d.jsonl"
    )
    thirds = command_line("evaluate scores", ScoreOptions("t.jsonl", "r.jsonl", thirds=True))
    assert thirds == "gtransformer evaluate scores t.jsonl --reference r.jsonl --thirds"


def test_starts_are_kept_in_order(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert read_starts(first) == []
    for checkpoint in (None, None):  # begun anew in the place of the first
        keep_start(first, checkpoint)
    assert [start["commit"] for start in read_starts(first)] == [commit_of(ROOT)]
    assert set(read_starts(first)[0]) == {"commit", "hardware", "versions"}
    for folder, number in ((first, 2), (second, 3)):
        keep_start(folder, str(first / "checkpoint-5"))
        assert len(read_starts(folder)) == number


def test_a_checkout_that_git_does_not_read(tmp_path):
    """As one that belongs to somebody else."""
    (tmp_path / ".git").mkdir()
    assert commit_of(tmp_path) == f"version {__version__}"


def test_results_that_a_commit_has_written_do_not_make_it_dirty(tmp_path):
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    code, result = tmp_path / "code.py", tmp_path / "benchmarks" / "results" / "a.json"
    for file in (code, result):
        file.write_text("1")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init"], ["add", "."], ["commit", "--message", "a"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    commit = commit_of(tmp_path)
    result.write_text("2")
    assert len(commit) == 7 and commit_of(tmp_path) == commit
    (tmp_path / "notes.txt").write_text("2")
    assert commit_of(tmp_path) == commit
    (tmp_path / "study.yaml").write_text("2")
    assert commit_of(tmp_path) == f"{commit}-dirty"
    (tmp_path / "study.yaml").unlink()
    code.write_text("2")
    assert commit_of(tmp_path) == f"{commit}-dirty"
