"""Markdown: what is text and what is markup, and that a translation means itself."""

import pytest
from split_file import translated

from modeling_gtransformer.files.formats import SplitFile
from modeling_gtransformer.files.markdown import read_markdown


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


def test_markdown():
    sentences, result = translated(MARKDOWN, "markdown")
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
    _, result = translated("a http://a_b.c\n", "markdown", lambda _: "*1* _x_ [y] <z> | `c` &amp; http://a_b.c")
    assert result == "\\*1\\* \\_x\\_ \\[y\\] \\<z\\> \\| \\`c\\` \\&amp; http://a_b.c\n"


@pytest.mark.parametrize(
    "content, translations, expected",
    [
        # Kept code is found as a whole word, nearest to its place, in any case, and never twice.
        ("The `in` operator is nice.", ["Eine gute Sache ist der in-Operator."],
         "Eine gute Sache ist der `in`-Operator."),
        ("Type `a` for all of it.", ["Gib das a ein."], "Gib das `a` ein."),
        ("x `Hello there. World is` now please.", ["x Hello there. World is bitte."],
         "x `Hello there. World is` bitte."),
        ("![](a.png) Hello big world.", ["Hallo große Welt."], "![](a.png) Hallo große Welt."),
        # Prices are no formula, template tags no text; a date begins no list.
        ("Costs $5 to $10 each.", ["Kostet $5 bis $10 pro Stück."], "Kostet $5 bis $10 pro Stück."),
        ("Formula $x^2$ is good.", ["Formel x^2 ist gut."], "Formel $x^2$ ist gut."),
        ("{{< tube id >}} see {% x %} now\n\n# Head {#id}", ["{{< tube id >}} sieh {% x %} nun", "Kopf"],
         "{{< tube id >}} sieh {% x %} nun\n\n# Kopf {#id}"),
        ("See [[The cat]]\n\n[TOC]\n\n--8<-- 'a'", ["Sieh [[The cat]]"], "Sieh [[The cat]]\n\n[TOC]\n\n--8<-- 'a'"),
        ("Go [there](a.md){ .x } now\n{: .y }", ["Geh dorthin nun"], "Geh [dorthin](a.md){ .x } nun\n{: .y }"),
        # Braces in a sentence, and in code and formulas.
        ("Use {key=value} to set it.", ["Damit {key=value} setzen."], "Damit {key=value} setzen."),
        ("See `[[Type]]` and $x_{i=1}$.", ["Sieh [[Type]] und x_{i=1}."], "Sieh `[[Type]]` und $x_{i=1}$."),
        ("    {{ x }}\n\n`{{ y }}` is it.", ["{{ y }} ist es."], "    {{ x }}\n\n`{{ y }}` ist es."),
        ('![A cat](a.png){ width="3" align=left }', [], '![A cat](a.png){ width="3" align=left }'),
        ("+++\ntitle = \"The cat\"\n+++\n\nIt is.", ["Sie ist."], "+++\ntitle = \"The cat\"\n+++\n\nSie ist."),
        ("Use <% name %> now", ["Nutze <% name %> nun"], "Nutze <% name %> nun"),
        ("On 12 May 2020.", ["12. Mai 2020."], "12\\. Mai 2020."),
        ("\\## no heading", ["## kein Titel"], "\\## kein Titel"),
        ("no box", ["::: warning"], "\\::: warning"),
        ("~~old~~ price", ["alter ~ Preis"], "~~alter~~ \\~ Preis"),
    ],
)  # fmt: skip
def test_tricky_translations_of_markdown(content, translations, expected):
    assert translated(content, "markdown", translations)[1] == expected


MKDOCS = """\
!!! note "Title"

    One:

    - item
      goes on

      more of it

    ```py
    x = "no text"

    {{ y }}, {{ z }}
    ```

    === "Tab"
        Nested.

            code of it

??? tip
    Before
    ~~~
    code
    ~~~
    behind

- List

    !!! warning

        In a list.

End.

    code
"""


def test_bodies_of_admonitions_and_tabs():
    expected = ["Title", "One:", "item goes on", "more of it", "Tab", "Nested.", "Before", "behind"]
    sentences, result = translated(MKDOCS, "markdown")
    assert sentences == [*expected, "List", "In a list.", "End."]
    assert result.lower() == MKDOCS.lower() and 'x = "no text"' in result and "code of it" in result
    # A fence that is open ends with its body, and one on a line is none.
    assert translated(MKDOCS.partition("    ```\n\n")[0] + "\nEnd.", "markdown")[0] == [*expected[:4], "End."]
    assert translated("!!! note\n    ```pip``` installs it.\n\nEnd.", "markdown")[0] == ["pip installs it.", "End."]


