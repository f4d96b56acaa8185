"""Scripts: options of dataclasses, subcommands of several functions, and errors in a sentence."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.translation_options import check_bounds, option


@dataclass
class Options:
    name: str = option("x", "A name.", argument=True)
    number: int = option(1, "A number.", 0)

    def __post_init__(self):
        check_bounds(self)


def show(options):
    if options.name == "absent":
        Path("/absent").read_text()
    print(options.name * options.number)


def other(options):
    print(f"other {options.name}")


@pytest.mark.parametrize(
    ("arguments", "status", "printed"),
    [
        (["a", "--number", "3"], 0, "aaa"),
        (["--help"], 0, "A number."),
        (["a", "--numbr", "3"], 2, "No such option"),
        (["a", "--number", "-3"], 2, "script.py: --number must be at least 0"),
        (["absent"], 1, "script.py: /absent: No such file or directory"),
    ],
)
def test_one_function(arguments, status, printed, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train/script.py", *arguments])
    assert run_script((Options, show)) == status
    assert printed in "".join(capsys.readouterr())


def test_several_functions(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["script.py", "other", "b"])
    assert run_script((Options, show), (Options, other)) == 0
    assert capsys.readouterr().out == "other b\n"
