"""
Borders between the runs of a sentence, in its translation.

A translation has its words in another order and number than its sentence, so where a border belongs is a guess. Every
function here shows by an example what it guesses.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from ..plain_text import LETTER, UNSPACED
from .occurrences import Occurrences


# A word; a character in scripts that put no spaces between words.
WORD = re.compile(rf"[{UNSPACED}]|{LETTER}+(?:['’-]{LETTER}+)*")


def cut_around_kept(occurrences: Occurrences, pieces: list[str], kept: list[bool]) -> list[str]:
    """
    Cuts a translation into as many pieces as its sentence has; the pieces of kept runs are left empty.

    Args:
        occurrences: the translation.
        pieces: the sentence between its borders; kept ones in the order in which the translation has them.

    >>> cut_around_kept(Occurrences("Nutze foo() jetzt"), ["Use ", "foo()", " now"], [False, True, False])
    ['Nutze ', '', ' jetzt']
    >>> cut_around_kept(Occurrences("Jetzt nutzen"), ["Use ", "foo()", " now"], [False, True, False])  # foo() was lost
    ['Jetzt ', '', ' nutzen']
    """
    text = occurrences.text
    word_starts = [*(word.start() for word in WORD.finditer(text)), len(text)]
    lengths = [0, *accumulate(map(len, pieces))]
    words = [piece.strip() for piece in pieces]
    to_come = Counter(own for own, is_kept in zip(words, kept, strict=True) if is_kept)
    result = [""] * len(pieces)
    done, first, carried = 0, 0, ""  # place in the translation, first piece without text, text in front of the place
    for index in [number for number, is_kept in enumerate(kept) if is_kept]:
        to_come[words[index]] -= 1
        rest = len(text) - done
        proportional = done + (lengths[index] - lengths[first]) / (lengths[-1] - lengths[first]) * rest
        found = occurrences.of(words[index])
        # Leave as many to the pieces that come as they need.
        lowest = bisect_left(found, done)
        highest = max(len(found) - to_come[words[index]], lowest + 1)
        start = nearest(found, proportional, lowest, highest)
        if start is not None:
            left, stop, space = text[done:start], start + len(words[index]), ""
        else:
            # Between two words, where it is in the sentence.
            start = stop = nearest(word_starts, proportional, bisect_left(word_starts, done)) or 0
            left, space = text[done:start], " "
            if (carried + left)[-1:].strip():
                left += " "
        left = carried + left
        done, carried = stop, space
        if first < index:
            result[first:index] = _cut_in_proportion(left, pieces[first:index])
        elif left.strip():
            # Words between two kept runs go to the text behind them.
            carried = f"{left.strip()} "
            done += len(text) - done - len(text[done:].lstrip())
        first = index + 1
    rest_of_text = carried + text[done:]
    if first < len(pieces):
        result[first:] = _cut_in_proportion(rest_of_text, pieces[first:])
    elif rest_of_text.strip() and False in kept:
        last = len(kept) - 1 - kept[::-1].index(False)
        result[last] = f"{result[last].rstrip()} {rest_of_text.strip()}"
    return result


def nearest(places: Sequence[int], place: float, lowest: int = 0, highest: int | None = None) -> int | None:
    """
    Returns the nearest of sorted places from number `lowest` to before number `highest`, if there is one.

    >>> nearest([0, 4, 9, 14], 5.1), nearest([0, 4, 9, 14], 5.1, lowest=2), nearest([0, 4], 5.1, lowest=2)
    (4, 9, None)
    """
    highest = len(places) if highest is None else min(highest, len(places))
    after = bisect_left(places, place, lowest, max(highest, lowest))
    around = places[max(after - 1, lowest) : min(after + 1, highest)]
    return min(around, key=lambda other: abs(other - place), default=None)


def _cut_in_proportion(translation: str, texts: list[str]) -> list[str]:
    """
    Cuts a translation between words, in proportion to the pieces of its sentence.

    >>> _cut_in_proportion("Die alte Katze", ["The ", "old", " cat"])
    ['Die ', 'alte', ' Katze']
    """
    source = "".join(texts)
    proportional = _proportional_places(source, translation)
    ends = [word.end() for word in WORD.finditer(translation)]
    borders = [0, *accumulate(map(len, texts))]
    source_ends = [word.end() for word in WORD.finditer(source)]
    # How many words end in each piece: one that holds the beginning of a word only needs none.
    needs = [bisect_right(source_ends, last) > bisect_right(source_ends, first) for first, last in pairwise(borders)]
    places, later = _BorderPlaces(source, translation), sum(needs)
    cuts, done = [0], 0
    for border, need in zip(borders[1:-1], needs, strict=False):
        later -= need
        least = min(done + need, len(ends))
        most = max(least, len(ends) - later)
        # Behind the last word that must be before it, before the end of the first word that must be behind it.
        lowest = max(ends[least - 1] if least else 0, cuts[-1])
        highest = ends[most] - 1 if most < len(ends) else len(translation)
        cuts.append(places.nearest(border, proportional(border), lowest, highest))
        done = bisect_right(ends, cuts[-1])
    return [translation[first:last] for first, last in pairwise([*cuts, len(translation)])]


class _BorderPlaces:
    """
    Finds where a border of a sentence may stand in its translation: before or behind a word, as in the sentence.

    >>> _BorderPlaces("The old cat", "Die alte Katze").behind_spaces
    [0, 4, 9, 14]
    """

    def __init__(self, source: str, translation: str):
        self.source, self.occurrences = source, Occurrences(translation)
        self.source_words = [match.span() for match in WORD.finditer(source)]
        spaces = [match.span() for match in re.finditer(r"\s+", translation)]
        words = [match.span() for match in WORD.finditer(translation)]
        edges = (0, len(translation))
        self.before_words, self.behind_words = (
            [*sorted({*edges, *(span[side] for span in words)})] for side in (0, 1)
        )
        self.behind_spaces, self.before_spaces = (
            sorted({*edges, *(span[side] for span in spaces)}) for side in (1, 0)
        )
        self.has_spaces = bool(spaces)

    def nearest(self, border: int, place: float, lowest: int, highest: int) -> int:
        """
        Returns the place for a border, from `lowest` to `highest`, that is nearest to `place`.

        `lowest` itself is returned if there is none.

        >>> _BorderPlaces("The old cat", "Die alte Katze").nearest(border=4, place=5.1, lowest=0, highest=14)
        4
        """
        places, offset = self._candidates(border)
        first, last = bisect_left(places, lowest - offset), bisect_right(places, highest - offset)
        found = nearest(places, place - offset, first, last)
        return lowest if found is None else found + offset

    def _candidates(self, border: int) -> tuple[list[int], int]:
        """
        Lists the places for a border, and what is to be added to them: at spaces if a space stands beside it, at the
        same letter if it parts a word, or else at words.

        >>> places = _BorderPlaces("Take H2O now", "Nimm jetzt H2O")
        >>> places._candidates(5), places._candidates(6)  # before H2O, and behind its H
        (([0, 5, 11, 14], 0), ([11], 1))
        """
        before, behind = self.source[border - 1], self.source[border]
        if before.isspace() and self.has_spaces:
            return self.behind_spaces, 0
        if behind.isspace() and self.has_spaces:
            return self.before_spaces, 0
        # The last word that begins before the border or at it.
        number = bisect_right(self.source_words, (border, len(self.source))) - 1
        start, stop = self.source_words[number] if number >= 0 else (0, 0)
        if start < border < stop:
            # Inside a word: at the same letter, if the translation has it.
            starts = self.occurrences.of(self.source[start:stop])
            return (starts, border - start) if starts else (self.behind_words, 0)
        return (self.before_words, 0) if start == border and stop else (self.behind_words, 0)


def _proportional_places(source: str, translation: str) -> Callable[[int], float]:
    """
    Makes a function from places of a sentence to places of its translation: in proportion between the words that both
    have exactly once, such as names and numbers.

    >>> to_translation = _proportional_places("Pay Anna now", "Jetzt sofort Anna bezahlen")
    >>> [to_translation(place) for place in (0, 2, 4, 8, 12)]
    [0.0, 6.5, 13.0, 17.0, 26.0]
    """
    words: list[dict[str, int | None]] = [{}, {}]
    for found, text in zip(words, (source, translation), strict=True):
        for match in WORD.finditer(text):
            found[match[0]] = None if match[0] in found else match.start()
    fixed = [(0, 0)]
    for word, place in words[0].items():
        other = words[1].get(word)
        if place is not None and other is not None and other > fixed[-1][1]:
            fixed += [(place, other), (place + len(word), other + len(word))]
    fixed.append((len(source), len(translation)))
    starts = [start for start, _ in fixed]

    def to_translation(border: int) -> float:
        after = min(max(bisect_left(starts, border), 1), len(fixed) - 1)
        (a, x), (b, y) = fixed[after - 1], fixed[after]
        return x if a == b else x + (border - a) / (b - a) * (y - x)

    return to_translation
