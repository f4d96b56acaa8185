"""Options of an upload that need each other."""

import argparse

import pytest

from modeling_gtransformer.cli.hub_upload import parse_with_upload


@pytest.mark.parametrize(
    "options, message",
    [(["--push"], "--push needs --repository"), (["--repository", "a/b", "--private"], "--private needs --push")],
)
def test_options_that_need_another_one(options, message, capsys):
    with pytest.raises(SystemExit):
        parse_with_upload(argparse.ArgumentParser(), options, "dataset")
    assert message in capsys.readouterr().err
