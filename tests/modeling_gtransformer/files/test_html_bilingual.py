"""HTML in two languages: the page as it was, with a marked translation behind every paragraph."""

import re
from xml.dom import minidom

from hypothesis import given
from hypothesis import strategies as st

from modeling_gtransformer.files.formats import SplitFile
from modeling_gtransformer.plain_text import sentencex_splitter


ADDED = re.compile(r'<br/><span class="translation"[^>]*>(.*?)</span>', re.DOTALL)


def bilingual(content, translate=str.upper, tgt_lang=None):
    """The sentences of a page, and the page in two languages."""
    file = SplitFile(content, "html", sentencex_splitter("en"), tgt_lang=tgt_lang, bilingual=True)
    return file.sentences, file.rejoin([*map(translate, file.sentences)])


PAGE = """<!DOCTYPE html>
<html lang="en"><head><title>A page</title></head><body>
<h1 id="top">One <b id="x" class='y'>two</b></h1><!-- no -->
<p>It <i>is <br/>late</i>. Use <code id=z>f()</code>! Go.</p>
<ul><li>Item <img src="i" alt="a b"><li translate="no">No.</li><li>5</ul>
<p>Old <em translate="no">name</em>.</p>
<nav><ol><li><a href="#top">To <i>top</i></a> <script>x y</script></li></ol></nav><p>End {{ page }}</p></body></html>
"""


def test_translations_stand_behind_their_paragraphs():
    sentences, result = bilingual(PAGE, tgt_lang="ar_AR")
    assert sentences == [
        "A page", "One two", "It is", "late.", "Use f()!", "Go.", "Item", "Old name.", "To top", "End {{ page }}",
    ]  # fmt: skip
    assert ADDED.sub("", result).replace(" / A PAGE", "").replace(" / TO TOP", "") == PAGE
    assert ADDED.findall(result) == [
        "ONE <b class='y'>TWO</b>", "IT IS ", "LATE. USE <code>f()</code>! GO.", "ITEM ",
        'OLD <em translate="no">name</em>.', "END {{ page }}",
    ]  # fmt: skip
    assert "<title>A page / A PAGE</title>" in result and "<i>top / TO TOP</i></a>" in result
    assert result.count('<br/><span class="translation" lang="ar-AR" dir="rtl" style="opacity: 0.7">') == 6
    assert '<html lang="en">' in result and 'class="translation" style' in bilingual(PAGE)[1]


def test_formats_go_with_their_words():
    file = SplitFile("<p>The <b>black</b> cats</p><p>No <br>format</p>", "html", bilingual=True)
    assert file.styled == [True, False, False]
    alignments = [[[1, 0, 0], [0, 0, 1], [0, 1, 0]], None, None]
    result = file.rejoin(["Les chats noirs", "Sans", "forme"], alignments)
    assert ADDED.findall(result)[0] == "Les chats <b>noirs</b>" and "The <b>black</b> cats" in result


def test_a_page_in_xhtml_stays_well_formed():
    page = "<html><body><p>a <b>c<br/>d</b> <i>e</i></p><p><a id='f'/>g &lt; h</p></body></html>"
    minidom.parseString(page)
    result = bilingual(page, lambda sentence: f"{sentence} < &")[1]
    minidom.parseString(result)
    assert result.count("&lt; &amp;") == 3 and result.count("<i>") == 2 and result.count("<b>") == 1


PARTS = [
    "<p>", "</p>", "A b. ", "<b>", "</b>", "<br/>", "&amp;", "<title>", "</title>", "c", "\n", "<nav>", "</nav>",
    "{{ e }}", "<code>", "</code>", "<p translate=no>", "<img alt='f'>", "<script>", "</script>", "<!--", "-->",
]  # fmt: skip


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_nothing_of_any_page_is_lost(page):
    file = SplitFile(page, "html", None, bilingual=True)
    result = iter(file.rejoin(["x"] * len(file.sentences)))
    assert all(letter in result for letter in page)
