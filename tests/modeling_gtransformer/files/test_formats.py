"""Files in, the same files out: text is translated, everything else stays byte for byte."""

import io
import sys
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_gtransformer.files import runs
from modeling_gtransformer.files.formats import FILE_FORMATS, SplitFile, format_of
from modeling_gtransformer.plain_text import sentencex_splitter


docx = pytest.importorskip("docx")

MARKDOWN = """---
title: Head
---
# One *heading*

A paragraph of **bold
text** with `code()`, a [link](http://a.b/c_d "title") and ![picture](a.png). It goes
on \\* &amp; on.\x20\x20
Broken. See <http://a.b>.

> Quoted words
> on two lines.

1. first item
   goes on
- [x] task with [Name] and a note[^1]

| left | right *cell* |
|------|--------------|
| a \\| b | two |

```python
print("code")
```

<div>markup</div>

[Name]: http://c.d

[^1]: The note.
"""
HTML = """<!DOCTYPE html>
<html lang="en"><head><title>A &amp; B</title><style>p {color: red}</style></head>
<body><p class="x">Hello <b>big</b>
   world&nbsp;now. Use <code>f(x)</code><!-- why --> at <a href="u?a=1&b=2">home</a>.<br>Next
<ul><li>One<li translate="no">Two</li></ul><pre>  raw  </pre><script>if (a<b) "x";</script>
<input disabled/><p>3 &lt; 4</p></body></html>
"""
SUBRIP = """1\r
00:00:01,000 --> 00:00:02,500\r
<i>My good old friend</i>\r
and I went home\r
\r
2\r
00:00:02,600 --> 00:00:04,000\r
late. Why?\r
\r
3\r
00:00:09,000 --> 00:00:10,000\r
- Yes.\r
- {\\an8}No
"""
WEBVTT = """WEBVTT - title

NOTE a comment

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.500 align:start
<v Anna>Hello.

01:00:02.500 --> 01:00:04.000
Bye.
"""
WRAPPED = """NAME
       ls - list directory contents

DESCRIPTION
       List  information about the files (the cur‐
       rent directory by default).

       -a, --all
              do not ignore entries

- an item that
  goes on
- another one
  First line,
second line
"""


def upper(content, format, translate=str.upper):
    file = SplitFile(content, format, sentencex_splitter("en"))
    assert file.rejoin(file.sentences) == content
    return file.sentences, file.rejoin([translate(sentence) for sentence in file.sentences])


def test_markdown():
    sentences, result = upper(MARKDOWN, "markdown")
    assert sentences == [
        "One heading",
        "A paragraph of bold text with code(), a link and picture.",
        "It goes on * & on.",
        "Broken.",
        "See http://a.b.",
        "Quoted words on two lines.",
        "first item goes on",
        "task with Name and a note",
        "left",
        "right cell",
        "a | b",
        "two",
        "The note.",
    ]
    assert "# ONE *HEADING*\n" in result and "title: Head\n" in result
    assert "A PARAGRAPH OF **BOLD\nTEXT** WITH `code()`" in result and '[LINK](http://a.b/c_d "title")' in result
    assert "ON \\* & ON.  \nBROKEN." in result and "<http://a.b>" in result
    assert "> QUOTED WORDS\n> ON TWO LINES.\n" in result and "1. FIRST ITEM\n   GOES ON\n" in result
    assert "- [x] TASK WITH [Name] AND A NOTE[^1]\n" in result and "[^1]: THE NOTE.\n" in result
    assert "| LEFT | RIGHT *CELL* |\n|------|" in result and "| A \\| B | TWO |" in result
    assert 'print("code")' in result and "<div>markup</div>\n\n[Name]: http://c.d" in result


def test_markdown_of_a_translation_means_itself():
    _, result = upper("a http://a_b.c\n", "markdown", lambda _: "*1* _x_ [y] <z> | `c` &amp; http://a_b.c")
    assert result == "\\*1\\* \\_x\\_ \\[y\\] \\<z\\> \\| \\`c\\` \\&amp; http://a_b.c\n"


def test_html():
    sentences, result = upper(HTML, "html")
    assert sentences == ["A & B", "Hello big world\u00a0now.", "Use f(x) at home.", "Next", "One", "3 < 4"]
    expected = HTML
    for words in ("Hello", "big", "world&nbsp;now", "Use", " at", "home", "Next", "One"):
        expected = expected.replace(words, words.upper(), 1)
    assert result == expected.replace("&NBSP;", "\u00a0")
    assert upper("<p>a", "html", lambda _: "<b> & c")[1] == "<p>&lt;b&gt; &amp; c"


