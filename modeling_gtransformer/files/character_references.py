"""Character references such as `&amp;` and `&#228;`."""

import html
import re
from collections.abc import Callable


# Characters that are illegal in markup.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# Beyond Unicode, and too long for Python's integer parser.
TOO_LARGE = re.compile(r"&#[0-9]{20,};?")


def unescape(text: str) -> str:
    """Replaces character references by their characters."""
    return html.unescape(TOO_LARGE.sub("\ufffd", text))


def without_control(text: str) -> str:
    r"""
    Removes characters that are illegal in markup; those that are white space become a space.

    >>> without_control("a\x0cb\x00c")
    'a bc'
    """
    return CONTROL.sub(lambda control: " " if control[0].isspace() else "", text)


def escape_for(charset: str | None) -> Callable[[str], str]:
    """
    Makes a function that escapes text for markup. If the file declares a character set other than UTF-8, references
    replace characters outside ASCII.
    """
    is_utf_8 = charset is None or re.fullmatch("utf-?8", charset, re.IGNORECASE)

    def escape(words: str) -> str:
        safe = html.escape(without_control(words), quote=False).replace("\r", "&#13;")
        return safe if is_utf_8 else safe.encode("ascii", "xmlcharrefreplace").decode()

    return escape
