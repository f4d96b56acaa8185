"""Whatever the text is: sentences and separators in turn are the text, and nothing but sentences changes."""

import re
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from modeling_gtransformer.plain_text import BilingualText, is_translatable, sentencex_splitter, split_text


PIECES = [
    "Dr. Smith left. ",
    "Really?! ",
    "\n",
    "\r\n",
    "\r",
    "\u2028",
    "  ",
    "\t",
    "- ",
    "1. ",
    "http://a.b/c?d=e. ",
    "😀 ",
]
PIECES += [
    "\ufeff",
    "日本語です。これは文です。",
    "مرحبا. كيف؟ ",
    "שלום. ",
    "a@b.de",
    "{name} ",
    "***",
    "    x = f(y)",
    "e.g. ",
    "\u00a0",
    "plan B\u00a0. ",
]


@example("0@0.0¹。¹", "en")  # the second sentence stands in the address before it, too
@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join), st.sampled_from([None, "en", "ja", "ar"]))
def test_any_text_comes_back(text, language):
    split = split_text(text, sentencex_splitter(language) if language else None)
    assert split.rejoin(split.sentences) == text
    with pytest.raises(ValueError, match="sentences in place of"):
        split.rejoin([*split.sentences, "one more"])
    assert len(split.separators) == len(split.sentences) + 1
    for sentence in split.sentences:
        assert sentence == sentence.strip() and is_translatable(sentence)
        assert not re.search(r"[\r\n\u2028\u2029]", sentence)


def test_sentences_of_a_page():
    text = (
        "\ufeffA heading\r\n\r\nDr. Smith went home.  He slept.\r\n  - first item\r\n  2) Second item. It ends!\r\n"
        "-----\r\nhttps://example.org/a.b\r\n😀 😀\r\nSee www.a.org now.\r\n"
    )
    split = split_text(text, sentencex_splitter("en_XX"))
    assert split.sentences == [
        "A heading",
        "Dr. Smith went home.",
        "He slept.",
        "first item",
        "Second item.",
        "It ends!",
        "See www.a.org now.",
    ]
    assert split.separators[0] == "\ufeff" and split.separators[2] == "  " and split.separators[3] == "\r\n  - "
    assert split.separators[6] == "\r\n-----\r\nhttps://example.org/a.b\r\n😀 😀\r\n"


@pytest.mark.parametrize("item", ["> ", ">> - ", "1.1. ", "IV. ", "[1] ", "(a) ", "3) ", "Name:\t"])
def test_what_stands_before_a_line_stays(item):
    split = split_text(f"{item}I have a dog.", sentencex_splitter("en"))
    assert split.sentences[-1] == "I have a dog." and split.rejoin(split.sentences).startswith(item)


@pytest.mark.parametrize(
    "line",
    [
        "1.5 million people",
        "1.500 Menschen kamen.",
        "2.4 GB RAM",
        "10.0.0.1 is it",
        ">= Windows 10",
        "Ill. I am.",
        "[a] dog",
        "(and) dogs",
    ],
)
def test_what_only_looks_like_an_item(line):
    assert split_text(line).sentences == [line]


def test_numbers_alone_are_not_translated():
    assert split_text("2021\n12.50 €\n1 of 2\n٣").sentences == ["1 of 2"]


def test_a_long_line_is_split_in_stretches():
    line = "One two three. " * 1000 + "x" * 12_000 + ". End of it. And more."
    split = split_text(line, sentencex_splitter("en"))
    assert split.sentences[:1000] == ["One two three."] * 1000 and split.sentences[-2:] == ["End of it.", "And more."]
    assert split.rejoin(split.sentences) == line


@pytest.mark.parametrize(
    "language, sentences",
    [
        ("ja_XX", ["日本語です。", "これは文です。", "終わり"]),
        ("de", ["Es ist der 3. Mai.", "Ja."]),
        ("deu_Latn", ["Es ist der 3. Mai.", "Ja."]),  # sentencex splits after "deu" as in English
    ],
)
def test_sentences_of_other_languages(language, sentences):
    text = ("" if language == "ja_XX" else " ").join(sentences)
    assert split_text(text, sentencex_splitter(language)).sentences == sentences


def test_a_splitter_of_ones_own():
    split = split_text("a, b;  c\n\nd", lambda line: re.split("[,;]", line))
    assert split.sentences == ["a", "b", "c", "d"] and split.separators == ["", ", ", ";  ", "\n\n", ""]
    with pytest.raises(ValueError, match="does not contain it"):
        split_text("a b", lambda line: ["b a"])
    for left_out in (["a"], ["b"]):
        with pytest.raises(ValueError, match="The splitter omitted"):
            split_text("a b", lambda line, left_out=left_out: left_out)


@pytest.mark.parametrize("space", "\u00a0\u202f\u2009\u3000\u2028")
def test_white_space_of_several_bytes(space):
    """Behind a capital letter and before a full stop sentencex would break off."""
    text = f"We have a plan B{space}. It is new."
    split = split_text(text, sentencex_splitter("en"))
    assert "It is new." in split.sentences and split.rejoin(split.sentences) == text


def test_a_splitter_that_breaks_off(monkeypatch):
    class PanicException(BaseException):
        """As pyo3 makes it, which is no `Exception`."""

    def panic(code, text):
        raise PanicException("byte index 17 is not a char boundary")

    monkeypatch.setattr("sentencex.segment", panic)
    with pytest.raises(ValueError, match=r"sentencex cannot split 'A text.': byte index 17"):
        split_text("A text.", sentencex_splitter("en"))


def test_addresses_that_the_splitter_parts():
    assert split_text("ann@x.org?Bob@y.org", lambda line: line.partition("?")).sentences == []


def test_without_sentencex(monkeypatch):
    with pytest.raises(ValueError, match="sentencex needs a language code"):
        sentencex_splitter(None)
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(ImportError, match="pip install sentencex babel"):
        sentencex_splitter("en")


def test_translations_stand_behind_their_lines():
    text = split_text("\ufeffOne. Two.\r\n\r\n--\r\n- Three", sentencex_splitter("en"))
    result = BilingualText(text.sentences, text.separators).rejoin(["Eins.", "Zwei\nund.", "Drei"])
    assert result == "\ufeffOne. Two.\r\n→ Eins. Zwei und.\r\n\r\n--\r\n- Three\r\n→ - Drei"
    assert BilingualText([], ["-- \n"]).rejoin([]) == "-- \n"
