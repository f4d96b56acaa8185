"""Files in, the same files out, whatever the format; what is broken is named."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_gtransformer.files.formats import FILE_FORMATS, SplitFile, format_of
from modeling_gtransformer.plain_text import sentencex_splitter


MARKUP = [
    "word ", "A. ", "**", "*", "`", "[x](y)", "\n", "\n\n", "> ", "- ", "    ", "# ", "|", "|-|\n", "<b>", "</b>",
    "<p>", "<code>", "</code>", "<br/>", "<!--", "-->", "&amp;", "&", "\\*", "\r\n", "猫。", "---\n", "```\n",
    "![i](j)", "<pre>", '<p translate="no">', "[^1]", "[^1]: ", "<", "$x$", "~~", "\t", "\u00a0", "😀", "\ufeff",
]  # fmt: skip


@pytest.mark.parametrize("format", ["wrapped", "markdown", "html"])
@given(text=st.lists(st.sampled_from(MARKUP)).map("".join) | st.text())
def test_any_file_comes_back(format, text):
    try:
        file = SplitFile(text, format, sentencex_splitter("en"))
    except ValueError as error:
        assert format == "html" and "<![" in text and "no HTML" in str(error)
        return
    assert file.rejoin(file.sentences) == text
    with pytest.raises(ValueError, match="sentences in the place of"):
        file.rejoin([*file.sentences, "one more"])


@pytest.mark.parametrize(
    "format, content, message", [("docx", "text", "takes bytes"), ("html", b"bytes", "takes a string")]
)
def test_text_and_bytes_are_not_mistaken(format, content, message):
    with pytest.raises(ValueError, match=message):
        SplitFile(content, format)


@pytest.mark.parametrize("format, package", [("markdown", "tree_sitter_markdown"), ("po", "polib"), ("docx", "lxml")])
def test_without_the_package_of_a_format(format, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match="pip install"):
        SplitFile(b"" if FILE_FORMATS[format].binary else "", format)


def test_formats_by_their_endings():
    assert [format_of(name) for name in ("a.txt", "b.SRT", "c.d.md")] == ["text", "subtitles", "markdown"]
    with pytest.raises(ValueError, match=r"ending '\.pdf'.*--format"):
        format_of("a.pdf")
