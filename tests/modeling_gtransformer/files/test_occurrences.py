"""Words are found as whole words, as the examples of `Occurrences` show."""

import pytest

from modeling_gtransformer.files import occurrences
from modeling_gtransformer.files.occurrences import Occurrences


@pytest.mark.parametrize(
    "words, text, places",
    [
        ("a", "A and a", [6]),  # the same case counts first
        ("foo()", "foo() xfoo() foo", [0]),
        ("-", "wohl-bekannt", [4]),
        ("猫", "黒猫が", [1]),
        ("İ", "İİ İ", [3]),
        ("", "a", []),
        ("b a", "a b a", [2]),
    ],
)
def test_places_of_words(words, text, places):
    assert Occurrences(text).of(words) == places


def test_searches_are_bounded(monkeypatch):
    monkeypatch.setattr(occurrences, "MAX_CHARACTERS", 0)
    text = Occurrences("a b c d e f g h i j k")
    assert [text.of(letter) for letter in text.text.split()][8:] == [[16], [18], []] and text.of("a") == [0]
