"""E-books: pages in reading order, table of contents and title; everything else stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packages import packed, unpacked

from modeling_gtransformer.files.formats import SplitFile
from modeling_gtransformer.plain_text import sentencex_splitter


XHTML = (
    '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
    '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" {}><head><title/></head>'
    "<body>{}</body></html>"
)
BOOK = """<package xmlns="http://www.idpf.org/2007/opf" version="3.0" xml:lang="en"><metadata
 xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A <!-- x -->book</dc:title><dc:creator>B. Writer</dc:creator>
<dc:language> en-GB </dc:language><dc:language>fr</dc:language><dc:title xml:lang="fr">Un livre</dc:title></metadata>
<manifest><item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="2" href="text/b%20b.xhtml" media-type="application/xhtml+xml"/><item id="s" href="s.svg" media-type="image/svg+xml"/>
<item id="1" href="text/a.xhtml" media-type="application/xhtml+xml"/><item id="x" href="x.xhtml" media-type="application/xhtml+xml"/>
<item id="c" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest>
<spine toc="c"><itemref idref="1"/><itemref idref="s"/><itemref idref="2" linear="no"/><itemref idref="1"/></spine></package>
"""  # noqa: E501
CONTENTS = """<?xml version="1.0"?>
<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">
<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" xml:lang="en"><docTitle><text>A book</text></docTitle><docAuthor>
<text>B. Writer</text></docAuthor>
<navMap><navPoint><navLabel><text>One &amp; two</text></navLabel><content src="text/a.xhtml"/></navPoint></navMap>
<pageList><pageTarget><navLabel><text>iv</text></navLabel></pageTarget></pageList></ncx>
"""
MEMBERS = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
    "OEBPS/text/b b.xhtml": XHTML.format('lang="en"', "<p>Four.</p>"),
    "OEBPS/text/a.xhtml": XHTML.format(
        "", "<h1>One<br/>two</h1><p>It is <i>three</i>. No.<img alt='x y' src='i'/></p>"
    ),
    "OEBPS/x.xhtml": XHTML.format("", "<p>Not in the spine.</p>"),
    "OEBPS/nav.xhtml": XHTML.format(
        "", '<nav epub:type="toc"><ol><li><a href="text/a.xhtml">One &amp; two</a></li></ol></nav>'
    ),
    "OEBPS/toc.ncx": CONTENTS,
    "OEBPS/book.opf": BOOK,
    "OEBPS/s.svg": "<svg>Not this.</svg>",
}


def test_epub():
    content = packed(MEMBERS)
    file = SplitFile(content, "epub", sentencex_splitter("en"))
    assert file.sentences == [
        "A book", "Un livre", "One", "two", "It is three.", "No.", "x y", "Four.", "One & two", "A book", "One & two",
    ]  # fmt: skip
    assert file.document_sizes == [2, 5, 1, 1, 2]
    assert unpacked(file.rejoin(file.sentences)) == MEMBERS
    result = file.rejoin([sentence.upper() for sentence in file.sentences])
    upper = {name: MEMBERS[name] for name in MEMBERS if name.endswith((".xhtml", ".ncx", ".opf"))}
    for words in ("A <!-- x -->book", "A book", "One", "two", "It is", "three", " No.", "x y", "Four", "Un livre"):
        capitals = words.upper().replace("<!-- X -->", "<!-- x -->")
        upper = {name: text.replace(words, capitals) for name, text in upper.items()}
    upper["OEBPS/x.xhtml"] = MEMBERS["OEBPS/x.xhtml"]
    assert unpacked(result) == MEMBERS | upper
    assert result[30:58] == b"mimetypeapplication/epub+zip"  # first and not compressed, as readers require


def test_the_book_says_what_language_it_is_in_then():
    def in_language(tgt_lang, members=MEMBERS):
        file = SplitFile(packed(members), "epub", None, tgt_lang=tgt_lang)
        return unpacked(file.rejoin(file.sentences))

    german = in_language("de_DE")
    assert german["OEBPS/book.opf"] == BOOK.replace('lang="en"', 'lang="de-DE"').replace("en-GB", "de-DE")
    assert '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" xml:lang="de-DE">' in german["OEBPS/toc.ncx"]
    assert ' xml:lang="de-DE" ><head>' in german["OEBPS/text/a.xhtml"]
    assert ' lang="de-DE"' in german["OEBPS/text/b b.xhtml"]
    arabic = in_language("ar_AR")
    assert '<spine toc="c" page-progression-direction="rtl">' in arabic["OEBPS/book.opf"]
    assert 'xml:lang="ar-AR" dir="rtl"' in arabic["OEBPS/text/a.xhtml"]
    german = in_language("de_DE", arabic)
    assert 'page-progression-direction="ltr"' in german["OEBPS/book.opf"]


ENCRYPTION = (
    '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" xmlns:e="http://www.w3.org/2001/04/xmlenc#">'
    "<e:EncryptedData>{}<e:CipherData/></e:EncryptedData></encryption>"
)
OF_FONTS, OF_PAGES = (
    ENCRYPTION.format(f'<e:EncryptionMethod Algorithm="{name}"/>')
    for name in ("http://www.idpf.org/2008/embedding", "http://www.w3.org/2001/04/xmlenc#aes128-cbc")
)


def test_fonts_may_be_encrypted():
    assert SplitFile(packed(MEMBERS | {"META-INF/encryption.xml": OF_FONTS}), "epub").sentences


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"META-INF/encryption.xml": OF_PAGES}, r"its pages are encrypted, as with copy protection \(DRM\)"),
        ({"META-INF/encryption.xml": ENCRYPTION.format("")}, "its pages are encrypted"),
        ({"META-INF/container.xml": None}, "it has no 'META-INF/container.xml'"),
        ({"META-INF/container.xml": "<a/>"}, "META-INF/container.xml names no package document"),
        ({"META-INF/container.xml": "<a>"}, "'META-INF/container.xml' of the package: broken XML, line 1"),
        ({"OEBPS/book.opf": "<a/>"}, "its spine names no pages"),
        ({"OEBPS/book.opf": BOOK.replace('id="1"', 'id="3"')}, "its spine names no pages, or some that are not in"),
        ({"OEBPS/text/a.xhtml": None}, "it has no 'OEBPS/text/a.xhtml'"),
        ({"OEBPS/text/a.xhtml": b"\xff\xfea"}, "'OEBPS/text/a.xhtml' of the package: it is UTF-16"),
        ({"OEBPS/toc.ncx": '<!DOCTYPE a [<!ENTITY b "c">]><a/>'}, "'OEBPS/toc.ncx' of the package: its document type"),
    ],
)
def test_broken_books(changes, message):
    with pytest.raises(ValueError, match="not a readable e-book .*" + message):
        SplitFile(packed(MEMBERS | changes), "epub")


PARTS = [
    "<p>", "</p>", "A b. ", "<b>", "</b>", "<br/>", "&amp;", "&nbsp;", "<title>", "c", "\n", "<!-- d -->", "{{ e }}",
]  # fmt: skip


@given(st.dictionaries(st.sampled_from([*MEMBERS]), st.lists(st.sampled_from(PARTS)).map("".join)))
def test_any_book_comes_back_or_is_refused(changes):
    members = MEMBERS | changes
    try:
        file = SplitFile(packed(members), "epub", sentencex_splitter("en"))
    except ValueError:
        return
    assert unpacked(file.rejoin(file.sentences)) == members
    assert file.rejoin([""] * len(file.sentences)) and file.rejoin([f"{one} <x> &" for one in file.sentences])


def test_a_book_in_two_languages():
    file = SplitFile(packed(MEMBERS), "epub", sentencex_splitter("en"), tgt_lang="de", bilingual=True)
    result = unpacked(file.rejoin([sentence.upper() for sentence in file.sentences]))
    assert "<text>One &amp; two / ONE &amp; TWO</text>" in result["OEBPS/toc.ncx"]
    assert "<dc:title>A <!-- x -->book / A BOOK</dc:title>" in result["OEBPS/book.opf"]
    assert "en-GB" in result["OEBPS/book.opf"]
    assert '">One &amp; two / ONE &amp; TWO</a></li>' in result["OEBPS/nav.xhtml"]
    page = result["OEBPS/text/a.xhtml"]
    assert ' lang="de" dir="ltr" style="opacity: 0.7">IT IS <i>THREE</i>. NO.</span></p>' in page
    assert "It is <i>three</i>. No.<img" in page
