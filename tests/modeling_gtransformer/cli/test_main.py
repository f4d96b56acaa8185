"""The command `gtransformer`: its subcommands are imported when they are called; one exit status for wrong options."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Literal, get_args

import pytest
from repository import ROOT

from modeling_gtransformer import __version__
from modeling_gtransformer.cli import main as command
from modeling_gtransformer.cli.main import main
from modeling_gtransformer.cli.translate_options import Format
from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.files import FILE_FORMATS, read_glossary
from modeling_gtransformer.translation_options import option


@dataclass(frozen=True)
class Numbers:
    files: list[str] = option(None, "Files.", argument=True)
    beams: int = option(4, "Number of beams.", 1, 9)
    share: float | None = option(None, "A share.", 0)
    kind: Literal["a", "b"] = option("a", "A kind.")
    strict: bool = option(False, "A switch.")
    parallel: bool | None = option(None, "A switch that may be left open.")
    names: list[str] | None = option(None, "Several values.")
    internal: int = option(3, "For Python only.", on_command_line=False)

    def __post_init__(self):
        if self.strict and self.kind == "b":
            raise ValueError("The kind b is never strict.")


calls = []


def count(options):
    """Count something."""
    calls.append(options)
    return 0


@pytest.fixture
def run(monkeypatch):
    """Runs a command with the options of `Numbers`, and gives the exit status and what it was called with."""
    monkeypatch.setattr(command, "import_module", lambda _: sys.modules[__name__])
    monkeypatch.setitem(command.SUBCOMMANDS, "evaluate numbers", command.Subcommand("x:Numbers:count", "Count."))
    calls.clear()
    return lambda *words: (main(["evaluate", "numbers", *words]), *calls)


def test_options_of_every_type(run):
    words = "a b --beams 2 --share 0.5 --kind b --no-parallel --names x --names y"
    assert run(*words.split()) == (0, Numbers(["a", "b"], 2, 0.5, "b", False, False, ["x", "y"]))
    calls.clear()
    assert run("a", "--strict", "--parallel") == (0, Numbers(["a"], strict=True, parallel=True))


@pytest.mark.parametrize(
    "words, message",
    [
        ("--beams 0", "gtransformer evaluate numbers: --beams must be between 1 and 9, not 0.\n"),
        ("--share -1", "gtransformer evaluate numbers: --share must be at least 0, not -1.0.\n"),
        ("--kind b --strict", "gtransformer evaluate numbers: The kind b is never strict.\n"),
        ("--kind c", "'c' is not one of"),
        ("--beams x", "valid integer"),
        ("--internal 4", "No such option: --internal"),
    ],
)
def test_wrong_options_have_status_2(run, words, message, capsys):
    assert run(*words.split()) == (2,) and message in capsys.readouterr().err


def test_a_script_of_several_functions(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train/script.py", "count", "a", "--beams", "3"])
    calls.clear()
    assert run_script((Numbers, count), (Numbers, print)) == 0 and calls == [Numbers(["a"], 3)]
    monkeypatch.setattr(sys, "argv", ["train/script.py", "a", "--beams", "0"])
    assert run_script((Numbers, count)) == 2
    assert capsys.readouterr().err == "script.py: --beams must be between 1 and 9, not 0.\n"


def test_help_names_subcommands_and_options(run, capsys):
    assert main(["--help"]) == 0
    assert "evaluate" in capsys.readouterr().out
    assert main(["evaluate", "--help"]) == 0
    assert re.search("numbers +Count.", capsys.readouterr().out)
    assert run("--help") == (0,)
    text = capsys.readouterr().out
    assert "Count something." in text and "--beams" in text and "Number of beams." in text
    assert main([]) == main(["evaluate"]) == main(["none"]) == 2


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["translate", "--help"]])
def test_what_needs_no_model_loads_no_torch(words):
    code = "import sys; from modeling_gtransformer.cli.main import main; main(); print('torch' in sys.modules)"
    code = f"import sys; sys.argv = ['gtransformer', *{words}]; {code}"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    *text, loaded = process.stdout.splitlines()
    assert loaded == "False" and text, process.stderr
    if words == ["--version"]:
        assert text == [f"gtransformer {__version__}"]


def test_a_script_of_any_name_finds_the_model_registered(tmp_path):
    script = tmp_path / "gtransformer.py"
    script.write_text("import modeling_gtransformer, transformers\ntransformers.AutoConfig.for_model('gtransformer')")
    subprocess.run([sys.executable, script], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)


def test_the_formats_are_those_of_files():
    assert {*get_args(Format)} == {"text", *FILE_FORMATS, "jsonl", "documents"}


def test_all_options_reach_the_translator(tmp_path, capsys):
    from modeling_gtransformer.cli.model_options import ModelOptions
    from modeling_gtransformer.runtime.translator import SMALL_MODEL
    from modeling_gtransformer.runtime.usage_error import UsageError

    terms = tmp_path / "terms.tsv"
    terms.write_text("cat\tKatze\n")
    given = {"segment_tokens": 9, "segment_sentences": 2, "max_tokens": 99, "num_beams": 3, "splitter": "line"}
    given |= {"parallel_sentences": False, "keep_placeholders": False}
    options = ModelOptions(model="m", src_lang="en", tgt_lang="de", precision="int8", glossary=terms, **given)
    translator = options.translator(progress=True)
    settings = (translator.model, translator.src_lang, translator.tgt_lang, translator.precision)
    assert settings == ("m", "en", "de", "int8")
    assert translator.options == {**given, "glossary": read_glossary(str(terms)), "progress": True}
    assert ModelOptions(model="m").translator().options == {}
    assert ModelOptions().translator().model == str(SMALL_MODEL)
    assert "using the bundled English-German model" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"The glossary .*none.tsv cannot be used: "):
        ModelOptions(glossary=tmp_path / "none.tsv").translator()
