"""A template gives a file back byte for byte, but for the runs that have another text."""

import pytest

from modeling_gtransformer.files.template import TextFile


def texts(file):
    return [[run.text for run in block] for block in file.blocks]


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
