"""Tokens of HTML are those that browsers see, and together the file again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_gtransformer.files.html_tokens import html_tokens


PIECES = ["<a", " b", "=", '"', "'", ">", "/", "<!--", "-->", "<![CDATA[", "]]>", "<?", "</a", "<script>", "</script>"]
PIECES += ["<title>", "</TITLE ", "text", "{{ x }}", "{%", "%}", "<", "\n", "<!x", "--!>"]


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_tokens_are_the_file(text):
    tokens = list(html_tokens(text))
    assert "".join(token.raw for token in tokens) == text
    for token in tokens:
        assert token.raw
        for attribute in token.attributes:
            assert 0 < attribute.start <= attribute.stop <= len(token.raw)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a < b <c>d", [("text", "a < b "), ("start", "<c>"), ("text", "d")]),
        ("<a b='>' c=\">\" d=e/f>x", [("start", "<a b='>' c=\">\" d=e/f>"), ("text", "x")]),
        ("<!-->x<!-- <p> --!>y<!-- z", [("other", "<!-->"), ("text", "x"), ("other", "<!-- <p> --!>"), ("text", "y"),
                                       ("other", "<!-- z")]),
        ("<script>if (a</b>) '<p>'</SCRIPT >x", [("start", "<script>"), ("other", "if (a</b>) '<p>'"),
                                                 ("end", "</SCRIPT >"), ("text", "x")]),
        ("<title>a <b></title>", [("start", "<title>"), ("text", "a <b>"), ("end", "</title>")]),
        ("<script/>x", [("start", "<script/>"), ("text", "x")]),
        ("<![CDATA[a>b]]>c<![CDATA[d>e", [("other", "<![CDATA[a>b]]>"), ("text", "c"), ("other", "<![CDATA[d>"),
                                          ("text", "e")]),
        ("<?php if ($a > 1) ?>b</3>", [("other", "<?php if ($a > 1) ?>"), ("text", "b"), ("other", "</3>")]),
        ("<a b", [("start", "<a b")]),
    ],
)  # fmt: skip
def test_what_browsers_see(text, expected):
    assert [(token.kind, token.raw) for token in html_tokens(text)] == expected


def test_attributes():
    text = "<A B='x y' c=\"z\" d=e f g={{ h }}>"
    [token] = html_tokens(text)
    values = [(one.name, text[one.start : one.stop], one.quote) for one in token.attributes]
    assert token.tag == "a" and values == [("b", "x y", "'"), ("c", "z", '"'), ("d", "e", ""), ("g", "{{ h }}", "")]
