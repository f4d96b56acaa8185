"""
Borders between the runs of a sentence, in its translation.

The words of a translation differ from those of its sentence in order and number, so where a border belongs is a guess.
Every function here shows by an example what it guesses.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ..plain_text import LETTER, UNSPACED
from .occurrences import Occurrences


# A word, or a character in scripts without spaces between words.
WORD = re.compile(rf"[{UNSPACED}]|{LETTER}+(?:['’-]{LETTER}+)*")
SPACES = re.compile(r"\s*")
# Penalty of a border for each word between it and its proportional place. A word in the right piece gains up to 1, so
# the penalty decides only where nothing else does, as between two lines.
DRIFT = 0.01

# What distinguishes the format of a piece from that of others, such as the numbers of the tags around it.
Style = tuple[Hashable, ...]


@dataclass(frozen=True)
class Belonging:
    """
    Which pieces of a sentence the words of its translation belong to.

    Attributes:
        styles: styles of the pieces, in order; pieces of one style may take each other's words.
        weights: for every word, how much it belongs to each style.

    >>> Belonging([(), (1,)], [{(): 0.9, (1,): 0.1}, {(1,): 1.0}]).styles
    [(), (1,)]
    """

    styles: Sequence[Style]
    weights: Sequence[Mapping[Style, float]]

    def part(self, words: slice, pieces: slice) -> "Belonging":
        """
        Returns the same for some of the words and pieces.

        >>> Belonging([(), (1,)], [{(): 1.0}, {(1,): 1.0}]).part(slice(1, 2), slice(1, 2))
        Belonging(styles=[(1,)], weights=[{(1,): 1.0}])
        """
        return Belonging(self.styles[pieces], self.weights[words])

    def cuts(self, has_words: Sequence[bool], proportional: Sequence[int]) -> list[int] | None:
        """
        Finds the numbers of words before each border for which most words are where they belong. A piece that has
        words gets at least one, unless another piece has the same style; returns `None` if there are too few.

        >>> bold = Belonging([(), (1,), ()], [{(1,): 1.0}, {(): 1.0}, {(): 1.0}])
        >>> bold.cuts([True, True, True], [1, 2])
        [0, 1]

        Args:
            has_words: which pieces have words in the sentence.
            proportional: numbers of words before each border in proportion to the sentence.
        """
        counts = Counter(self.styles)
        needs = [need and counts[style] == 1 for need, style in zip(has_words, self.styles, strict=True)]
        words = len(self.weights)
        best, choices = [0.0, *[-math.inf] * words], []
        for number, (style, need) in enumerate(zip(self.styles, needs, strict=True)):
            sums = [0.0, *accumulate(word.get(style, 0.0) for word in self.weights)]
            after, chosen, start = [-math.inf] * (words + 1), [0] * (words + 1), 0
            for stop in range(need, words + 1):
                if best[stop - need] - sums[stop - need] > best[start] - sums[start]:
                    start = stop - need
                drift = abs(stop - proportional[number]) * DRIFT if number < len(proportional) else 0
                after[stop], chosen[stop] = best[start] - sums[start] + sums[stop] - drift, start
            best = after
            choices.append(chosen)
        if best[words] == -math.inf:
            return None
        cuts = [words]
        for chosen in reversed(choices):
            cuts.append(chosen[cuts[-1]])
        return cuts[-2:0:-1]


def kept_places(pieces: list[str], kept: list[int], translation: str) -> dict[int, int | None]:
    """
    Finds where the words of kept pieces are in a translation; `None` for words that it lacks.

    Words that sentence and translation have equally often, in kept pieces or not, are taken in order; of others, the
    occurrences nearest to their places in the sentence are taken, each once.

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
        # Leave the later pieces as many as they need.
        highest = max(len(found) - to_come[words], lowest[words] + 1)
        place = nearest(found, start / len(sentence) * len(translation), lowest[words], highest)
        result[number] = place
        if place is not None:
            lowest[words] = bisect_right(found, place)
    return result


