"""A template gives a file back byte for byte, but for the runs that have another text."""

import html

import pytest

from modeling_gtransformer.files.runs import Run
from modeling_gtransformer.files.template import TextFile


def texts(file):
    return [[run.text for run in block] for block in file.blocks]


def test_what_has_not_changed_is_not_even_escaped():
    """`&nbsp;` and `<` come back as they were written; the text of the other run is made safe."""
    file = TextFile(escape=html.escape)
    file.add("<p>")
    file.add_text("a&nbsp;< b", html.unescape)
    file.add("<b>")
    file.add_text("c")
    file.add("</b></p>")
    assert texts(file) == [["a\u00a0< b", "c"]]
    assert file.fill(texts(file)) == "<p>a&nbsp;< b<b>c</b></p>"
    assert file.fill([["a\u00a0< b", "x < y"]]) == "<p>a&nbsp;< b<b>x &lt; y</b></p>"


def test_a_line_end_is_a_space_to_the_model_and_stays_in_the_file():
    file = TextFile()
    file.add_text("one \r\n  two\nthree")
    assert texts(file) == [["one ", "two ", "three"]]
    assert file.fill([["eins ", "zwei ", "drei"]]) == "eins \r\n  zwei\ndrei"
    assert file.fill([["eins zwei ", "", "drei"]]) == "eins zwei \r\n  \ndrei"


@pytest.mark.parametrize("hyphen", ["\u2010", "\u00ad"])
def test_a_hyphen_that_nobody_types_parts_a_word(hyphen):
    """It comes again where a word goes on in the next line, and not where it ends."""
    file = TextFile()
    file.add_line(f"the cur{hyphen}", "\n", str)
    file.add_line("rent one", "", str)
    assert texts(file) == [["the cur", "rent one"]]
    assert file.fill(texts(file)) == f"the cur{hyphen}\nrent one"
    assert file.fill([["der derzei", "tige"]]) == f"der derzei{hyphen}\ntige"
    assert file.fill([["der ", "derzeitige"]]) == "der\nderzeitige"
    assert file.fill([["", "derzeitige"]]) == "\nderzeitige"


def test_a_hyphen_of_the_text_stays_in_it():
    file = TextFile()
    file.add_line("well-", "\n", str)
    assert texts(file) == [["well- "]]


def test_markup_between_the_lines_of_a_paragraph():
    file = TextFile()
    file.add("> ")
    file.add_text("one\n")
    file.add("> ")
    file.add_text("two")
    assert texts(file) == [["one ", "two"]] and file.fill([["eins ", "zwei"]]) == "> eins\n> zwei"


def test_kept_runs_are_read_by_the_model_and_filled_with_markup():
    file = TextFile(escape=html.escape)
    file.add_text("Use ")
    file.add_protected("<code>a&lt;b</code>", "a<b")
    assert file.blocks == [[Run("Use "), Run("a<b", "<code>a&lt;b</code>")]]
    assert file.fill([["Nutze ", "<code>a&lt;b</code>"]]) == "Nutze <code>a&lt;b</code>"


def test_blocks_end_where_they_are_told_to():
    file = TextFile()
    for text in ("a", "b"):
        file.end_block()  # before the first run there is nothing to end
        file.add_text(text)
        file.add("|")
        file.add_text(text.upper())
    assert texts(file) == [["a", "A"], ["b", "B"]]
    assert file.fill([["1", "2"], ["3", "4"]]) == "1|23|4"
