"""Options that several scripts have."""

import argparse

import pytest

from modeling_gtransformer.cli.script_options import add_column_options, at_least


def test_columns():
    parser = argparse.ArgumentParser()
    add_column_options(parser, "source", "reference")
    assert vars(parser.parse_args(["--source_column", "en"])) == {"source_column": "en", "reference_column": "target"}


def test_numbers_below_the_least(capsys):
    parser = argparse.ArgumentParser()
    parser.add_argument("--beams", type=at_least(1))
    assert parser.parse_args(["--beams", "1"]).beams == 1
    for text, message in (("0", "--beams: must be at least 1, not 0"), ("one", "--beams: invalid number value")):
        with pytest.raises(SystemExit):
            parser.parse_args(["--beams", text])
        assert message in capsys.readouterr().err
