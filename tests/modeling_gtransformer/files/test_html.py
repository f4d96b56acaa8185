"""HTML: text of blocks, with inline tags as borders; what is not text stays."""

import pytest
from split_file import translated


HTML = """<!DOCTYPE html>
<html lang="en"><head><title>A &amp; B</title><style>p {color: red}</style></head>
<body><p class="x">Hello <b>big</b>
   world&nbsp;now. Use <code>f(x)</code><!-- why --> at <a href="u?a=1&b=2">home</a>.<br>Next
<ul><li>One<li translate="no">Two</li></ul><pre>  raw  </pre><script>if (a<b) "x";</script>
<input disabled/><p>3 &lt; 4</p></body></html>
"""


def test_html():
    sentences, result = translated(HTML, "html")
    assert sentences == ["A & B", "Hello big world\u00a0now.", "Use f(x) at home.", "Next", "One", "3 < 4"]
    expected = HTML
    for words in ("Hello", "big", "world&nbsp;now", "Use", " at", "home", "Next", "One"):
        expected = expected.replace(words, words.upper(), 1)
    assert result == expected.replace("&NBSP;", "\u00a0")
    assert translated("<p>a", "html", lambda _: "<b> & c")[1] == "<p>&lt;b&gt; &amp; c"


@pytest.mark.parametrize(
    "content, translations, expected",
    [
        # Kept code is found as a whole word, nearest to its place, in any case, and never twice.
        ("See <code>api</code> here İ.", ["İİİİ şimdi API bak."], "İİİİ şimdi <code>api</code> bak."),
        # Tags inside a word stay at their letter.
        ("word<sup>2</sup> and H<sub>2</sub>O is good.", ["WORD2 AND H2O IS GOOD."],
         "WORD<sup>2</sup> AND H<sub>2</sub>O IS GOOD."),
        ("Click <button>OK</button> or <img src=a.png>now.", ["Klicke OK oder jetzt."],
         "Klicke <button>OK</button> oder <img src=a.png>jetzt."),
    ],
)  # fmt: skip
def test_tricky_translations_of_html(content, translations, expected):
    assert translated(content, "html", translations)[1] == expected
