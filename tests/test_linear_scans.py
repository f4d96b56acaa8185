"""No text makes the work grow faster than the text: work is counted, in characters and in calls."""

import html
import importlib
import inspect
import re
import sys
from functools import partial

import pytest
from counted_regex import CountedRegex
from packages import packed, word_document
from repository import ROOT

from benchmarks.hostile_units import HOSTILE
from modeling_gtransformer.files.formats import SplitFile
from modeling_gtransformer.plain_text import sentencex_splitter, split_text
from modeling_gtransformer.terminology import Terminology


FILES = ROOT / "modeling_gtransformer" / "files"
MODULES = [
    "numbers_and_codes",
    "plain_text",
    "replacement",
    "terminology",
    *(f"files.{file.stem}" for file in sorted(FILES.glob("*.py"))),
]
PATTERNS = {
    f"{name}.{key}": value
    for name in MODULES
    for module in [importlib.import_module(f"modeling_gtransformer.{name}")]
    for key, value in vars(module).items()
    # Imported ones are tried under their own module.
    if isinstance(value, re.Pattern) and re.search(rf"^{key} = ", inspect.getsource(module), re.MULTILINE)
}
# Those that are tried at the beginning of a line or a tag only, or on a word; all others wherever they may begin.
MATCHED_ONLY = {
    f"{module}.{name}"
    for module, names in {
        "plain_text": ["ITEM"], "files.subtitles": ["TIMING", "NOTE", "LINE"],
        "files.substation": ["LINE", "SECTION", "TIMING"], "files.gettext": ["LINE"],
        "files.xml_tokens": ["ENCODING", "TAG_NAME"],
        "files.html_tokens": ["ATTRIBUTE"], "files.boundaries": ["SPACES"],
        "files.markdown": ["LINE_BREAK"],
        "files.docx": ["PARTS", "MAIN_PART"],
    }.items()
    for name in names
}  # fmt: skip
SIZE = 100


def visits(pattern, text, name):
    counted = CountedRegex(pattern)
    (counted.match if name in MATCHED_ONLY else counted.finditer)(text)
    return counted.visits


def assert_linear(work, unit, size=SIZE, slack=SIZE):
    """Fails where a text of twice as many units takes more than twice the work."""
    once, twice = (work((unit * length)[:length]) for length in (size, 2 * size))
    assert twice <= 2.3 * once + slack, f"{unit!r}: {once}, and {twice} for the double"


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_visit_no_character_again_and_again(name):
    for unit in HOSTILE.values():
        assert_linear(lambda text: visits(PATTERNS[name], text, name), unit)


def test_the_count_sees_what_is_not_linear():
    """The pattern of addresses, as it was."""
    old = re.compile(r"[a-z][a-z0-9+.-]*://[^\s<>]+", re.IGNORECASE)
    with pytest.raises(AssertionError, match="for the double"):
        assert_linear(lambda text: visits(old, text, "old"), "a")
    text = "see http://a.b/c and xyz@d.ef, %(n)s {x}"
    for pattern in (PATTERNS["plain_text.ADDRESS"], PATTERNS["terminology.PLACEHOLDER"]):
        assert CountedRegex(pattern).finditer(text) == [match.span() for match in pattern.finditer(text)]