def test_subtitles():
    sentences, result = upper(SUBRIP, "subtitles", lambda text: text.upper().replace("WENT", "HAVE SLOWLY GONE"))
    assert sentences == ["My good old friend and I went home late.", "Why?", "Yes.", "No"]
    # The sentence goes on in the next cue, and on as many lines as it did.
    assert result == SUBRIP.replace("My good old friend", "MY GOOD OLD FRIEND").replace(
        "and I went home", "AND I HAVE SLOWLY GONE"
    ).replace("late. Why?", "HOME LATE. WHY?").replace("Yes.", "YES.").replace("No", "NO")
    sentences, result = upper(WEBVTT, "subtitles")
    assert sentences == ["Hello.", "Bye."]
    assert result == WEBVTT.replace("Hello", "HELLO").replace("Bye", "BYE")


def test_a_pause_ends_a_sentence():
    cues = "1\n00:00:01,000 --> 00:00:02,000\nto be\n\n2\n00:00:{},000 --> 00:00:09,000\nor not\n"
    assert upper(cues.format("04"), "subtitles")[0] == ["to be or not"]
    assert upper(cues.format("05"), "subtitles")[0] == ["to be", "or not"]


def test_wrapped_text():
    sentences, result = upper(WRAPPED, "wrapped")
    assert sentences == [
        "NAME",
        "ls - list directory contents",
        "DESCRIPTION",
        "List information about the files (the current directory by default).",
        "-a, --all",
        "do not ignore entries",
        "an item that goes on",
        "another one First line,",
        "second line",
    ]
    assert result == WRAPPED.upper().replace("LIST  INF", "LIST INF")
    longer = upper("some words\n  here.\n", "wrapped", lambda _: "ein Satz von sieben oder acht Wörtern.")
    assert longer == (["some words", "here."], longer[1])
    mail = "> a b\n> c d\ne\n--\nSig\n"
    assert upper(mail, "wrapped") == (["a b c d", "e", "Sig"], mail.upper())


PO = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=3; plural=(n != 1);\\n"

#: main.c:1
msgid "Open"
msgstr ""

# by hand
msgid "done"
msgstr "fertig"

#, fuzzy, c-format
msgid "a file"
msgid_plural "some files"
msgstr[0] "Blatt"
msgstr[1] ""
msgstr[2] ""

