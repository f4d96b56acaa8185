"""Placeholders of messages, which a program fills in: a translation must have exactly those of its source."""

from collections import Counter

from ..terminology import Terminology


# Characters that a program may take for the beginning or the end of a placeholder.
MARKS = "%{}$"


def has_same_placeholders(source: str, translation: str) -> bool:
    """
    Returns whether a translation has the placeholders of its source, each as often, and no remains of any.

    >>> has_same_placeholders("%d orders", "%d Bestellungen"), has_same_placeholders("50% off", "50 Prozent weniger")
    (True, True)
    >>> has_same_placeholders("%(n)d orders", "%(n)d %(ners"), has_same_placeholders("{a} or {b}", "{a} oder {a}")
    (False, False)
    """
    required = Terminology().required
    own, theirs = Counter(required(source)), Counter(required(translation))
    marks = {mark for words in own | theirs for mark in words} & {*MARKS}
    return own == theirs and all(source.count(mark) == translation.count(mark) for mark in marks)
