"""Elements end where browsers end them, with and without end tags."""

import pytest
from split_file import translated

from modeling_gtransformer.files.html_elements import end_of_element, ends_of_elements
from modeling_gtransformer.files.html_tokens import html_tokens


@pytest.mark.parametrize(
    "page, element",
    [
        ("<p>one <b>two</b></p>three", "<p>one <b>two</b></p>"),
        ("<p>one <b>two</b><p>three</p>", "<p>one <b>two</b>"),
        ("<p>one <br>two<ul><li>three</ul>", "<p>one <br>two"),
        ("<div><p>one</div>two", "<p>one"),
        ("<ul><li>one<ul><li>two</ul>three<li>four</ul>", "<li>one<ul><li>two</ul>three"),
        ("<table><tr><td>one<td>two<tr><td>three</table>", "<td>one"),
        ("<table><tr><td>one<td>two<tr><td>three</table>", "<tr><td>one<td>two"),
        ("<dl><dt>one<dd>two</dl>", "<dt>one"),
        ("<div><span>one<p>two</p></div>three", "<span>one<p>two</p>"),
        ("<img>one", "<img>"),
        ("<code/>one", "<code/>"),
        ("<body>one<p>two", "<body>one<p>two"),
    ],
)
def test_where_an_element_ends(page, element):
    tokens = list(html_tokens(page))
    start = next(i for i, token in enumerate(tokens) if token.raw == element[: element.index(">") + 1])
    end = end_of_element(tokens, start, ends_of_elements(tokens))
    assert "".join(token.raw for token in tokens[start:end]) == element


def test_what_is_not_translated_needs_no_end_tag():
    page = "<p>One.<p translate=no>Two <b>three</b>.<p>Four.<ul><li class=notranslate>Five.<li>Six.</ul>"
    sentences, result = translated(page, "html")
    assert sentences == ["One.", "Four.", "Six."]
    assert result == page.replace("One", "ONE").replace("Four", "FOUR").replace("Six", "SIX")
