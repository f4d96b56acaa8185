"""Placeholders of messages, which a program fills in: a translation must have the placeholders of its source."""

import re
from collections import Counter

from ..plain_text import ADDRESS
from ..terminology import PLACEHOLDER


# Characters that a program may take for the beginning or the end of a placeholder.
MARKS = "%{}$"
# Directives of a format, also directly before a letter ("%ds"), where other texts may have a percentage.
DIRECTIVE = re.compile(r"%(?:\([^()]*\)|\d+\$)?[-+# 0-9.*hlLzjt]*[a-zA-Z@%]")
# Placeholders that are filled in the order of the arguments.
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
    Returns whether a translation has the placeholders of its source, each as often, and no remains of any. Those
    without a name or a number are in the same order.

    Args:
        is_format: whether a program reads the text as a format even if it has no placeholders.

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
    """Lists the placeholders of a text in order and, of a format, its directives."""
    directives = DIRECTIVE.findall(text) if is_format else []
    return directives + [match[0] for match in PLACEHOLDER.finditer(text) if not ADDRESS.match(match[0])]
