"""HTML: text of blocks, with inline tags as boundaries; what is not text stays."""

import pytest
from split_file import translated

from modeling_gtransformer.files.formats import SplitFile


HTML = """<!DOCTYPE html>
<html lang="en"><head><title>A &amp; B</title><style>p {color: red}</style></head>
<body><p class="x">Hello <b>big</b>
   world&nbsp;now. Use <code>f(x)</code><!-- why --> at <a href="u?a=1&b=2">home</a>.<br>Next
<ul><li>One<li translate="no">Two</li></ul><pre>  raw  </pre><script>if (a<b) "x";</script>
<input disabled/><p>x &lt; 4</p></body></html>
"""


def test_html():
    sentences, result = translated(HTML, "html")
    assert sentences == ["A & B", "Hello big world\u00a0now.", "Use f(x) at home.", "Next", "One", "x < 4"]
    expected = HTML
    for words in ("Hello", "big", "world&nbsp;now", "Use", " at", "home", "Next", "One", "x &lt;"):
        expected = expected.replace(words, words.upper(), 1)
    assert result == expected.replace("&NBSP;", "\u00a0").replace("&LT;", "&lt;")
    assert translated("<p>a", "html", lambda _: "<b> & c")[1] == "<p>&lt;b&gt; &amp; c"


@pytest.mark.parametrize(
    "content, translations, expected",
    [
        # Kept code is found as a whole word, nearest to its place, in any case, and never twice.
        ("See <code>api</code> here İ.", ["İİİİ şimdi API bak."], "İİİİ şimdi <code>api</code> bak."),
        # Tags inside a word stay at their letter.
        ("word<sup>2</sup> and H<sub>2</sub>O is good.", ["WORD2 AND H2O IS GOOD."],
         "WORD<sup>2</sup> AND H<sub>2</sub>O IS GOOD."),
        # A link is never without words.
        ("See <a href=x>this <b>page</b></a>!", ["Ja"], "Ja <a href=x>this <b>page</b></a>"),
        ('<select><optgroup label="A cat"><option label="It">one</select>', ["Eine Katze", "Es", "eins"],
         '<select><optgroup label="Eine Katze"><option label="Es">eins</select>'),
        ("Click <button>OK</button> or <img src=a.png>now.", ["Klicke OK oder jetzt."],
         "Klicke <button>OK</button> oder <img src=a.png>jetzt."),
    ],
)  # fmt: skip
def test_tricky_translations_of_html(content, translations, expected):
    assert translated(content, "html", translations)[1] == expected


def test_the_page_says_what_language_it_is_in_then():
    page = '<html lang="en" dir=ltr class="x"><p lang="en">one</p><p lang="fr" dir="ltr">two</p></html>'
    arabic = page.replace('"en"', '"ar-AR"').replace("dir=ltr", "dir=rtl")
    body = '<html{}><body lang="{}" dir="{}"><p lang="{}">one</p><p lang="fr" dir="rtl">two</p></body></html>'
    template = '<html lang="en"><body lang="{{ lang }}" dir="{{ dir }}"><p>one</p></body></html>'
    for content, tgt_lang, expected in (
        (page, "ar_AR", arabic),
        (page, "[de]", page.replace('"en"', '"de"')),
        (page, None, page),
        (page, "[target]", page),
        ("<HTML><p>one", "he_IL", '<HTML lang="he-IL" dir="rtl"><p>one'),
        ("<html id='a' ><p>one", "de", "<html id='a' lang=\"de\" ><p>one"),
        ("<p>one", "de", "<p>one"),
        (body.format("", "he", "rtl", "he"), "de", body.format(' lang="de"', "de", "ltr", "de")),
        (template, "de", template.replace('"en"', '"de"')),
    ):
        file = SplitFile(content, "html", None, tgt_lang=tgt_lang)
        assert file.rejoin(file.sentences) == expected


def test_attributes_for_readers():
    page = (
        '<head><meta name="Description" content="All about it"><meta name="viewport" content="width=device-width">'
        "<meta property=og:title content=Cats></head><p>See <img src='a b' alt='the \n cat'> <a title=\"a tip\" "
        'href=\'x\'>here</a> <input type=submit value=Send><input value=name> <img alt="{{ name }}" title="2021">.</p>'
    )
    sentences, result = translated(page, "html")
    assert sentences == ["All about it", "Cats", "See  here  .", "the cat", "a tip", "Send"]
    _, result = translated(page, "html", ["A", "B", "C", "d'\"<&", "d'\"<&", "two words"])
    for expected in (
        'content="A"', 'content="B">', "alt='d&#x27;\"&lt;&amp;'", "title=\"d'&quot;&lt;&amp;\"",
        'value="two words">', "value=name>", 'alt="{{ name }}" title="2021"',
    ):  # fmt: skip
        assert expected in result


def test_templates_are_not_translated():
    page = (
        '{% if a < b %}<p class="{{ x }}" {% if a > b %}id=c{% endif %}>Hello {{ user.name|title }}!</p>{% endif %}'
        "<title>{{ t }} page</title><% code %>{# a note #}"
    )
    sentences, result = translated(page, "html", lambda text: text.replace("Hello", "Hallo").replace("page", "Seite"))
    assert sentences == ["Hello {{ user.name|title }}!", "{{ t }} page"]
    assert result == page.replace("Hello", "Hallo").replace("page", "Seite")
    assert SplitFile(page, "html", None).protected == [["{{ user.name|title }}"], ["{{ t }}"]]


@pytest.mark.parametrize("declaration", ['<meta charset="iso-8859-1">', "<?xml version=\"1.0\" encoding='latin1'?>"])
def test_another_character_set_is_kept(declaration):
    """The page is ASCII, as it is read as UTF-8, and stays so."""
    assert translated(f"{declaration}<p>a", "html", ["<ä猫"])[1] == f"{declaration}<p>&lt;&#228;&#29483;"
    assert translated('<meta charset="UTF-8"><p>a', "html", ["ä\x08\ud800"])[1] == '<meta charset="UTF-8"><p>ä'


def test_a_sentence_goes_on_in_inline_elements():
    page = "<p>Please <nobr>call us</nobr> <picture><source srcset=a><img src=b></picture> now.</p>"
    assert SplitFile(page, "html").sentences == ["Please call us  now."]
