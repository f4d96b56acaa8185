"""Word documents in two languages: the document as it was, with a marked copy behind every paragraph."""

import io

import pytest
from packages import WORD, saved, unpacked, word_document

from modeling_gtransformer.files.formats import SplitFile
from modeling_gtransformer.plain_text import sentencex_splitter


docx = pytest.importorskip("docx")


def bilingual(content, tgt_lang=None):
    """The sentences of a document, and the document in two languages."""
    file = SplitFile(content, "docx", sentencex_splitter("en"), tgt_lang=tgt_lang, bilingual=True)
    result = file.rejoin([sentence.upper() for sentence in file.sentences])
    assert result == file.rejoin([sentence.upper() for sentence in file.sentences])
    return file.sentences, result


def test_translations_stand_behind_their_paragraphs():
    document = docx.Document()
    document.add_heading("A heading", 1)
    paragraph = document.add_paragraph("Some ", style="List Number")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(" words.").add_break(docx.enum.text.WD_BREAK.PAGE)
    paragraph.add_run("More. And more.")
    document.add_paragraph("5")
    document.add_table(1, 2).cell(0, 1).text = "in a cell"
    document.add_section()
    sentences, result = bilingual(saved(document), "de_DE")
    assert sentences == ["A heading", "Some bold words.", "More.", "And more.", "in a cell"]
    made = docx.Document(io.BytesIO(result))
    texts = [paragraph.text.strip() for paragraph in made.paragraphs]
    assert texts[:4] == [
        "A heading",
        "A HEADING",
        "Some bold words.More. And more.",
        "SOME BOLD WORDS.\nMORE. AND MORE.",
    ]
    assert [text for text in texts[4:] if text] == ["5"]
    assert made.tables[0].cell(0, 1).text == "in a cell\nIN A CELL" and len(made.sections) == 2
    source, copy = made.paragraphs[2:4]
    assert [(run.text, run.bold) for run in copy.runs[:2]] == [("SOME ", None), ("BOLD", True)]
    assert copy.style.name == "List Number" and 'w:numId w:val="0"' in copy._p.xml
    assert "w:pBdr" in copy._p.xml and copy._p.xml.count('w:lang w:val="de-DE"') == len(copy.runs)
    assert "w:pBdr" not in source._p.xml and 'w:type="page"' in source._p.xml and 'w:type="page"' not in copy._p.xml


def test_a_copy_has_nothing_twice():
    body = (
        '<w:p w:rsidR="1"><w:pPr><w:pageBreakBefore/><w:jc w:val="left"/><w:sectPr/></w:pPr>'
        '<w:bookmarkStart w:id="1"/>'
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>TOC</w:instrText></w:r>'
        '<w:r> <w:rPr xmlns:o="other"><w:lang w:val="en"/><w:specVanish/><o:x/></w:rPr><w:t>Hello.</w:t></w:r>'
        "<w:r><w:drawing/></w:r>"
        '<w:bookmarkEnd w:id="1"/><w:r/></w:p><w:p><w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>'
    )
    header = f'<w:hdr xmlns:w="{WORD}"><w:p/></w:hdr>'
    sentences, result = bilingual(word_document(body, header1=header), "de")
    result = unpacked(result)
    assert sentences == ["Hello."] and result["word/header1.xml"] == header
    xml = result["word/document.xml"]
    source, copy = xml[xml.index("<w:p ") : xml.index("HELLO.")].split("</w:p>")
    for name in ("pageBreakBefore", "bookmarkStart", "fldChar", "instrText", "drawing"):
        assert f"<w:{name}" in source and f"<w:{name}" not in copy
    assert "<w:sectPr/>" in copy and "<w:sectPr/>" not in source
    assert copy.index("<w:numPr>") < copy.index("<w:pBdr>") < copy.index("<w:jc ")
    assert '<w:rPr xmlns:o="other"><o:x/><w:lang w:val="de"/><w:specVanish/></w:rPr>' in copy
    assert copy.count("<w:rPr") == copy.count("<w:r>") and xml.count("<w:r/></w:p>") == 2
