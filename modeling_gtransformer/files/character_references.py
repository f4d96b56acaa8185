"""Character references such as `&amp;` and `&#228;`: read as browsers do, and written where they are needed."""

import html
import re
from collections.abc import Callable


# Characters that markup cannot hold.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# No character has such a number, and Python refuses to read one with thousands of digits.
TOO_LARGE = re.compile(r"&#[0-9]{20,};?")


def unescape(text: str) -> str:
    """Returns a text without character references."""
    return html.unescape(TOO_LARGE.sub("\ufffd", text))


def without_control(text: str) -> str:
    r"""
    Returns a text without the characters that markup cannot hold; a space replaces white space among them.

    >>> without_control("a\x0cb\x00c")
    'a bc'
    """
    return CONTROL.sub(lambda control: " " if control[0].isspace() else "", text)


def escape_for(charset: str | None) -> Callable[[str], str]:
    """
    Makes a function that makes words safe in markup. If the file declares a character set other than UTF-8, references
    replace characters outside ASCII.
    """
    is_utf_8 = charset is None or re.fullmatch("utf-?8", charset, re.IGNORECASE)

    def escape(words: str) -> str:
        safe = html.escape(without_control(words), quote=False).replace("\r", "&#13;")
        return safe if is_utf_8 else safe.encode("ascii", "xmlcharrefreplace").decode()

    return escape
