"""Placeholders of messages, which a program fills in: a translation must have exactly those of its source."""

from collections import Counter

from ..plain_text import ADDRESS
from ..terminology import PLACEHOLDER


# Characters that a program may take for the beginning or the end of a placeholder.
MARKS = "%{}$"


def placeholders_of(text: str) -> Counter[str]:
    """
    Counts the placeholders of a text.

    >>> placeholders_of("%s of {n} at www.example.org")
    Counter({'%s': 1, '{n}': 1})
    """
    return Counter(match[0] for match in PLACEHOLDER.finditer(text) if not ADDRESS.match(match[0]))


def has_same_placeholders(source: str, translation: str) -> bool:
    """
    Returns whether a translation has the placeholders of its source, each as often, and no remains of any.

    >>> has_same_placeholders("%d orders", "%d Bestellungen"), has_same_placeholders("50% off", "50 Prozent weniger")
    (True, True)
    >>> has_same_placeholders("%(n)d orders", "%(n)d %(ners"), has_same_placeholders("{a} or {b}", "{a} oder {a}")
    (False, False)
    """
    own = placeholders_of(source)
    marks = {mark for words in own for mark in words} & {*MARKS}
    is_same = own == placeholders_of(translation)
    return is_same and all(source.count(mark) == translation.count(mark) for mark in marks)
