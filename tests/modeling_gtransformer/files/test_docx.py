"""Word documents: text keeps its format, and everything that is not text stays."""

import io

import pytest
from packages import WORD, WORD_NAMESPACES, saved, unpacked, word_document

from modeling_gtransformer.files.docx import read_docx
from modeling_gtransformer.files.formats import SplitFile
from modeling_gtransformer.plain_text import sentencex_splitter


docx = pytest.importorskip("docx")


def example():
    document = docx.Document()
    document.add_heading("A heading", 1)
    paragraph = document.add_paragraph("Some ")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(" words. And more.")
    paragraph.add_run().add_break()
    paragraph.add_run("Broken")
    document.add_table(1, 2).cell(0, 1).text = "in a cell"
    document.sections[0].header.paragraphs[0].text = "on top"
    return saved(document)


def test_word():
    content = example()
    file = SplitFile(content, "docx", sentencex_splitter("en"))
    assert set(file.sentences) == {"A heading", "Some bold words.", "And more.", "Broken", "in a cell", "on top"}
    result = file.rejoin([sentence.upper() for sentence in file.sentences])
    translated = docx.Document(io.BytesIO(result))
    runs = translated.paragraphs[1].runs
    assert [(run.text, run.bold) for run in runs[:3]] == [("SOME ", None), ("BOLD", True), (" WORDS. AND MORE.", None)]
    assert translated.tables[0].cell(0, 1).text == "IN A CELL"
    assert translated.sections[0].header.paragraphs[0].text == "ON TOP"
    before, after = unpacked(content), unpacked(result)
    assert [*before] == [*after]
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"word/document.xml", "word/header1.xml"}


def text(words):
    return f"<w:r><w:t>{words}</w:t></w:r>"


def xml_of(content, name="word/document.xml"):
    return unpacked(content)[name]


HELLO = f"<w:p>{text('Hello.')}</w:p>"


def test_word_elements_without_text():
    """Hyphens and formulas are read, and stay; deleted text is not read."""
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    body = (
        f"<w:p>{text('Well')}<w:r><w:noBreakHyphen/><w:t>known is </w:t></w:r>"
        f'<m:oMath xmlns:m="{math}"><m:r><m:t>x+y</m:t></m:r></m:oMath>'
        f"<w:moveFrom>{text('gone')}</w:moveFrom>{text(' today.')}</w:p>"
    )
    file = SplitFile(word_document(body), "docx", None)
    assert file.sentences == ["Well-known is x+y today."] and file.protected == [["-", "x+y"]]
    xml = xml_of(file.rejoin(["Heute ist x+y wohl\x01-bekannt."]))
    assert xml.count("noBreakHyphen") == 1 and "x+y" in xml and "gone" in xml and "\x01" not in xml


