"""Subtitles: sentences through several cues, and files as they are found."""

import pytest
from split_file import translated


SUBRIP = """1\r
00:00:01,000 --> 00:00:02,500\r
<i>My good old friend</i>\r
and I went home\r
\r
2\r
00:00:02,600 --> 00:00:04,000\r
late. Why?\r
\r
3\r
00:00:09,000 --> 00:00:10,000\r
- Yes.\r
- {\\an8}No
"""
WEBVTT = """WEBVTT - title

NOTE a comment

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.500 align:start
<v Anna>Hello.

01:00:02.500 --> 01:00:04.000
Bye,
NOTE taker.
NOTE to a --> b
"""


def test_subtitles():
    sentences, result = translated(SUBRIP, "subtitles", lambda text: text.upper().replace("WENT", "HAVE SLOWLY GONE"))
    assert sentences == ["My good old friend and I went home late.", "Why?", "Yes.", "No"]
    # The sentence goes on in the next cue, and on as many lines as it did.
    assert result == SUBRIP.replace("My good old friend", "MY GOOD OLD FRIEND").replace(
        "and I went home", "AND I HAVE SLOWLY GONE"
    ).replace("late. Why?", "HOME LATE. WHY?").replace("Yes.", "YES.").replace("No", "NO")
    sentences, result = translated(WEBVTT, "subtitles")
    assert sentences == ["Hello.", "Bye, NOTE taker."]
    assert result == WEBVTT.replace("Hello", "HELLO").replace("Bye", "BYE").replace("taker", "TAKER")


def test_a_pause_ends_a_sentence():
    cues = "1\n00:00:01,000 --> 00:00:02,000\nto be\n\n2\n00:00:{},000 --> 00:00:09,000\nor not\n"
    assert translated(cues.format("04"), "subtitles")[0] == ["to be or not"]
    assert translated(cues.format("05"), "subtitles")[0] == ["to be", "or not"]


@pytest.mark.parametrize(
    "content, translations, expected",
    [
        # SubRip as it is found: no blank line, or one too many, no spaces around the arrow.
        ("1\n00:00:01,000 --> 00:00:02,000\nHello.\n2\n00:00:03,000-->00:00:04,000\nBye\n\nnow.\n",
         ["Hallo.", "Nun tschüs."],
         "1\n00:00:01,000 --> 00:00:02,000\nHallo.\n2\n00:00:03,000-->00:00:04,000\nNun\n\ntschüs.\n"),
        ("WEBVTT\nKind: x\n\nNOTE a --> b\nmore\n\nid\n00:01.000 --> 00:02.000\nTom &amp; I <i>&lt;3</i>.\n",
         ["a < b --> c <3"],
         "WEBVTT\nKind: x\n\nNOTE a --> b\nmore\n\nid\n00:01.000 --> 00:02.000\na &lt; b --&gt; c <i>&lt;3</i>\n"),
        # Python refuses to read a number of so many digits.
        (f"WEBVTT\n\n00:01.000 --> 00:02.000\n&#{5000 * '9'}; a.\n",
         ["b."],
         "WEBVTT\n\n00:01.000 --> 00:02.000\nb.\n"),
    ],
)  # fmt: skip
def test_tricky_translations_of_subtitles(content, translations, expected):
    assert translated(content, "subtitles", translations)[1] == expected


def test_a_sentence_ends_before_the_tags_that_close_its_format():
    cue = "{}\n00:00:0{},000 --> 00:00:0{},900\n<i>{}</i>\n\n"
    content = "".join(cue.format(n, n, n, text) for n, text in enumerate(["My cat sleeps.", "Dog", "and bird."], 1))
    sentences, _ = translated(content, "subtitles")
    assert sentences == ["My cat sleeps.", "Dog and bird."]
