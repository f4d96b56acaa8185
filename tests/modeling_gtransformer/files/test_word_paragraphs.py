"""Elements of a Word document by their names, in both forms of the format."""

import pytest

from modeling_gtransformer.files.word_paragraphs import blocks_of, name_of, tags


etree = pytest.importorskip("lxml.etree")
FORMS = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)


@pytest.mark.parametrize("space", FORMS)
def test_blocks_of_a_paragraph(space):
    inner = "<w:txbxContent><w:p><w:r><w:t>inside</w:t></w:r></w:p></w:txbxContent>"
    paragraph = etree.fromstring(
        f'<w:p xmlns:w="{space}" xmlns:x="y"><!-- a --><x:t>no</x:t><w:r><w:br/><w:t>one</w:t>{inner}</w:r>'
        "<w:del><w:r><w:t>gone</w:t></w:r></w:del><w:r><w:t> two</w:t><w:tab/></w:r><w:r><w:t>three</w:t>"
        "<w:ptab/><w:t>four</w:t></w:r></w:p>"
    )
    assert [[element.text for element in block] for block in blocks_of(paragraph)] == [
        ["one", " two"],
        ["three"],
        ["four"],
    ]
    assert name_of(paragraph) == "w:p" and paragraph.tag in tags("w:p") and len(tags("w:p")) == 2
    assert [name_of(child) for child in paragraph][:2] == ["", ""]