@pytest.mark.parametrize(
    "content, sentences, translations, expected",
    [
        ("_Added in 2021_\n", ["Added in 2021"], ["Seit 2021"], "_Seit 2021_\n"),
        ("> [!NOTE]\n> Some text.\n", ["Some text."], ["Text."], "> [!NOTE]\n> Text.\n"),
        ("> [!tip]- A title\n> Text.\n", ["A title", "Text."], ["Titel", "T."], "> [!tip]- Titel\n> T.\n"),
        ('!!! note "A title"\n    Text.\n', ["A title", "Text."], ["Titel", "T."], '!!! note "Titel"\n    T.\n'),
        ("??? warning inline end\n    Text.\n", ["Text."], ["T."], "??? warning inline end\n    T.\n"),
        ("::: warning\nText here.\n:::\n", ["Text here."], ["T."], "::: warning\nT.\n:::\n"),
        ("::: tip A title\r\nText.\r\n:::\r\n", ["A title", "Text."], ["Titel", "T."],
         "::: tip Titel\r\nT.\r\n:::\r\n"),
        # A line break parts sentences, in a cell as well.
        ("| a<br>b c | d |\n|---|---|\n", ["a", "b c", "d"], ["A", "B", "D"], "| A<br>B | D |\n|---|---|\n"),
        # A link is never without words, nor its lines without their marks.
        ("> [a\n> b](c) d\n", ["a b d"], [""], "> [a\n> b](c)\n"),
        ("a [link](b), c\n", ["a link, c"], ["Ja"], "Ja [link](b)\n"),
        ("[one](a)\n", ["one"], [""], "[one](a)\n"),
        # Emphasis without words goes; the white space in it goes outside, and in a word underscores mark nothing.
        ("**bold**text\n", ["boldtext"], ["Fetttext"], "Fetttext\n"),
        ("a _b_ c\n", ["a b c"], ["xyz"], "xyz\n"),
        # Lines that are left without words would end the paragraph.
        ("> one two\n> three\n> four\n\nfive\n", ["one two three four", "five"], ["eins", "5"], "> eins\n\n5\n"),
        ("one\ntwo three\n`x`\n", ["one two three x"], ["eins x"], "eins\n`x`\n"),
        # The same word in text and in code.
        ("A list: `map` on `list`.\n", ["A list: map on list."], ["Eine list: map auf list."],
         "Eine list: `map` auf `list`.\n"),
        ("Call `get` to get `get`.\n", ["Call get to get get."], ["Rufe get zum get von get."],
         "Rufe `get` zum get von `get`.\n"),
    ],
)  # fmt: skip
def test_what_is_written_around_text(content, sentences, translations, expected):
    assert translated(content, "markdown", translations) == (sentences, expected)


@pytest.mark.parametrize("anchor", ["[](#top)", "[](){#top}", "[]()"])
def test_an_anchor_stays(anchor):
    _, text = translated(f"Intro {anchor} text.\n", "markdown")
    assert anchor in text and "INTRO" in text


@pytest.mark.parametrize("mark", [">", "> ", "- "])
def test_marks_nested_beyond_the_parser_are_no_text(mark):
    content = mark * 2000 + " text\n"
    assert translated(content, "markdown") == (["text"], content.upper())


def test_a_paragraph_of_many_marks():
    content = "**a** _b_ [c](d) " * 500 + "\n"
    sentences, result = translated(content, "markdown")
    assert "".join(sentences).replace(" ", "") == "abc" * 500
    assert result == content.replace("a", "A").replace("b", "B").replace("[c]", "[C]")


@pytest.mark.parametrize(
    "content, sentences, expected",
    [
        # The marks that may end a heading, unless they belong to a word or are escaped.
        ("## Head ##  \n\n# C#\n", ["Head", "C#"], "## HEAD ##  \n\n# C#\n"),
        # A reference to a line end is a space; emphasis may begin between two marks.
        ("one&#10;&#10;&#9;two\n", ["one   two"], "ONE   TWO\n"),
        ("the foo-_(bar)_, x-*.y\n", ["the foo-(bar), x-*.y"], "THE FOO-_(BAR)_, X-\\*.Y\n"),
        # A reference needs its semicolon, and an ampersand may be escaped.
        ("\\&copy; &copy &copy;\n", ["&copy; &copy ©"], "\\&COPY; &COPY ©\n"),
        ("`Tag`s are `Tags`\n", ["Tags are Tags"], "`Tag`S ARE `Tags`\n"),
        ("`Quote` and `Quote`s\n", ["Quote and Quotes"], "`Quote` AND `Quote`S\n"),
        ("one\n\\*two\n", ["one *two"], "ONE\n\\*TWO\n"),
        ("magic __get & __set\n", ["magic __get & __set"], "MAGIC \\_\\_GET & \\_\\_SET\n"),
    ],
)
def test_details_of_commonmark(content, sentences, expected):
    assert translated(content, "markdown") == (sentences, expected)


@pytest.mark.parametrize(
    "content, texts, expected",
    [
        ("one _two_ three", ["1 ", "", "3"], "1 3"),
        ("one _two_ three", ["1", " 2 ", "3"], "1 _2_ 3"),
        ("one _two_ three", ["1", "2", " 3"], "1*2* 3"),
        ("one _two_ three", ["1 ", "2", "3"], "1 *2*3"),
        ("***a***", ["", "", "b", "", ""], "***b***"),
        ("> *one\n> two* three", ["", "1", "", "3"], "> *1*\n> 3"),
        ("*one\n...*\n    two", ["", "1...", "", "", "2"], "*1...*\n    2"),
        ("***a***", ["", "", "", "", ""], ""),
    ],
)
def test_emphasis_marks_what_its_text_becomes(content, texts, expected):
    file = read_markdown(content)
    assert len(file.blocks[0]) == len(texts) and file.fill([texts]) == expected


def test_code_of_marks_alone_is_read():
    file = SplitFile("either (`` ` ``) or `<`\n", "markdown")
    assert file.protected == [["`", "<"]]
