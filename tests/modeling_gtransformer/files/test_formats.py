"""Files in, the same files out, whatever the format; what is broken is named."""

import re
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packages import packed, unpacked, word_document

from modeling_gtransformer.files import odf, pptx
from modeling_gtransformer.files.formats import SplitFile, format_of
from modeling_gtransformer.plain_text import sentencex_splitter


MARKUP = [
    "word ", "A. ", "**", "*", "`", "[x](y)", "[](y)", "\n", "\n\n", "> ", "- ", "    ", "# ", "|", "|-|\n",
    "<b>", "</b>",
    "<p>", "<code>", "</code>", "<br/>", "<!--", "-->", "&amp;", "&", "\\*", "\r\n", "猫。", "---\n", "```\n",
    "![i](j)", "<pre>", '<p translate="no">', "[^1]", "[^1]: ", "<", "$x$", "~~", "\t", "\u00a0", "😀", "\ufeff",
    "_", "_1_", "{{ x }}", "{%", "%}", "<!--", "<![CDATA[", "<title>", "<script>", '<img alt="a b">', "!!! note\n",
    "::: x\n", "[!NOTE]", "&#99999999999999999999999;", "00:00:01,000 --> 00:00:02,500\n", "WEBVTT\n", "NOTE ",
    "{\\an8}", "[Events]\n", "Dialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,", "\\N", "{\\p1}", "\\",
    "Format: Start,End,Text\n",
    "\x0b", "\x1c", "\x85", "\u2028", "\u00ad\n",
]  # fmt: skip
TEXT = st.lists(st.sampled_from(MARKUP)).map("".join) | st.text()


@pytest.mark.parametrize("format", ["wrapped", "markdown", "html", "subtitles", "ass"])
@example(text="word \n\x0b", words=["x"])  # a line that is blank in the file stays
@example(text="~~\u00a0~~", words=["x"])  # so does emphasis of nothing
@example(text="~~word ~~word ", words=["x"])  # and what the parser takes for emphasis
@given(text=TEXT, words=st.lists(st.sampled_from([*MARKUP, ""]), min_size=1))
def test_any_file_comes_back(format, text, words):
    """As it was with its own sentences; with any others it is a file as well."""
    try:
        file = SplitFile(text, format, sentencex_splitter("en"))
    except ValueError as error:
        assert format in ("subtitles", "ass") and re.search(
            "no subtitles in it|is not the timing|^line [0-9]+ ", str(error)
        )
        return
    assert file.rejoin(file.sentences) == text
    assert len(file.protected) == len(file.sentences)
    translations = [f"{sentence} {words[number % len(words)]}" for number, sentence in enumerate(file.sentences)]
    for others in (translations, [words[0]] * len(translations), [""] * len(translations)):
        assert isinstance(file.rejoin(others), str)
    with pytest.raises(ValueError, match="one per sentence"):
        file.rejoin([*file.sentences, "one more"])


PO_LINES = [
    'msgid ""', 'msgstr ""', 'msgid "a"', 'msgid_plural "%d b"', 'msgstr[0] ""', 'msgstr[1] "c"', "#, fuzzy", "# d",
    '"Plural-Forms: nplurals=1; plural=0;\\n"', '"Plural-Forms: nplurals=2; plural=n<0;\\n"', '"e"', "#| msgid",
    "", "#~ x", 'msgctxt "f"', '"Content-Type: text/plain; charset=x\\n"', "\\", '"', "\ufeff",
]  # fmt: skip


@example('msgid ""\nmsgstr ""\nmsgid ""')
@given(st.lists(st.sampled_from(PO_LINES)).map("\n".join) | st.text())
def test_any_catalogue_is_filled_or_refused(text):
    try:
        file = SplitFile(text, "po", None, tgt_lang="de_DE")
    except ValueError:
        return
    assert file.rejoin([sentence.upper() for sentence in file.sentences])


