"""Options of every command that translates, and the translator that they make."""

import argparse

import pytest

from modeling_gtransformer.cli.translator_options import (
    add_translator_options,
    check_translator_options,
    translator_of,
)
from modeling_gtransformer.translator import SMALL_MODEL
from modeling_gtransformer.usage_error import UsageError


def parse(*arguments):
    parser = argparse.ArgumentParser()
    add_translator_options(parser)
    args = parser.parse_args(["--model", "name", *arguments])
    check_translator_options(parser, args)
    return args


def test_what_is_not_given_is_left_to_the_model():
    translator = translator_of(parse(), confidence=True)
    assert translator.model == "name" and translator.confidence and translator.options == {}


def test_all_options_reach_the_translator(tmp_path):
    (tmp_path / "terms.tsv").write_text("cat\tKatze\n")
    given = {"segment_tokens": 9, "segment_sentences": 2, "max_tokens": 99, "carried_sentences": 1, "num_beams": 3}
    words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    words += ["--src_lang", "en", "--tgt_lang", "de", "--precision", "int8", "--splitter", "line"]
    words += ["--parallel_sentences", "--glossary", str(tmp_path / "terms.tsv")]
    translator = translator_of(parse(*words))
    assert (translator.src_lang, translator.tgt_lang, translator.precision) == ("en", "de", "int8")
    glossary = translator.options.pop("glossary")
    assert translator.options == {**given, "splitter": "line", "parallel_sentences": True}
    assert glossary.between("en", "de") == {"cat": "Katze"}
    assert translator_of(parse("--no-parallel_sentences")).options == {"parallel_sentences": False}


def test_without_a_model_it_is_said_which_one_translates(capsys):
    parser = argparse.ArgumentParser()
    add_translator_options(parser)
    assert translator_of(parser.parse_args([])).model == str(SMALL_MODEL)
    assert "using the small English-German dialogue model" in capsys.readouterr().err


def test_what_is_wrong_is_said_before_a_model_is_loaded(tmp_path, capsys):
    with pytest.raises(SystemExit) as exit:
        parse("--num_beams", "0")
    assert exit.value.code == 2 and "--num_beams must be between 1 and 100" in capsys.readouterr().err
    with pytest.raises(SystemExit) as exit:
        parse("--model", "")
    assert exit.value.code == 2 and "--model is empty" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"The glossary .*none.tsv cannot be used: "):
        translator_of(parse("--glossary", str(tmp_path / "none.tsv")))