def test_fields_keep_their_result():
    def field(instruction, result):
        parts = [f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")]
        return f"{parts[0]}<w:r><w:instrText>{instruction}</w:instrText></w:r>{parts[1]}{text(result)}{parts[2]}"

    simple = f'<w:fldSimple w:instr=" DATE \\@ x ">{text("May")}</w:fldSimple>'
    body = f"<w:p>{text('Page ')}{field(' PAGE ', 'seven')}{text(' of ')}{simple}{field('HYPERLINK x', ' here')}</w:p>"
    file = SplitFile(word_document(body), "docx", None)
    assert file.sentences == ["Page seven of May here"] and file.protected == [["seven", "May"]]
    xml = xml_of(file.rejoin(["Hier May und seven Seiten"]))
    assert ">seven<" in xml and ">May<" in xml and "> here<" not in xml and " PAGE " in xml


def test_the_strict_form():
    file = SplitFile(word_document(HELLO, "http://purl.oclc.org/ooxml/wordprocessingml/main"), "docx", None)
    assert file.sentences == ["Hello."] and ">HALLO.<" in xml_of(file.rejoin(["HALLO."]))


def test_a_text_box_is_translated_once():
    box = f"<w:txbxContent>{HELLO}</w:txbxContent>"
    both = f"<w:p><w:r><mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{{}}</mc:Fallback>"
    both += "</mc:AlternateContent></w:r></w:p>"
    file = SplitFile(word_document(both.format(box)), "docx", None)
    assert file.sentences == ["Hello."] and xml_of(file.rejoin(["Hallo."])).count(">Hallo.<") == 2
    both_languages = SplitFile(word_document(both.format(box)), "docx", bilingual=True).rejoin(["Hallo."])
    assert xml_of(both_languages).count(">Hallo.<") == 1 and xml_of(both_languages).count(">Hello.<") == 2
    number = f'<w:fldSimple w:instr="PAGE"><w:r>{text("5")}</w:r></w:fldSimple></w:p></w:txbxContent>'
    with_number = both.format(box.replace("</w:p></w:txbxContent>", number))
    assert SplitFile(word_document(with_number), "docx", None).sentences == ["Hello."]
    unlike = SplitFile(word_document(both.format(box.replace("Hello", "Bye"))), "docx", None)
    assert unlike.sentences == ["Hello.", "Bye."]


def test_readings_go_with_their_words():
    ruby = f"<w:r><w:ruby><w:rt>{text('とうきょう')}</w:rt><w:rubyBase>{text('東京')}</w:rubyBase></w:ruby></w:r>"
    content = word_document(f"<w:p>{text('私は')}{ruby}{text('へ行く。')}</w:p>")
    file = SplitFile(content, "docx", None)
    assert file.sentences == ["私は東京へ行く。"]
    assert "とう" in xml_of(file.rejoin(file.sentences)) and "とう" not in xml_of(file.rejoin(["I go to Tokyo."]))
    bilingual = xml_of(SplitFile(content, "docx", None, bilingual=True).rejoin(["I go to Tokyo."]))
    assert bilingual.count("とう") == 1


def test_comments_are_translated():
    comments = f"<w:comments {WORD_NAMESPACES.format(WORD)}><w:comment>{HELLO}</w:comment></w:comments>"
    file = SplitFile(word_document("", comments=comments), "docx", None)
    assert file.sentences == ["Hello."] and ">Hallo.<" in xml_of(file.rejoin(["Hallo."]), "word/comments.xml")


def test_formats_go_with_their_words():
    """Runs of one format take each other's words, whatever else tells them apart."""
    document = docx.Document()
    paragraph = document.add_paragraph("The ")
    paragraph.add_run("black").bold = True
    paragraph.add_run(" cat")
    paragraph.add_run("s").font.no_proof = True
    document.add_paragraph("No ").add_run("format").font.no_proof = True
    file = SplitFile(saved(document), "docx")
    assert file.styled == [True, False]
    alignments = [[[1, 0, 0], [0, 0, 1], [0, 1, 0]], None]
    result = docx.Document(io.BytesIO(file.rejoin(["Les chats noirs", "Sans forme"], alignments)))
    runs = result.paragraphs[0].runs
    assert "".join(run.text for run in runs) == "Les chats noirs"
    assert [run.text for run in runs if run.bold] == ["noirs"]


def test_links_are_formats():
    link = f"<w:hyperlink>{text('black')}</w:hyperlink>"
    file = SplitFile(word_document(f"<w:p>{text('The ')}{link}{text(' cats')}</w:p>"), "docx")
    result = xml_of(file.rejoin(["Les chats noirs"], [[[1, 0, 0], [0, 0, 1], [0, 1, 0]]]))
    assert file.styled == [True] and '<w:hyperlink><w:r><w:t xml:space="preserve">noirs</w:t>' in result


def test_formats_of_nested_links_take_linear_memory():
    link = f"<w:hyperlink>{text('a')}"
    body = f"<w:p>{link * 9}{'</w:hyperlink>' * 9}</w:p>"
    assert {len(run.style) for run in read_docx(word_document(body)).blocks[0]} == {1}


def test_parts_that_do_not_change_are_copied():
    content = word_document(HELLO.replace("<w:t>", "<w:t  >"), footnotes=f"<w:x {WORD_NAMESPACES.format(WORD)} />")
    file = SplitFile(content, "docx", None)
    assert xml_of(file.rejoin(["Hello."])) == xml_of(content)
    changed = file.rejoin(["Hallo."])
    assert xml_of(changed) != xml_of(content) and changed == file.rejoin(["Hallo."])
    assert xml_of(changed, "word/footnotes.xml").endswith(" />")
