"""Errors of a command: a sentence and an exit status for each, and no traceback."""

import os
import re
import runpy
import signal
import subprocess
import sys

import pytest
from repository import ROOT

from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.report import Report
from modeling_gtransformer.runtime.atomic_file import atomic_file
from modeling_gtransformer.runtime.usage_error import UsageError, user_message


@pytest.mark.parametrize(
    "error, status, words",
    [
        (UsageError("no model"), 2, "no model"),
        (ValueError("bad corpus:\n  line 1"), 1, "bad corpus:\n  line 1"),
        (FileNotFoundError(2, "No such file or directory", "a.txt"), 1, "a.txt: No such file or directory"),
        (ImportError("needs lxml"), 1, "needs lxml"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_status_and_sentence(error, status, words, capsys):
    def fail():
        raise error

    assert run("program", fail) == status
    assert capsys.readouterr().err == f"program: {words}\n"


def test_messages_on_one_line():
    assert user_message(ValueError("a\n  b")) == "a b"
    assert user_message(KeyError("a")) == "KeyError: 'a'" and user_message(ValueError()) == "ValueError"
    assert user_message(OSError(28, "No space left on device")) == "No space left on device"


def test_status_of_what_ends_well():
    assert run("program", lambda: {}) == run("program", lambda: None) == 0 and run("program", lambda: 1) == 1


def test_a_process_that_is_to_terminate_cleans_up(tmp_path, monkeypatch):
    ended = []
    monkeypatch.setattr(signal, "raise_signal", ended.append)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def work():
        with atomic_file(tmp_path / "result"):
            os.kill(os.getpid(), signal.SIGTERM)

    assert run("program", work) == 143 and ended == [signal.SIGTERM]
    assert not list(tmp_path.iterdir()) and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        run("program", lambda: 1 // 0)


@pytest.mark.parametrize(
    "command",
    [
        "studies/compare_lost_sentences absent.jsonl out --plain ./absent --model ./absent",
        "studies/compare_target_ratios absent.jsonl --train_files absent.jsonl --tokenizer ./absent",
        "studies/context_examples ./absent absent.jsonl",
        "studies/kept_numbers ./absent absent.jsonl",
        "studies/convert_documents wmt25 en cs out.jsonl absent.jsonl",
        "studies/moses tokenize out --files absent.jsonl",
        "studies/show_attention ./absent absent.jsonl out.svg",
        "study absent.yaml",
    ],
    ids=lambda command: command.split()[0],
)
def test_what_is_missing_is_named_by_every_command(command, monkeypatch, tmp_path, capsys):
    name, *arguments = command.split()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    with pytest.raises(SystemExit) as exit:
        runpy.run_path(str(ROOT / "train" / f"{name}.py"), run_name="__main__")
    assert exit.value.code in (1, 2)
    assert re.search(f"^{name.rpartition('/')[2]}.py: .*absent", capsys.readouterr().err, re.MULTILINE)


def test_a_reader_who_has_seen_enough():
    """As `head` closes a pipe: no traceback, not even at exit."""
    code = (
        "import sys; from modeling_gtransformer.cli.errors import run\n"
        "def main():\n"
        "    while True: sys.stdout.buffer.write(b'a' * 9999); sys.stdout.buffer.flush()\n"
        "sys.exit(run('program', main))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait(60) == 1
    process.stderr.close()


def test_whoever_listens_for_the_end_of_the_process_goes_on_with_it(monkeypatch):
    """Such as a program that calls the command."""
    heard = []

    def listen(number, frame):
        heard.append(number)

    monkeypatch.setattr(signal, "raise_signal", lambda _: None)
    before = signal.signal(signal.SIGTERM, listen)
    try:
        assert run("program", lambda: os.kill(os.getpid(), signal.SIGTERM)) == 0
        assert heard == [signal.SIGTERM] and signal.getsignal(signal.SIGTERM) is listen
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("errors, status", [([UsageError("a")], 2), ([UsageError("a"), ValueError("b")], 1), ([], 0)])
def test_a_run_in_which_nothing_could_start_is_refused(errors, status):
    report = Report()
    report.files = len(errors) or 1
    for number, error in enumerate(errors):
        report.fail(str(number), error)
    assert report.summarize(fail_on_warning=False) == status
