"""Presentations: text of slides, tables and notes keeps its format, and everything that is not text stays."""

import io

import pytest
from packages import packed, saved, unpacked

from modeling_gtransformer.files.formats import SplitFile
from modeling_gtransformer.plain_text import sentencex_splitter


pptx = pytest.importorskip("pptx")


def opened(content):
    return pptx.Presentation(io.BytesIO(content))


def presentation():
    """Two slides, of which the second comes first, with a table and notes."""
    made = pptx.Presentation()
    for title in ("Second slide", "First slide"):
        slide = made.slides.add_slide(made.slide_layouts[5])
        slide.shapes.title.text = title
    paragraph = slide.shapes.add_textbox(0, 0, 9, 9).text_frame.paragraphs[0]
    for words in ("Some ", "bold", " words. And more."):
        paragraph.add_run().text = words
    paragraph.runs[1].font.bold = True
    paragraph.add_line_break()
    paragraph.add_run().text = "Broken & <wrong>"
    slide.shapes.add_table(1, 2, 0, 0, 9, 9).table.cell(0, 1).text = "in a cell"
    slide.notes_slide.notes_text_frame.text = "A note."
    slides = made.slides._sldIdLst
    slides.insert(0, slides[1])
    return saved(made)


def test_presentation():
    content = presentation()
    file = SplitFile(content, "pptx", sentencex_splitter("en"))
    expected = [
        "First slide",
        "Some bold words.",
        "And more.",
        "Broken & <wrong>",
        "in a cell",
        "A note.",
        "Second slide",
    ]
    assert file.sentences == expected and file.document_sizes == [7]
    assert unpacked(file.rejoin(file.sentences)) == unpacked(content)
    slide = opened(file.rejoin([sentence.upper() for sentence in file.sentences])).slides[0]
    title, box, table = slide.shapes
    assert title.text_frame.text == "FIRST SLIDE" and table.table.cell(0, 1).text == "IN A CELL"
    runs = [(run.text, run.font.bold) for run in box.text_frame.paragraphs[0].runs]
    assert runs == [("SOME ", None), ("BOLD", True), (" WORDS. AND MORE.", None), ("BROKEN & <WRONG>", None)]
    assert slide.notes_slide.notes_text_frame.text == "A NOTE."


def with_slide(body):
    """A presentation with this text on its only slide."""
    made = pptx.Presentation()
    made.slides.add_slide(made.slide_layouts[6])
    members = unpacked(saved(made))
    slide = members["ppt/slides/slide1.xml"]
    members["ppt/slides/slide1.xml"] = slide.replace(
        "</p:spTree>", f"<p:sp><p:txBody>{body}</p:txBody></p:sp></p:spTree>"
    )
    return members


def test_fields_and_formulas_stay():
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    body = (
        '<a:p><a:r><a:t>Page </a:t></a:r><a:fld type="slidenum"><a:t>seven</a:t></a:fld><a:r><a:t> shows </a:t></a:r>'
        f'<m:oMath xmlns:m="{math}"><m:r><m:t>x+y</m:t></m:r></m:oMath></a:p>'
    )
    members = with_slide(body)
    file = SplitFile(packed(members), "pptx", None)
    assert file.sentences == ["Page seven shows x+y"] and file.protected == [["seven", "x+y"]]
    slide = unpacked(file.rejoin(["x+y steht auf Seite seven"]))["ppt/slides/slide1.xml"]
    assert "<m:t>x+y</m:t>" in slide and ">seven<" in slide and " steht auf Seite" in slide


def test_formats_go_with_their_words():
    """Runs of one format take each other's words, whatever their language and the marks of the spelling checker."""
    body = (
        '<a:p><a:r><a:rPr lang="en-GB"/><a:t>The </a:t></a:r>'
        '<a:r><a:rPr lang="en-GB" b="1"><a:solidFill/></a:rPr><a:t>black</a:t></a:r>'
        '<a:r><a:rPr lang="en-US" err="1"/><a:t> cats</a:t></a:r></a:p>'
        '<a:p><a:r><a:rPr dirty="0"/><a:t>No </a:t></a:r><a:r><a:t>format</a:t></a:r></a:p>'
    )
    file = SplitFile(packed(with_slide(body)), "pptx")
    assert file.styled == [True, False]
    alignments = [[[1, 0, 0], [0, 0, 1], [0, 1, 0]], None]
    paragraphs = opened(file.rejoin(["Les chats noirs", "Sans forme"], alignments)).slides[0].shapes[0].text_frame
    runs = [(run.text, run.font.bold) for run in paragraphs.paragraphs[0].runs]
    assert runs == [("Les chats ", None), ("noirs", True), ("", None)]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"ppt/presentation.xml": None}, "it has no 'ppt/presentation.xml'"),
        ({"ppt/presentation.xml": "<a>"}, "'ppt/presentation.xml' of the package: broken XML"),
        ({"ppt/_rels/presentation.xml.rels": None}, "ppt/presentation.xml refers to a missing slide: 'rId"),
        ({"ppt/slides/slide1.xml": None}, "it has no 'ppt/slides/slide1.xml'"),
        (
            {"ppt/slides/slide1.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a/>'},
            "'ppt/slides/slide1.xml' of the package: its doc",
        ),
    ],
)
def test_broken_presentations(changes, message):
    with pytest.raises(ValueError, match="not a readable presentation .*" + message):
        SplitFile(packed(with_slide("") | changes), "pptx")
    with pytest.raises(ValueError, match="it is not a ZIP package"):
        SplitFile(b"text", "pptx")
