"""Decodes the bytes of a text file from UTF-8, and refuses everything else."""

import codecs


def decode(content: bytes) -> str:
    """
    Returns the text of a file.

    Raises:
        ValueError: the file is not UTF-8.

    >>> decode("é".encode())
    'é'
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError("it is UTF-16: save it as UTF-8")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8, {error.reason} at byte {error.start + 1}: save it as UTF-8") from error
    if "\0" in text:
        raise ValueError("it has NUL characters, like UTF-16 and binary files: save it as UTF-8")
    return text
