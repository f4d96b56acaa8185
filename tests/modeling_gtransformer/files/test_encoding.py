"""A file is read as what it is, or refused."""

import pytest

from modeling_gtransformer.files.encoding import decode


def test_utf_8():
    assert decode("\ufeffä猫".encode()) == "\ufeffä猫"


@pytest.mark.parametrize(
    "content, message",
    [
        ("Hello".encode("utf-16"), "it is UTF-16"),
        ("Hello".encode("utf-16-le"), "NUL characters, like UTF-16"),  # without a mark it would be UTF-8
        ("Hello".encode("utf-16-be"), "NUL characters, like UTF-16"),
        ("für".encode("latin-1"), "not UTF-8, invalid start byte at byte 2"),
    ],
)
def test_other_encodings_are_refused(content, message):
    with pytest.raises(ValueError, match=message):
        decode(content)
