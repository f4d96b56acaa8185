"""Elements end where browsers end them, with and without end tags."""

import pytest

from modeling_gtransformer.files.formats import SplitFile
from modeling_gtransformer.files.html_elements import ends_of_elements
from modeling_gtransformer.files.html_tokens import html_tokens


@pytest.mark.parametrize(
    "page, element",
    [
        ("<p>one <b>two</b></p>three", "<p>one <b>two</b></p>"),
        ("<p>one <b>two</b><p>three</p>", "<p>one <b>two</b>"),
        ("<p>one <br>two<ul><li>three</ul>", "<p>one <br>two"),
        ("<p>one</font> two<p>three", "<p>one</font> two"),
        ("<p>one<div>two</div></p>", "<p>one"),
        ("<div><p>one</div>two", "<p>one"),
        ("<ul><li>one<ul><li>two</ul>three<li>four</ul>", "<li>one<ul><li>two</ul>three"),
        ("<ul><li>one<ul><li lang>two</ul>three</li><li>four</ul>", "<li lang>two"),
        ("<ul><li><p>one<li>two</ul><p>three", "<p>one"),
        ("<table><tr><td>one<td>two<tr><td>three</table>", "<td>one"),
        ("<table><tr><td>one<td>two<tr><td>three</table>", "<tr><td>one<td>two"),
        ("<table><tr><td>one<table><tr><td>two</table>three</table>", "<td>one<table><tr><td>two</table>three"),
        ("<table><caption>one<tr><td>two</table>", "<caption>one"),
        ("<dl><dt><span>one<dd>two</dl>", "<span>one"),
        ("<ruby>one<rt>two<rt lang>three</ruby>", "<rt>two"),
        ("<select><option>one<option lang>two</select>", "<option>one"),
        ("<div><span>one<p>two</p></div>three", "<span>one<p>two</p>"),
        ("<b>one<p>two</b>three</p>", "<p>two</b>three</p>"),
        ("<p><b>one</p><p lang>two</b>", "<p lang>two</b>"),
        ("<p><a href=https://example.org/>one</a>two", "<a href=https://example.org/>one</a>"),
        ("<p><span/>one</span>two", "<span/>one</span>"),
        ('<html xmlns="a"><p><span/>one</p></html>', "<span/>"),
        ("<img>one", "<img>"),
        ("<body>one<p>two", "<body>one<p>two"),
    ],
)
def test_where_an_element_ends(page, element):
    tokens = list(html_tokens(page))
    ends, _ = ends_of_elements(tokens)
    assert sorted(ends) == [position for position, token in enumerate(tokens) if token.kind == "start"]
    start = next(i for i, token in enumerate(tokens) if token.raw == element[: element.index(">") + 1])
    assert "".join(token.raw for token in tokens[start : ends[start]]) == element


def test_end_tags_are_paired_with_start_tags():
    tokens = list(html_tokens("<b>one<p>two</b>three<br></p></i>"))
    assert {tokens[end].raw: start for end, start in ends_of_elements(tokens)[1].items()} == {"</b>": 0, "</p>": 2}


@pytest.mark.parametrize("bilingual", [False, True])
def test_what_is_not_translated_needs_no_end_tag(bilingual):
    page = "<p>One.<p translate=no>Two <b>three</b>.<p>Four.<ul><li class=notranslate>Five.<li>Six.</ul>"
    page += "<p>See <a class=notranslate href=https://example.org/>Example Name</a> now."
    file = SplitFile(page, "html", None, bilingual=bilingual)
    assert file.sentences == ["One.", "Four.", "Six.", "See Example Name now."]
    result = file.rejoin([sentence.upper() for sentence in file.sentences])
    assert "Two <b>three</b>.<p>" in result and ">Example Name</a>" in result and "SIX." in result
