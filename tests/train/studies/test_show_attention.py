"""The picture of what a model attends to."""

import re
from dataclasses import replace

import pytest
from json_lines import write_json_lines

from train.studies.show_attention import AttentionOptions, show_attention


@pytest.mark.parametrize("stack", ["encoder", "decoder", "cross"])
def test_picture(trained_model, tmp_path, capsys, stack):
    documents = write_json_lines(tmp_path / "documents.jsonl", [{"source": ["ba bu $x$ .", "ka ."]}])
    picture = tmp_path / "new" / "attention.svg"
    options = AttentionOptions(str(trained_model), documents, picture, stack=stack)
    show_attention(options)
    # Titles are comments of the file, beside their outlines.
    assert re.findall(r"<!-- (\w+, layer \d), global attention -->", picture.read_text()) == [f"{stack}, layer 2"]
    assert f"{stack}, layer 2: the gate leaves 0." in capsys.readouterr().out
    with pytest.raises(ValueError, match="--number 2 exceeds the 1 documents"):
        show_attention(replace(options, number=2))
