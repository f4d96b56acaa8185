"""Character encodings of text files. A translation is written in the encoding of its source."""

import codecs
from contextlib import suppress


# Byte order marks, and encodings that need one, with their concrete encodings. The mark is preserved as a character.
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
MARKED = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}


def find_encoding(content: bytes, name: str = "utf-8") -> str:
    """
    Returns the concrete encoding of a file, for [`decode`] and [`encode`].

    Args:
        name: a Python encoding such as `cp1252` or `utf-16`, or `auto` to detect it.

    Raises:
        ImportError: detection needs charset-normalizer.
        ValueError: the encoding is unknown, or detection failed.

    >>> find_encoding("é".encode("utf-16"), "utf-16"), find_encoding("é".encode(), "auto")
    ('utf-16-le', 'utf-8')
    """
    marked = next((encoding for mark, encoding in MARKS.items() if content.startswith(mark)), None)
    if name.lower() == "auto":
        return marked or _detected(content)
    try:
        encoding = codecs.lookup(name).name
    except LookupError as error:
        raise ValueError(f"unknown encoding {name!r}: use utf-8, cp1252, utf-16 or another Python encoding") from error
    return (marked or MARKED[encoding]) if encoding in MARKED else encoding


def decode(content: bytes, encoding: str = "utf-8") -> str:
    """
    Returns the text of a file.

    Raises:
        ValueError: the file does not have this encoding.
    """
    if encoding == "utf-8" and content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError("it is UTF-16: save it as UTF-8")
    try:
        text = content.decode(encoding)
    except LookupError as error:
        raise ValueError(f"{encoding!r} is not an encoding of text") from error
    except UnicodeDecodeError as error:
        name = encoding.upper()
        raise ValueError(f"not {name}, {error.reason} at byte {error.start + 1}: save it as UTF-8") from error
    if "\0" in text:
        raise ValueError("it has NUL characters, like UTF-16 and binary files: save it as UTF-8")
    return text


def encode(text: str, encoding: str = "utf-8") -> bytes:
    """
    Returns the bytes of a translated file.

    Raises:
        ValueError: the encoding lacks a character of the translation.
    """
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        character = text[error.start]
        raise ValueError(
            f"{encoding.upper()} lacks the character {character!r} of the translation: convert the file to UTF-8 first"
        ) from error


def _detected(content: bytes) -> str:
    with suppress(UnicodeDecodeError):
        content.decode("utf-8")
        return "utf-8"
    try:
        from charset_normalizer import from_bytes
    except ImportError as error:
        raise ImportError("Detecting an encoding needs charset-normalizer: pip install charset-normalizer") from error
    best = from_bytes(content).best()
    if best is None:
        raise ValueError("cannot detect its encoding: pass the encoding by name")
    return codecs.lookup(best.encoding).name