def cut_around_kept(
    text: str, pieces: list[str], kept: Mapping[int, int | None], belonging: Belonging | None = None
) -> list[str]:
    """
    Cuts a translation into as many pieces as its sentence has; the pieces of kept runs are left empty.

    Args:
        pieces: the sentence between its borders, kept pieces in the order in which the translation has them.
        kept: numbers of the kept pieces, and where their words are in the translation, if they are.
        belonging: which pieces the words belong to, if this is known; as many words as possible are then put there.

    >>> cut_around_kept("Nutze foo() jetzt", ["Use ", "foo()", " now"], {1: 6})
    ['Nutze ', '', ' jetzt']
    >>> cut_around_kept("Jetzt nutzen", ["Use ", "foo()", " now"], {1: None})  # foo() was lost
    ['Jetzt ', '', ' nutzen']
    >>> belonging = Belonging([(), (1,), ()], [{(1,): 1.0}, {(): 1.0}, {(): 1.0}])
    >>> cut_around_kept("Heute lese ich.", ["I read ", "today", "."], {}, belonging)
    ['', 'Heute', ' lese ich.']
    """
    word_starts = [*(word.start() for word in WORD.finditer(text)), len(text)]
    lengths = [0, *accumulate(map(len, pieces))]
    result = [""] * len(pieces)
    done, first, carried = 0, 0, ""  # place in the translation, first piece without text, text before the place

    def belonging_between(start: int, stop: int, last: int) -> Belonging | None:
        if belonging is None or carried.strip():
            return None
        words = slice(bisect_left(word_starts, start), bisect_left(word_starts, stop))
        return belonging.part(words, slice(first, last))

    for index, start in kept.items():
        if start is not None and start >= done:
            end = start
            left, stop, space = carried + text[done:start], start + len(pieces[index].strip()), ""
        else:
            # It goes between two words, in proportion to its place in the sentence.
            share = (lengths[index] - lengths[first]) / (lengths[-1] - lengths[first])
            proportional = done + share * (len(text) - done)
            stop = nearest(word_starts, proportional, bisect_left(word_starts, done)) or 0
            end = stop
            left, space = carried + text[done:stop], " "
            left += " " if left[-1:].strip() else ""
        own = belonging_between(done, end, index)
        done, carried = stop, space
        if first < index:
            result[first:index] = _cut(left, pieces[first:index], own)
        elif left.strip():
            # Words between two kept runs go to the text after them.
            carried = f"{left.strip()} "
            done = SPACES.match(text, done).end()  # type: ignore[union-attr]  # it matches nothing, too
        first = index + 1
    rest = carried + text[done:]
    if first < len(pieces):
        result[first:] = _cut(rest, pieces[first:], belonging_between(done, len(text), len(pieces)))
    elif rest.strip() and len(kept) < len(pieces):
        last = max(number for number in range(len(pieces)) if number not in kept)
        result[last] = f"{result[last].rstrip()} {rest.strip()}"
    return result


def nearest(places: Sequence[int], place: float, lowest: int = 0, highest: int | None = None) -> int | None:
    """
    Returns the nearest of sorted places, from number `lowest` up to but not including number `highest`, if any.

    >>> nearest([0, 4, 9, 14], 5.1), nearest([0, 4, 9, 14], 5.1, lowest=2), nearest([0, 4], 5.1, lowest=2)
    (4, 9, None)
    """
    highest = len(places) if highest is None else min(highest, len(places))
    after = bisect_left(places, place, lowest, max(highest, lowest))
    around = places[max(after - 1, lowest) : min(after + 1, highest)]
    return min(around, key=lambda other: abs(other - place), default=None)


