"""Placeholders of messages. A program fills them in, so a translation must preserve them."""

import re
from collections import Counter

from ..plain_text import ADDRESS
from ..terminology import PLACEHOLDER


# Characters that may begin or end a placeholder.
MARKS = "%{}$"
# Format directives, also directly before a letter ("%ds"), where other texts may contain a percentage.
DIRECTIVE = re.compile(r"%(?:\([^()]*\)|\d+\$)?[-+# 0-9.*hlLzjt]*[a-zA-Z@%]")
# Placeholders filled by position.
IN_ORDER = re.compile(r"%(?!\d+\$)[-+# 0-9.*hlLzjt]*[a-zA-Z@]|\{(?:[:!].*)?\}")


def placeholders_of(text: str) -> Counter[str]:
    """
    Counts the placeholders of a text.

    >>> placeholders_of("%s of {n} at www.example.org")
    Counter({'%s': 1, '{n}': 1})
    """
    return Counter(_all_of(text, is_format=False))


def has_same_placeholders(source: str, translation: str, is_format: bool = False) -> bool:
    """
    Returns whether a translation has the placeholders of its source, each equally often, without fragments of others.
    Positional placeholders must also have the order of the source.

    Args:
        is_format: whether programs interpret the text as a format even without placeholders.

    >>> has_same_placeholders("%d orders", "%d Bestellungen"), has_same_placeholders("50% off", "50 Prozent weniger")
    (True, True)
    >>> has_same_placeholders("%(n)d orders", "%(n)d %(ners"), has_same_placeholders("{a} or {b}", "{a} oder {a}")
    (False, False)
    >>> has_same_placeholders("%s has %d", "%d hat %s"), has_same_placeholders("%1$s has %2$d", "%2$d hat %1$s")
    (False, True)
    """
    own, theirs = (_all_of(text, is_format) for text in (source, translation))
    marks = {*MARKS} if is_format else {mark for words in own for mark in words} & {*MARKS}
    return (
        Counter(own) == Counter(theirs)
        and [*filter(IN_ORDER.fullmatch, own)] == [*filter(IN_ORDER.fullmatch, theirs)]
        and all(source.count(mark) == translation.count(mark) for mark in marks)
    )


def _all_of(text: str, is_format: bool) -> list[str]:
    """Lists the placeholders of a text in order, after the directives of a format."""
    directives = DIRECTIVE.findall(text) if is_format else []
    return directives + [match[0] for match in PLACEHOLDER.finditer(text) if not ADDRESS.match(match[0])]