#~ msgid "gone"
#~ msgstr "weg"
"""


def test_gettext():
    file = SplitFile(PO, "po", None)
    assert file.sentences == ["Open", "a file", "some files"]
    expected = PO.replace('"Open"\nmsgstr ""', '"Open"\nmsgstr "OPEN"').replace("fuzzy, ", "")
    expected = expected.replace('[0] "Blatt"', '[0] "A FILE"')
    for form in (1, 2):
        expected = expected.replace(f'msgstr[{form}] ""', f'msgstr[{form}] "SOME FILES"')
    assert file.rejoin([sentence.upper() for sentence in file.sentences]) == expected


def word_document():
    document = docx.Document()
    document.add_heading("A heading", 1)
    paragraph = document.add_paragraph("Some ")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(" words. And more.")
    paragraph.add_run().add_break()
    paragraph.add_run("Broken")
    document.add_table(1, 2).cell(0, 1).text = "in a cell"
    document.sections[0].header.paragraphs[0].text = "on top"
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def test_word():
    content = word_document()
    file = SplitFile(content, "docx", sentencex_splitter("en"))
    assert set(file.sentences) == {"A heading", "Some bold words.", "And more.", "Broken", "in a cell", "on top"}
    result = file.rejoin([sentence.upper() for sentence in file.sentences])
    translated = docx.Document(io.BytesIO(result))
    runs = translated.paragraphs[1].runs
    assert [(run.text, run.bold) for run in runs[:3]] == [("SOME ", None), ("BOLD", True), (" WORDS. AND MORE.", None)]
    assert translated.tables[0].cell(0, 1).text == "IN A CELL"
    assert translated.sections[0].header.paragraphs[0].text == "ON TOP"
    before, after = (zipfile.ZipFile(io.BytesIO(data)) for data in (content, result))
    assert before.namelist() == after.namelist()
    changed = {name for name in before.namelist() if before.read(name) != after.read(name)}
    assert (
        {"word/document.xml"}
        <= changed
        <= {name for name in changed if name.startswith(("word/document", "word/header"))}
    )


TRICKY = [
    # Kept code is found as a whole word, nearest to its place, in any case, and never twice.
    ("markdown", "The `in` operator is nice.", ["Eine gute Sache ist der in-Operator."],
     "Eine gute Sache ist der `in`-Operator."),
    ("markdown", "Type `a` for all of it.", ["Gib das a ein."], "Gib das `a` ein."),
    ("html", "See <code>api</code> here İ.", ["İİİİ şimdi API bak."], "İİİİ şimdi <code>api</code> bak."),
    ("markdown", "x `Hello there. World is` now please.", ["x Hello there. World is bitte."],
     "x `Hello there. World is` bitte."),
    ("markdown", "![](a.png) Hello big world.", ["Hallo große Welt."], "![](a.png) Hallo große Welt."),
    # Tags inside a word stay at their letter.
    ("html", "word<sup>2</sup> and H<sub>2</sub>O is good.", ["WORD2 AND H2O IS GOOD."],
     "WORD<sup>2</sup> AND H<sub>2</sub>O IS GOOD."),
    ("html", "Click <button>OK</button> or <img src=a.png>now.", ["Klicke OK oder jetzt."],
     "Klicke <button>OK</button> oder <img src=a.png>jetzt."),
    # Prices are no formula, template tags no text; a date begins no list.
    ("markdown", "Costs $5 to $10 each.", ["Kostet $5 bis $10 pro Stück."], "Kostet $5 bis $10 pro Stück."),
    ("markdown", "Formula $x^2$ is good.", ["Formel x^2 ist gut."], "Formel $x^2$ ist gut."),
    ("markdown", "{{< tube id >}} see {% x %} now\n\n# Head {#id}", ["{{< tube id >}} sieh {% x %} nun", "Kopf {#id}"],
     "{{< tube id >}} sieh {% x %} nun\n\n# Kopf {#id}"),
    ("markdown", "On 12 May 2020.", ["12. Mai 2020."], "12\\. Mai 2020."),
    ("markdown", "~~old~~ price", ["alter ~ Preis"], "~~alter~~ \\~ Preis"),
    # SubRip as it is found: no blank line, or one too many, no spaces around the arrow.
    ("subtitles", "1\n00:00:01,000 --> 00:00:02,000\nHello.\n2\n00:00:03,000-->00:00:04,000\nBye\n\nnow.\n",
     ["Hallo.", "Nun tschüs."],
     "1\n00:00:01,000 --> 00:00:02,000\nHallo.\n2\n00:00:03,000-->00:00:04,000\nNun\n\ntschüs.\n"),
    ("subtitles", "WEBVTT\nKind: x\n\nNOTE a --> b\nmore\n\nid\n00:01.000 --> 00:02.000\nTom &amp; I <i>&lt;3</i>.\n",
     ["a < b --> c <3"],
     "WEBVTT\nKind: x\n\nNOTE a --> b\nmore\n\nid\n00:01.000 --> 00:02.000\na &lt; b --&gt; c <i>&lt;3</i>\n"),
]  # fmt: skip


@pytest.mark.parametrize("format, content, translations, expected", TRICKY)
def test_tricky_translations(format, content, translations, expected):
    file = SplitFile(content, format, sentencex_splitter("en"))
    assert file.rejoin(file.sentences) == content
    assert file.rejoin(translations) == expected


def test_a_sentence_through_a_thousand_cues(monkeypatch):
    """Counted, not clocked: its words are looked up for every border, not searched in all of it again."""
    times = [f"00:{second // 60:02}:{second % 60:02}" for second in range(1000)]
    cues = "".join(f"1\n{time},000 --> {time},900\nsome more words\n\n" for time in times)
    file = SplitFile(cues, "subtitles", None)
    assert len(file.sentences) == 1
    searched = []

    class Counted:
        search = runs.WORD.search

        def finditer(self, text, *start, word=runs.WORD):
            searched.append(start)
            return word.finditer(text, *start)

    monkeypatch.setattr(runs, "WORD", Counted())
    assert file.rejoin([file.sentences[0].upper() + " AND MORE"]).count("-->") == 1000
    assert searched.count(()) < 10


def test_word_elements_without_text():
    """Hyphens and formulas are read, and stay; deleted text is not read."""
    document = docx.Document()
    paragraph = document.add_paragraph("Well")
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    for xml in (
        f'<w:r xmlns:w="{word}"><w:noBreakHyphen/><w:t>known is </w:t></w:r>',
        f'<m:oMath xmlns:m="{math}"><m:r><m:t>x+y</m:t></m:r></m:oMath>',
        f'<w:moveFrom xmlns:w="{word}"><w:r><w:t>gone</w:t></w:r></w:moveFrom>',
        f'<w:r xmlns:w="{word}"><w:t> today.</w:t></w:r>',
    ):
        paragraph._p.append(docx.oxml.parse_xml(xml))
    buffer = io.BytesIO()
    document.save(buffer)
    file = SplitFile(buffer.getvalue(), "docx", None)
    assert file.sentences == ["Well-known is x+y today."] and file.kept == [["-", "x+y"]]
    translated = docx.Document(io.BytesIO(file.rejoin(["Heute ist x+y wohl\x01-bekannt."])))
    text = translated.paragraphs[0]._p.xml
    assert text.count("noBreakHyphen") == 1 and "x+y" in text and "gone" in text and "\x01" not in text


def test_plural_forms_that_are_there_stay():
    partial = PO.replace("fuzzy, ", "").replace("\n", "\r\n")
    file = SplitFile(partial, "po", None)
    result = file.rejoin([sentence.upper() for sentence in file.sentences])
    assert 'msgstr[0] "Blatt"\r\nmsgstr[1] "SOME FILES"\r\n' in result


MARKUP = [
    "word ",
    "A. ",
    "**",
    "*",
    "`",
    "[x](y)",
    "\n",
    "\n\n",
    "> ",
    "- ",
    "    ",
    "# ",
    "|",
    "|-|\n",
    "<b>",
    "</b>",
]
MARKUP += [
    "<p>",
    "<code>",
    "</code>",
    "<br/>",
    "<!--",
    "-->",
    "&amp;",
    "&",
    "\\*",
    "\r\n",
    "猫。",
    "---\n",
    "```\n",
    "![i](j)",
]
MARKUP += ["<pre>", '<p translate="no">', "[^1]", "[^1]: ", "<", "$x$", "~~", "\t", "\u00a0", "😀", "\ufeff"]


@pytest.mark.parametrize("format", ["wrapped", "markdown", "html"])
@given(text=st.lists(st.sampled_from(MARKUP)).map("".join) | st.text())
def test_any_file_comes_back(format, text):
    try:
        file = SplitFile(text, format, sentencex_splitter("en"))
    except ValueError as error:
        assert format == "html" and "<![" in text and "no HTML" in str(error)
        return
    assert file.rejoin(file.sentences) == text
    with pytest.raises(ValueError, match="sentences in the place of"):
        file.rejoin([*file.sentences, "one more"])


@pytest.mark.parametrize(
    "format, content, message",
    [
        ("subtitles", "just text", "no subtitles in it"),
        ("subtitles", "1\n00:00:01,000 -> 00:00:02,000\na\n\n2\n00:01 --> nonsense\nb\n", "line 6 is no timing"),
        ("po", "just text", "no messages in it"),
        ("po", 'msgid "a"\nmsgstr "b"\nnonsense\n', "line 3"),
        ("po", 'msgid "broken\nmsgstr ""\n', "line 1 has no string"),
        ("docx", b"just text", "no Word document"),
        ("docx", "text", "takes bytes"),
        ("html", b"bytes", "takes a string"),
    ],
)
def test_broken_files(format, content, message):
    with pytest.raises(ValueError, match=message):
        SplitFile(content, format)


def test_a_zip_that_is_no_word_document():
    buffer = io.BytesIO()
    zipfile.ZipFile(buffer, "w").close()
    with pytest.raises(ValueError, match=r"it has no word/document\.xml"):
        SplitFile(buffer.getvalue(), "docx")


@pytest.mark.parametrize("format, package", [("markdown", "tree_sitter_markdown"), ("po", "polib"), ("docx", "lxml")])
def test_without_the_package_of_a_format(format, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match="pip install"):
        SplitFile(b"" if FILE_FORMATS[format].binary else "", format)


def test_formats_by_their_endings():
    assert [format_of(name) for name in ("a.txt", "b.SRT", "c.d.md")] == ["text", "subtitles", "markdown"]
    with pytest.raises(ValueError, match=r"ending '\.pdf'.*--format"):
        format_of("a.pdf")
