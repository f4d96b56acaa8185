"""Words are found as whole words."""

import pytest

from modeling_gtransformer.files.occurrences import Occurrences


@pytest.mark.parametrize(
    "words, text, places",
    [
        ("in", "in Berlin, (in)", [0, 12]),
        ("api", "The API, apis", [4]),
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
