"""A record as a line."""

import json

import pytest

from modeling_gtransformer.runtime.json_line import json_line


@pytest.mark.parametrize("text", ["ä", "a\u2028b\nc", "ä, half \ud800 of one"])
def test_a_record_is_one_line_that_gives_it_back(text):
    """Other letters stay as they are."""
    line = json_line({"text": text})
    assert line.endswith(b"\n") and line.count(b"\n") == 1 and json.loads(line) == {"text": text}
    assert ("ä".encode() in line) == ("ä" in text)