def _cut(translation: str, texts: list[str], belonging: Belonging | None = None) -> list[str]:
    """
    Cuts a translation between words: according to the pieces of the sentence that they belong to or, if this is not
    known, in proportion to the pieces.

    >>> _cut("Die alte Katze", ["The ", "old", " cat"])
    ['Die ', 'alte', ' Katze']
    >>> _cut("Le chat noir", ["The ", "black", " cat"], Belonging([(), (1,), ()], [{(): 1}, {(): 1}, {(1,): 1}]))
    ['Le chat ', 'noir', '']
    """
    if len(texts) == 1:
        return [translation]
    source = "".join(texts)
    proportional = _proportional_places(source, translation)
    ends = [word.end() for word in WORD.finditer(translation)]
    borders = [0, *accumulate(map(len, texts))]
    source_ends = [word.end() for word in WORD.finditer(source)]
    # Whether any word ends in a piece: one with only the beginning of a word needs no word.
    needs = [bisect_right(source_ends, last) > bisect_right(source_ends, first) for first, last in pairwise(borders)]
    places, later = _BorderPlaces(source, translation), sum(needs)
    wanted = None
    if belonging is not None and len(belonging.weights) == len(ends):
        wanted = belonging.cuts(needs, [bisect_left(ends, proportional(border)) for border in borders[1:-1]])
    if wanted is not None:
        places_of_borders = (places.between(*pair) for pair in zip(borders[1:-1], wanted, strict=True))
        # Between the same two words, a border could otherwise end up before the previous one.
        cuts = [0, *accumulate(places_of_borders, max), len(translation)]
        return [translation[first:last] for first, last in pairwise(cuts)]
    cuts, done = [0], 0
    for border, need in zip(borders[1:-1], needs, strict=False):
        later -= need
        least = min(done + need, len(ends))
        most = max(least, len(ends) - later)
        # After the last word that must be before it, before the end of the first word that must be after it.
        lowest = max(ends[least - 1] if least else 0, cuts[-1])
        highest = ends[most] - 1 if most < len(ends) else len(translation)
        cuts.append(places.nearest(border, proportional(border), lowest, highest))
        done = bisect_right(ends, cuts[-1])
    return [translation[first:last] for first, last in pairwise([*cuts, len(translation)])]


class _BorderPlaces:
    """
    Finds where a border of a sentence may be in its translation: before or after a word, as in the sentence.

    >>> _BorderPlaces("The old cat", "Die alte Katze").behind_spaces
    [0, 4, 9, 14]
    """

    def __init__(self, source: str, translation: str):
        self.source, self.translation, self.occurrences = source, translation, Occurrences(translation)
        self.source_words = [match.span() for match in WORD.finditer(source)]
        self.source_starts, self.source_ends = ({span[side] for span in self.source_words} for side in (0, 1))
        spaces = [match.span() for match in re.finditer(r"\s+", translation)]
        self.words = words = [match.span() for match in WORD.finditer(translation)]
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

    def between(self, border: int, words: int) -> int:
        """
        Returns the place for a border after this many words: directly at a word, if it is so in the sentence.

        >>> places = _BorderPlaces("I can help you", "Ich kann helfen, ja")
        >>> places.between(border=6, words=2), places.between(border=10, words=3)
        (9, 15)
        """
        start = self.words[words - 1][1] if words else 0
        stop = self.words[words][0] if words < len(self.words) else len(self.translation)
        begins, ends = border in self.source_starts, border in self.source_ends
        if begins != ends or border in (0, len(self.source)):
            return stop if begins else start
        return self.nearest(border, (start + stop) / 2, start, stop)

    def _candidates(self, border: int) -> tuple[list[int], int]:
        """
        Lists the places for a border, and an offset to add to them: at spaces if there is a space beside it, at the
        same letter if it splits a word, otherwise at words.

        >>> places = _BorderPlaces("Take H2O now", "Nimm jetzt H2O")
        >>> places._candidates(5), places._candidates(6)  # before H2O, and after its H
        (([0, 5, 11, 14], 0), ([11], 1))
        """
        before, behind = self.source[:border][-1:], self.source[border : border + 1]
        if before.isspace() and self.has_spaces:
            return self.behind_spaces, 0
        if behind.isspace() and self.has_spaces:
            return self.before_spaces, 0
        # The last word that begins before the border or at it.
        number = bisect_right(self.source_words, (border, len(self.source))) - 1
        start, stop = self.source_words[number] if number >= 0 else (0, 0)
        if start < border < stop:
            # Inside a word: at the same letter, if the translation has the word.
            starts = self.occurrences.of(self.source[start:stop])
            return (starts, border - start) if starts else (self.behind_words, 0)
        return (self.before_words, 0) if start == border and stop else (self.behind_words, 0)


def _proportional_places(source: str, translation: str) -> Callable[[int], float]:
    """
    Makes a function from places in a sentence to places in its translation: in proportion between the words that both
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
