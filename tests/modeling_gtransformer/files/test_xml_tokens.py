"""XML as tokens that are the text again, and nothing that is expanded or fetched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_gtransformer.files.xml_tokens import XmlTree, with_attribute, xml_escape, xml_tokens


XML = """<?xml version="1.0"?>
<!DOCTYPE a PUBLIC "b" "http://c/d.dtd">
<!-- e > f --><x:a xmlns:x="u" x:b='1' c="é>"><d/> t&amp;x&#228; &nbsp;\r
<![CDATA[g<h]]>i<?j k?><l>m</l></x:a>
"""


def test_tokens():
    tokens = xml_tokens(XML)
    assert "".join(token.raw for token in tokens) == XML
    assert [token.kind for token in tokens] == [
        "other", "start", "start", "end", "text", "cdata", "text", "other", "start", "text", "end", "end", "other",
    ]  # fmt: skip
    root, empty = tokens[1:3]
    assert root.name == ("u", "a") and root.get("b", "u") == "1" and root.get("c") == "é>" and root.get("b") == ""
    assert empty.raw == "<d/>" and tokens[3].raw == ""
    assert [token.words for token in tokens[4:7]] == [" t&xä \u00a0\r\n", "g<h", "i"]
    assert XmlTree(tokens).ends == {1: 11, 2: 3, 8: 10}


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "line 1: no element found"),
        ("<a>\n<b></a>", "broken XML, line 2: mismatched tag"),
        ("<a>&b;</a>", "undefined entity"),
        ("<a>\ud800</a>", "broken XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', r"\(DOCTYPE\) has an internal subset"),
        ('<!DOCTYPE a [<!ENTITY % b SYSTEM "file:///etc/passwd"> %b;]><a/>', r"\(DOCTYPE\) has an internal subset"),
    ],
)
def test_what_is_refused(content, message):
    with pytest.raises(ValueError, match=message):
        xml_tokens(content)


PARTS = ["<a>", "</a>", "<b c='d'/>", "text", "&amp;", "<!-- e -->", "<![CDATA[", "]]>", "é\n", "<?f g?>", " ", "&x;"]


@given(st.lists(st.sampled_from(PARTS)).map("".join) | st.text())
def test_any_file_is_its_tokens_or_refused(text):
    content = f"<r>{text}</r>"
    try:
        tokens = xml_tokens(content)
    except ValueError:
        return
    assert "".join(token.raw for token in tokens) == content
    assert len(XmlTree(tokens).ends) == sum(token.kind == "start" for token in tokens)


def test_attributes_are_set_in_a_tag():
    assert with_attribute("<a b='1' cb=\"2\"/>", "cb", 'x"<') == "<a b='1' cb=\"x&quot;&lt;\"/>"
    assert with_attribute('<a x="b=1" >', "b", "2") == '<a x="b=1" b="2" >'


def test_text_means_itself():
    assert xml_escape("<a/>")("1 < 2 & \x01ä\r") == "1 &lt; 2 &amp; ä&#13;"
    assert xml_escape("<?xml version='1.0' encoding='iso-8859-1'?><a/>")("ä猫") == "&#228;&#29483;"
