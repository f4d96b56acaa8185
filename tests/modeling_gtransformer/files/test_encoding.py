"""A file is read and written in one encoding, or refused."""

import sys

import pytest

from modeling_gtransformer.files import SplitFile
from modeling_gtransformer.files.encoding import decode, encode, find_encoding


@pytest.mark.parametrize(
    "name, encoding, text",
    [
        ("utf-8", "utf-8", "\ufeffä猫"),
        ("UTF8", "utf-8", "ä猫"),
        ("utf-8-sig", "utf-8", "\ufeffä"),
        ("cp1252", "cp1252", "„für“ €"),
        ("windows-1251", "cp1251", "Привет"),
        ("utf-16", "utf-16-le", "\ufeffä猫"),
        ("utf-16", "utf-16-be", "\ufeffä猫"),
        ("utf-16-le", "utf-16-le", "ä"),
        ("auto", "utf-16-be", "\ufeffä"),
        ("auto", "utf-8", "ä猫"),
        ("auto", "cp1251", "Привет, как дела? Это простой текст на русском языке."),
    ],
)
def test_a_file_comes_back_in_its_encoding(name, encoding, text):
    content = text.encode(encoding)
    assert find_encoding(content, name) == encoding and decode(content, encoding) == text
    cues = f"1\r\n00:00:01,000 --> 00:00:02,000\r\n{text.lstrip(chr(0xFEFF))}\r\n"
    content = (text[:1].strip("ä„ПÄ") + cues).encode(encoding)
    file = SplitFile(decode(content, encoding), "subtitles")
    assert encode(file.rejoin(file.sentences), encoding) == content


@pytest.mark.parametrize(
    "content, encoding, message",
    [
        ("Hello".encode("utf-16"), "utf-8", "it is UTF-16"),
        ("Hello".encode("utf-16-le"), "utf-8", "NUL characters, like UTF-16"),  # without a mark it would be UTF-8
        ("für".encode("latin-1"), "utf-8", "not UTF-8, invalid start byte at byte 2: save it as UTF-8"),
        (b"\x81", "cp1252", "not CP1252"),
        (b"a", "hex", "'hex' is not an encoding of text"),
    ],
)
def test_what_does_not_have_the_encoding_is_refused(content, encoding, message):
    with pytest.raises(ValueError, match=message):
        decode(content, encoding)


def test_refusals(monkeypatch):
    with pytest.raises(
        ValueError, match="CP1252 lacks the character '猫' of the translation: convert the file to UTF-8"
    ):
        encode("ä猫", "cp1252")
    with pytest.raises(ValueError, match="unknown encoding 'latin-99'"):
        find_encoding(b"", "latin-99")
    with pytest.raises(ValueError, match="cannot detect its encoding"):
        find_encoding(bytes(range(128, 256)) + b"\0\xff" * 40, "auto")
    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    with pytest.raises(ImportError, match="pip install charset-normalizer"):
        find_encoding(b"\xe4", "auto")
