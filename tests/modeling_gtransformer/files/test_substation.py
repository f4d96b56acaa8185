"""SubStation Alpha: the text of the dialogue, and everything around it as it was."""

import pytest
from split_file import translated

from modeling_gtransformer.files.formats import SplitFile


HEAD = """[Script Info]\r
; Dialogue: not this\r
Title: nor this\r
\r
[V4+ Styles]\r
Format: Name, Fontname, Text\r
Style: Default,Arial,x\r
\r
[Events]\r
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\r
"""
EVENT = "Dialogue: 0,0:00:{},0:00:{},{},,0,0,0,,{}\r\n"


def test_substation():
    content = (
        HEAD
        + EVENT.format("01.00", "02.50", "Default", r"{\i1}My good old{\i0} friend,\Nand I went home")
        + "Comment: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,Not this.\r\n"
        + EVENT.format("02.60", "04.00", "Default", r"late. {a note}Why? ")
        + EVENT.format("04.00", "05.00", "Sign", r"{\p1}m 0 0 l 100{\i1} 0 b 5{\p0}shop{\pos(1,2)\p4}m 1 1")
        + EVENT.format("04.50", "05.00", "Default", r"- Yes\h!")
        + "\r\n[Fonts]\r\nDialogue: nor this,\r\n"
    )
    sentences, result = translated(content, "ass")
    assert sentences == ["My good old friend, and I went home late.", "Why?", "shop", "Yes\u00a0!"]
    expected = content
    for words in ("My good old", " friend", "and I went home", "late.", "Why?", "shop", "Yes"):
        expected = expected.replace(words, words.upper(), 1)
    assert result == expected


def test_when_a_sentence_ends():
    """At a pause, with another style, and where both are seen at once; not because a comma is in the text."""
    for times, style, joined in (
        (("02.00", "03.00"), "A", True),
        (("01.90", "03.00"), "A", True),
        (("05.00", "06.00"), "A", False),
        (("02.00", "03.00"), "B", False),
        (("01.00", "02.00"), "A", False),
    ):
        content = HEAD + EVENT.format("01.00", "02.00", "A", "to be,") + EVENT.format(*times, style, "or not")
        assert translated(content, "ass")[0] == (["to be, or not"] if joined else ["to be,", "or not"])


def test_the_older_form():
    content = "[events]\nFormat: Marked, Start, End, Style, Text\nDialogue: Marked=0,0:00:01.00,0:00:02.00,D,Hi, you"
    assert translated(content, "ass") == (["Hi, you"], content.replace("Hi, you", "HI, YOU"))


@pytest.mark.parametrize(
    "words, expected",
    [
        (r"C:\New \h {x}", "C:\\\u2060New \\\u2060h \\{x\\}"),
        ("no\u00a0break\\", "no\\hbreak\\\u2060"),
    ],
)
def test_a_translation_means_itself(words, expected):
    content = HEAD + EVENT.format("01.00", "02.00", "A", "one")
    file = SplitFile(content, "ass", None)
    result = file.rejoin([words])
    assert result == content.replace("one\r\n", f"{expected}\r\n")
    assert SplitFile(result, "ass", None).sentences == [words.replace("\\", "\\\u2060").replace("\u2060 ", " ")]
