"""Character references of any size are read."""

from modeling_gtransformer.files.character_references import escape_for, unescape


def test_a_number_of_any_size():
    assert unescape("&#228;&#xe4;&auml;") == "äää"
    assert unescape(f"a &#{'9' * 5000}; b") == "a \ufffd b"


def test_control_characters_leave_words_apart():
    assert escape_for("utf-8")("one\x0ctwo\x1cthr\x08ee") == "one two three"