def calls(function, *arguments):
    """The functions of Python and C that are called meanwhile."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return count


def runs(text):
    """A Word document with a run for every letter and space."""
    letters = (letter for letter in text if letter.isalnum() or letter == " ")
    return word_document(f"<w:p>{''.join(f'<w:r><w:t>{letter}</w:t></w:r>' for letter in letters)}</w:p>")


def catalogue(text):
    return "\n\n".join(
        f'msgid "{number} {letter}"\nmsgstr ""' for number, letter in enumerate(text) if letter.isalnum()
    )


def xliff(text):
    """A unit of the text, one of its letters in inline elements, and units that have a letter each."""
    letters = [letter for letter in text if letter.isalnum()]
    inline = "".join(f'<g id="1">{letter}</g><x id="2"/> ' for letter in letters)
    units = "".join(
        f"<trans-unit><source>{source}</source></trans-unit>" for source in (html.escape(text), inline, *letters)
    )
    return f'<xliff version="1.2"><file><body>{units}</body></file></xliff>'


def book(text):
    """A page with the text, and very many of a letter each."""
    pages = {"p.xhtml": text, **{f"p{number}.xhtml": letter for number, letter in enumerate(text)}}
    items = "".join(f'<item id="{page}" href="{page}" media-type="application/xhtml+xml"/>' for page in pages)
    spine = "".join(f'<itemref idref="{page}"/>' for page in pages)
    container = '<container><rootfile full-path="book"/></container>'
    return packed(
        {"META-INF/container.xml": container, "book": f"<package>{items}<spine>{spine}</spine></package>", **pages}
    )


def presentation(text):
    """A slide for every letter."""
    drawing = "http://schemas.openxmlformats.org/drawingml/2006/main"
    slides = {
        f"ppt/s{number}.xml": f'<p xmlns="{drawing}"><r><t>{letter}</t></r></p>' for number, letter in enumerate(text)
    }
    ids = "".join(f'<sldId r:id="{number}"/>' for number in range(len(slides)))
    relations = "".join(f'<Relationship Id="{number}" Target="s{number}.xml"/>' for number in range(len(slides)))
    space = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    main = {
        "ppt/presentation.xml": f'<p xmlns:r="{space}">{ids}</p>',
        "ppt/_rels/presentation.xml.rels": f"<Relationships>{relations}</Relationships>",
    }
    return packed(main | slides)


CONTENTS = {
    "wrapped": str, "markdown": str, "html": str, "docx": runs, "po": catalogue, "xliff": xliff,
    "epub": book, "pptx": presentation,
    "ass": "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,{}\n".format,
    "subtitles": "1\n00:00:01,000 --> 00:00:02,000\n{}\n".format,
}  # fmt: skip
# What these make of a text depends on its letters alone.
UNITS = {format: [*HOSTILE.values()] for format in CONTENTS} | {
    "docx": ["a", "a "],
    "epub": ["a", "<"],
    "pptx": ["a"],
    "po": ["a", "中"],
}


def read_and_fill(content, format, splitter, bilingual=False):
    file = SplitFile(content, format, splitter, bilingual=bilingual)
    for translation in ("x", "x y 1 a, b `c` d"):
        file.rejoin([translation] * len(file.sentences))
    file.rejoin([f"{sentence} x" for sentence in file.sentences])


WAYS = [(format, way) for format in CONTENTS for way in ("in lines", "in sentences")]


@pytest.mark.parametrize("format, way", [*WAYS, ("html", "bilingual"), ("docx", "bilingual")])
def test_files_are_read_and_filled_in_linear_time(format, way):
    splitter = sentencex_splitter("en") if way == "in sentences" else None
    options = format, splitter, way == "bilingual"
    for unit in UNITS[format]:
        assert_linear(lambda text: calls(read_and_fill, CONTENTS[format](text), *options), unit, 2 * SIZE, 10 * SIZE)


@pytest.mark.parametrize(
    "outside, nested",
    [
        ("<source>{}</source>", "<g>a "), ("<source>{}</source>", "<ph>a"), ("{}", "<segment><source>a"),
        ("<originalData>{}</originalData>", "<data>a"), ("{}", "<unit><originalData>"), ("{}", "<group>"),
    ],
)  # fmt: skip
def test_nested_elements_are_read_in_linear_time(outside, nested):
    names = re.findall(r"\w+(?=>)", nested)
    ends = "".join(f"</{name}>" for name in reversed(names))
    content = f'<xliff version="2.0"><file><unit><segment>{outside}</segment></unit></file></xliff>'
    contents = [content.format(nested * size + ends * size) for size in (SIZE, 2 * SIZE)]
    once, twice = (calls(read_and_fill, content, "xliff", None) for content in contents)
    assert twice <= 2.3 * once + SIZE


def test_nested_paragraphs_are_copied_in_linear_time():
    """Of a Word document in two languages."""

    def work(paragraphs):
        content = word_document(paragraphs + "</w:p>" * paragraphs.count("<w:p>"))
        return calls(read_and_fill, content, "docx", None, True)

    unit = "<w:p><w:r><w:t>a</w:t></w:r>"
    assert_linear(work, unit, 9 * len(unit))


def test_nested_labels_are_copied_in_linear_time():
    """Of a table of contents in two languages."""

    def work(labels):
        nested = labels + "</text>" * labels.count("<")
        items = '<item id="n" href="n" media-type="application/x-dtbncx+xml"/><spine><itemref idref="n"/></spine>'
        members = {
            "META-INF/container.xml": '<container><rootfile full-path="book"/></container>',
            "book": f"<package>{items}</package>",
            "n": f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navLabel>{nested}</navLabel></ncx>',
        }
        return calls(read_and_fill, packed(members), "epub", None, True)

    assert_linear(work, "<text>a", 7 * 5 * SIZE)


def test_text_is_read_in_linear_time():
    splitter = sentencex_splitter("en")
    for unit in HOSTILE.values():
        for function in (lambda text: split_text(text, splitter), Terminology({"a b": "c"}).required):
            assert_linear(partial(calls, function), unit, 2 * SIZE)