XLIFF_PARTS = [
    '<xliff version="1.2">', '<xliff version="2.0">', "</xliff>", "<file>", "</file>", "<unit>", "</unit>",
    "<segment>", "</segment>", "<trans-unit>", "</trans-unit>", "<source>", "</source>", "<target>", "</target>",
    "a b. ", "<g>", "</g>", "<ph/>", '<mrk mtype="seg">', "</mrk>", "<source>x <g>y</g></source>", "<target/>",
    "<!DOCTYPE a>", "<![CDATA[z]]>", "\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(XLIFF_PARTS)).map("".join) | st.text())
def test_any_xliff_is_filled_or_refused(text):
    for content in (text, f'<xliff version="1.2">{text}</xliff>', f'<xliff version="2.0">{text}</xliff>'):
        try:
            file = SplitFile(content, "xliff", None, tgt_lang="de_DE")
        except ValueError:
            continue
        result = file.rejoin([sentence.upper() for sentence in file.sentences])
        assert SplitFile(result, "xliff", None, tgt_lang="de_DE").sentences == []


ENTRIES = '<a><item id="1" href="p" media-type="text/html"/><spine><itemref idref="1"/></spine></a>'
PACKAGE = packed(
    unpacked(word_document("<w:p><w:r><w:t>a b. c</w:t></w:r></w:p>"))
    | {
        "ppt/presentation.xml": f'<p xmlns:r="{pptx.RELATIONSHIPS}"><sldId r:id="1"/></p>',
        "ppt/_rels/presentation.xml.rels": '<a><Relationship Id="1" Target="s.xml"/></a>',
        "ppt/s.xml": '<p xmlns="http://purl.oclc.org/ooxml/drawingml/main"><t>a b. c</t></p>',
        "META-INF/container.xml": '<a><rootfile full-path="book"/></a>',
        "book": ENTRIES,
        "p": "<p>a b. c</p>",
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": f'<a xmlns:text="{odf.NAMESPACE.format("text")}"><text:p>a b. c</text:p></a>',
        "other": b"x" * 50,
    }
)
PACKAGES = ["docx", "pptx", "epub", "odf"]


def test_the_package_is_one_of_each_format():
    for format in PACKAGES:
        assert SplitFile(PACKAGE, format, None).sentences == ["a b. c"]


@pytest.mark.parametrize("format", PACKAGES)
@given(changes=st.lists(st.tuples(st.integers(0, len(PACKAGE) - 1), st.binary(max_size=4)), max_size=4))
def test_any_package_is_filled_or_refused(format, changes):
    content = bytearray(PACKAGE)
    for place, other in changes:
        content[place : place + len(other)] = other
    try:
        file = SplitFile(bytes(content), format, None)
        file.rejoin([sentence.upper() for sentence in file.sentences])
    except ValueError:
        return


ASS_EVENTS = "[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
BROKEN = {
    "html": [(b"bytes", "takes a string")],
    "docx": [
        ("text", "takes bytes"),
        (b"just text", "not a Word document"),
        (packed({}), r"it has no word/document\.xml"),
    ],
    "odf": [
        (b"text", r"not a readable OpenDocument file \(\.odt, \.odp\): .*not a ZIP package"),
        (packed({"a": ""}), r"not a readable OpenDocument file \(\.odt, \.odp\): .*has no 'mimetype'"),
    ],
    "xliff": [
        ("just text", "broken XML, line 1"),
        ("<html/>", "not XLIFF: it begins with <html>"),
        ('<xliff version="3.0"/>', "unsupported XLIFF version '3.0'"),
        ('<!DOCTYPE xliff [<!ENTITY a "b">]><xliff version="1.2"/>', "DOCTYPE"),
        ('<xliff version="1.2"><file></xliff>', "line 1: mismatched tag"),
    ],
    "subtitles": [
        ("just text", "no subtitles in it"),
        ("1\n00:00:01,000 -> 00:00:02,000\na\n\n2\n00:01 --> nonsense\nb\n", "line 6 is not the timing"),
    ],
    "ass": [
        ("just text", "no subtitles in it"),
        (ASS_EVENTS, "no subtitles in it"),
        (f"{ASS_EVENTS}Dialogue: 0,now,0:00:01.00,A,,0,0,0,,one", "line 3 has an invalid time 'now'"),
        (f"{ASS_EVENTS}Dialogue: one", "line 3 has 1 fields, not 10"),
        ("[Events]\nFormat: Text, Start, End", "line 2 must list Start and End"),
    ],
    "po": [
        ("just text", "no messages in it"),
        ('msgid "a"\nmsgstr "b"\nnonsense\n', "line 3"),
        ('msgid "broken\nmsgstr ""\n', "line 1 has no string"),
        ('msgstr "a"\nmsgid "b"\n', "line 1 has no message before it"),
        ('msgid "a"\nmsgid "b"\nmsgstr ""\n', "line 2 has no place"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr ""\n', "line 3: msgstr\\[0\\] and others"),
        ('msgid ""\nmsgstr[0] ""\n', "line 2: msgstr\\[0\\] and others"),
        ('"a"\nmsgid "b"\nmsgstr ""\n', "line 1 has no place"),
        ('msgid "a"\nmsgstr "b"\n\nmsgid "c"\n', "the last message ends without msgstr"),
    ],
}


@pytest.mark.parametrize("format", BROKEN)
def test_what_is_wrong_with_a_file_is_named(format):
    for content, message in BROKEN[format]:
        with pytest.raises(ValueError, match=message):
            SplitFile(content, format)


@pytest.mark.parametrize("format", ["markdown", "xliff", "po"])
def test_formats_without_a_place_for_two_languages(format):
    with pytest.raises(ValueError, match=f"the format '{format}' cannot hold source and translation in parallel"):
        SplitFile("", format, bilingual=True)


UNIT = '<xliff version="1.2"><file><body><trans-unit><source>{}</source></trans-unit></body></file></xliff>'
SEGMENT = '<xliff version="2.0"><file><unit><segment><source>{}</source></segment></unit></file></xliff>'
FORMATTED = {
    "html": [("<p>{}</p>", "<b>", "</b>"), ("<p>{}</p>", "<a href='x'>", "</a>")],
    "xliff": [
        (UNIT, '<g id="1">', "</g>"),
        (UNIT, '<mrk mtype="x">', "</mrk>"),
        (UNIT, '<bpt id="1">&lt;b></bpt>', '<ept id="1">&lt;/b></ept>'),
        (UNIT, '<bx id="1" rid="7"/>', '<ex id="2" rid="7"/>'),
        (SEGMENT, '<pc id="1">', "</pc>"),
        (SEGMENT, '<sc id="1"/>', '<ec startRef="1"/>'),
    ],
    "odf": [("<text:p>{}</text:p>", "<text:span>", "</text:span>"), ("<text:p>{}</text:p>", "<text:a>", "</text:a>")],
    "epub": [("<p>{}</p>", "<b>", "</b>")],
}


@pytest.mark.parametrize("format", FORMATTED)
def test_formats_go_with_their_words(format):
    for around, opening, closing in FORMATTED[format]:
        content = around.format(f"The {opening}black{closing} cats")
        if format in PACKAGES:
            member = {"odf": "content.xml", "epub": "p"}[format]
            text = f'<a xmlns:text="{odf.NAMESPACE.format("text")}">{content}</a>' if format == "odf" else content
            content = packed(unpacked(PACKAGE) | {member: text})
        file = SplitFile(content, format)
        assert file.sentences == ["The black cats"] and file.styled == [True]
        result = file.rejoin(["Les chats noirs"], [[[1, 0, 0], [0, 0, 1], [0, 1, 0]]])
        text = unpacked(result)[member] if format in PACKAGES else result
        assert f">Les chats {opening}noirs{closing}</" in text


def test_without_the_package_of_a_format(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyromark", None)
    with pytest.raises(ImportError, match="pip install"):
        SplitFile("", "markdown")


def test_formats_by_their_extensions():
    assert [format_of(name) for name in ("a.txt", "b.SRT", "c.d.md")] == ["text", "subtitles", "markdown"]
    with pytest.raises(ValueError, match=r"extension '\.pdf'.*--format"):
        format_of("a.pdf")
