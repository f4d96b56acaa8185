"""OpenDocument: text keeps its format, and everything that is not text is copied."""

from packages import packed, unpacked

from modeling_gtransformer.files import SplitFile
from modeling_gtransformer.files.odf import NAMESPACE
from modeling_gtransformer.plain_text import sentencex_splitter


SPACES = " ".join(f'xmlns:{name}="{NAMESPACE.format(name)}"' for name in ("text", "office", "table"))
SPACES += f' xmlns:draw="{NAMESPACE.format("drawing")}" xmlns:dc="http://purl.org/dc/elements/1.1/"'


def package(body, kind="text", **members):
    content = f"<office:document-content {SPACES}><office:body>{body}</office:body></office:document-content>"
    kind = f"application/vnd.oasis.opendocument.{kind}"
    return packed({"mimetype": kind, "content.xml": content, "meta.xml": "<a>Title</a>", **members})


TEXT = (
    '<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:h text:style-name="H">A heading</text:h>'
    '<text:p>Some <text:span text:style-name="T1">bold</text:span> words<text:note><text:note-citation>1'
    "</text:note-citation><text:note-body><text:p>A note.</text:p></text:note-body></text:note>. And"
    '<text:s text:c="3"/>more on page <text:page-number>seven</text:page-number>.<text:line-break/>See '
    '<text:a href="x">a &amp; b</text:a><office:annotation><dc:creator>Me</dc:creator><text:p>Why?</text:p>'
    "</office:annotation>.</text:p><table:table-cell><text:p>in a cell</text:p></table:table-cell>"
    "<draw:frame><draw:text-box><text:p><text:ruby><text:ruby-base>東京</text:ruby-base><text:ruby-text>とう"
    "</text:ruby-text></text:ruby></text:p></draw:text-box><dc:title>no text</dc:title></draw:frame>"
)


def test_text():
    styles = f"<office:document-styles {SPACES}><text:p>On top</text:p></office:document-styles>"
    content = package(TEXT, **{"styles.xml": styles})
    file = SplitFile(content, "odf", sentencex_splitter("en"))
    assert file.sentences == [
        "A heading", "Some bold words.", "And more on page seven.", "A note.", "See a & b.", "Why?", "in a cell",
        "東京", "On top",
    ]  # fmt: skip
    assert file.protected[1:3] == [[], ["seven"]] and file.styled[1] and file.document_sizes == [9]
    assert unpacked(file.rejoin(file.sentences)) == unpacked(content)
    translations = [sentence.replace("seven", "7").replace("東京", "Tokyo").upper() for sentence in file.sentences]
    result = unpacked(file.rejoin(translations))
    assert "ON TOP" in result["styles.xml"] and result["meta.xml"] == "<a>Title</a>"
    for expected in (
        "<text:p>gone<", ">A HEADING<", 'SOME <text:span text:style-name="T1">BOLD</text:span> WORDS<text:note>',
        "<text:p>A NOTE.</text:p>", '<text:s text:c="3"/>', "<text:page-number>seven<", ">A &amp; B</text:a>",
        "<dc:creator>Me<", "<text:p>WHY?<", "IN A CELL", "<dc:title>no text<",
    ):  # fmt: skip
        assert expected in result["content.xml"]
    assert "とう" not in result["content.xml"]  # readings go with their words


def test_slides():
    """Masters have text only for whoever edits them."""
    members = {"styles.xml": f"<office:document-styles {SPACES}><text:p>Click here</text:p></office:document-styles>"}
    slide = "<draw:page><draw:frame><text:p>One</text:p></draw:frame><text:p>A note</text:p></draw:page>"
    assert SplitFile(package(slide, "presentation", **members), "odf").sentences == ["One", "A note"]
