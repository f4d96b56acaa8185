"""
Borders between the runs of a sentence, in its translation.

A translation has its words in another order and number than its sentence, so where a border belongs is a guess. Every
function here shows by an example what it guesses.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise

from ..plain_text import LETTER, UNSPACED
from .occurrences import Occurrences


# A word; a character in scripts that put no spaces between words.
WORD = re.compile(rf"[{UNSPACED}]|{LETTER}+(?:['’-]{LETTER}+)*")
SPACES = re.compile(r"\s*")


def kept_places(pieces: list[str], kept: list[int], translation: str) -> dict[int, int | None]:
    """
    Finds where the words of kept pieces stand in a translation; `None` for words that it lacks.

    Words that sentence and translation have equally often, in kept pieces or not, are taken in their order; others are
    taken nearest to their place in the sentence, each once.

    >>> kept_places(["A list: ", "map", " on ", "list"], [1, 3], "Eine list: map auf list")
    {1: 11, 3: 19}
    """
    sentence = "".join(pieces)
    starts = [0, *accumulate(map(len, pieces))]
    own, theirs = Occurrences(sentence), Occurrences(translation)
    to_come = Counter(pieces[number].strip() for number in kept)
    lowest: Counter[str] = Counter()
    result = {}
    for number in kept:
        words = pieces[number].strip()
        start = starts[number] + len(pieces[number]) - len(pieces[number].lstrip())
        found, in_sentence = theirs.of(words), own.of(words)
        to_come[words] -= 1
        if len(found) == len(in_sentence):
            ordinal = bisect_left(in_sentence, start)
            result[number] = found[ordinal] if ordinal < len(found) else None
            continue
        # Leave as many to the pieces that come as they need.
        highest = max(len(found) - to_come[words], lowest[words] + 1)
        place = nearest(found, start / len(sentence) * len(translation), lowest[words], highest)
        result[number] = place
        if place is not None:
            lowest[words] = bisect_right(found, place)
    return result


def cut_around_kept(text: str, pieces: list[str], kept: Mapping[int, int | None]) -> list[str]:
    """
    Cuts a translation into as many pieces as its sentence has; the pieces of kept runs are left empty.

    Args:
        pieces: the sentence between its borders, kept pieces in the order in which the translation has them.
        kept: numbers of the kept pieces, and where their words stand in the translation, if they do.

    >>> cut_around_kept("Nutze foo() jetzt", ["Use ", "foo()", " now"], {1: 6})
    ['Nutze ', '', ' jetzt']
    >>> cut_around_kept("Jetzt nutzen", ["Use ", "foo()", " now"], {1: None})  # foo() was lost
    ['Jetzt ', '', ' nutzen']
    """
    word_starts = [*(word.start() for word in WORD.finditer(text)), len(text)]
    lengths = [0, *accumulate(map(len, pieces))]
    result = [""] * len(pieces)
    done, first, carried = 0, 0, ""  # place in the translation, first piece without text, text in front of the place
    for index, start in kept.items():
        if start is not None and start >= done:
            left, stop, space = carried + text[done:start], start + len(pieces[index].strip()), ""
        else:
            # Between two words, where it is in the sentence.
            share = (lengths[index] - lengths[first]) / (lengths[-1] - lengths[first])
            proportional = done + share * (len(text) - done)
            stop = nearest(word_starts, proportional, bisect_left(word_starts, done)) or 0
            left, space = carried + text[done:stop], " "
            left += " " if left[-1:].strip() else ""
        done, carried = stop, space
        if first < index:
            result[first:index] = _cut_in_proportion(left, pieces[first:index])
        elif left.strip():
            # Words between two kept runs go to the text behind them.
            carried = f"{left.strip()} "
            done = SPACES.match(text, done).end()  # type: ignore[union-attr]  # it matches nothing, too
        first = index + 1
    rest = carried + text[done:]
    if first < len(pieces):
        result[first:] = _cut_in_proportion(rest, pieces[first:])
    elif rest.strip() and len(kept) < len(pieces):
        last = max(number for number in range(len(pieces)) if number not in kept)
        result[last] = f"{result[last].rstrip()} {rest.strip()}"
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
    if len(texts) == 1:
        return [translation]
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
