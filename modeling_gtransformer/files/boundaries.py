"""
Places the boundaries between the runs of a sentence in its translation.

A translation has other words in another order, so each place is an estimate.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ..plain_text import WORD
from .occurrences import Occurrences


SPACES = re.compile(r"\s*")
# Penalty of a boundary for each word between it and its proportional place. A word in the right piece gains up to 1,
# so the penalty only breaks ties.
DRIFT = 0.01

# Identifies the format of a piece, for example by the numbers of the tags around it.
Style = tuple[Hashable, ...]


@dataclass(frozen=True)
class SpanAlignment:
    """
    Alignment between the words of a translation and the pieces of its sentence.

    Attributes:
        styles: style of each piece, in order; pieces of one style may exchange words.
        weights: for each word, its weight for each style.
    """

    styles: Sequence[Style]
    weights: Sequence[Mapping[Style, float]]

    def cuts(self, has_words: Sequence[bool], proportional: Sequence[int]) -> list[int] | None:
        """
        Places boundaries by dynamic programming to maximize the weight of words in pieces of their style.

        A piece with words in the sentence gets at least one word, unless another piece has its style.

        >>> bold = SpanAlignment([(), (1,), ()], [{(1,): 1.0}, {(): 1.0}, {(): 1.0}])
        >>> bold.cuts([True, True, True], [1, 2])
        [0, 1]

        Args:
            has_words: whether each piece has words in the sentence.
            proportional: number of words before each boundary, in proportion to the sentence.

        Returns:
            Number of words before each boundary; `None` if the translation has too few words.
        """
        counts = Counter(self.styles)
        words = len(self.weights)
        best, choices = [0.0, *[-math.inf] * words], []
        for number, style in enumerate(self.styles):
            need = has_words[number] and counts[style] == 1
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


def protected_places(pieces: Sequence[str], protected: Sequence[int], translation: str) -> dict[int, int | None]:
    """
    Finds the words of protected pieces in a translation; the place of missing words is `None`.

    Words with equal counts in sentence and translation are matched in order. Otherwise each piece takes the free
    occurrence nearest to its place in the sentence. A piece inside a word of the sentence, such as the code in
    "`Block`s", may match inside a word of the translation.

    >>> protected_places(["A list: ", "map", " on ", "list"], [1, 3], "Eine list: map auf list")
    {1: 11, 3: 19}
    >>> protected_places(["A list of ", "Block", "s"], [1], "Eine Liste von Blocks")
    {1: 15}
    """
    sentence = "".join(pieces)
    starts = [0, *accumulate(map(len, pieces))]
    own, theirs = Occurrences(sentence), Occurrences(translation)
    words_of = {number: pieces[number].strip() for number in protected}
    begins = {number: starts[number] + len(pieces[number]) - len(pieces[number].lstrip()) for number in protected}
    parts = {number for number in protected if nearest(own.of(words_of[number]), begins[number]) != begins[number]}
    for words in {words_of[number] for number in protected if number not in parts}:
        own.claim(words)
        theirs.claim(words)
    to_come = Counter(words_of.values())
    taken: Counter[str] = Counter()
    result: dict[int, int | None] = {}
    for number in protected:
        words, start = words_of[number], begins[number]
        kind = "unclaimed" if number in parts else "whole"
        if number in parts and nearest(own.of(words, kind), start) != start:
            kind = "any"  # a larger protected piece claimed this place
        found, in_sentence = theirs.of(words, kind), own.of(words, kind)
        to_come[words] -= 1
        if len(found) == len(in_sentence):
            ordinal = bisect_left(in_sentence, start)
            result[number] = found[ordinal] if ordinal < len(found) else None
            continue
        # Reserve enough occurrences for later pieces.
        highest = max(len(found) - to_come[words], taken[words] + 1)
        place = nearest(found, start / len(sentence) * len(translation), taken[words], highest)
        result[number] = place
        if place is not None:
            taken[words] = bisect_right(found, place)
    return result


def cut_around_protected(
    text: str, pieces: Sequence[str], protected: Mapping[int, int | None], alignment: SpanAlignment | None = None
) -> list[str]:
    """
    Cuts a translation into as many pieces as its sentence has. Protected pieces are left empty.

    Args:
        pieces: pieces of the sentence, with protected pieces in the order of the translation.
        protected: numbers of the protected pieces, with the place of their words in the translation or `None`.
        alignment: styles of the words, if known; the cut then maximizes the words in pieces of their style.

    >>> cut_around_protected("Jetzt nutzen", ["Use ", "foo()", " now"], {1: None})  # foo() was lost
    ['Jetzt ', '', ' nutzen']
    >>> alignment = SpanAlignment([(), (1,), ()], [{(1,): 1.0}, {(): 1.0}, {(): 1.0}])
    >>> cut_around_protected("Heute lese ich.", ["I read ", "today", "."], {}, alignment)
    ['', 'Heute', ' lese ich.']
    """
    word_starts = [*(word.start() for word in WORD.finditer(text)), len(text)]
    lengths = [0, *accumulate(map(len, pieces))]
    result = [""] * len(pieces)
    done, first, carried = 0, 0, ""  # place in the translation, first piece without text, text before the place

    def fill(left: str, stop: int, last: int) -> None:
        own = None
        if alignment is not None and not carried.strip():
            words = slice(bisect_left(word_starts, done), bisect_left(word_starts, stop))
            own = SpanAlignment(alignment.styles[first:last], alignment.weights[words])
        result[first:last] = _cut(left, pieces[first:last], own)

    for index, start in protected.items():
        if start is not None and start >= done:
            end, stop, space = start, start + len(pieces[index].strip()), ""
            left = carried + text[done:start]
        else:
            # Lost in translation: place it between two words, in proportion to its place in the sentence.
            share = (lengths[index] - lengths[first]) / (lengths[-1] - lengths[first])
            place = done + share * (len(text) - done)
            end = stop = nearest(word_starts, place, bisect_left(word_starts, done)) or 0
            left, space = carried + text[done:stop], " "
            left += " " if left[-1:].strip() else ""
        if first < index:
            fill(left, end, index)
        elif left.strip():
            # Words between two protected runs join the text after them.
            space = f"{left.strip()} "
            stop = SPACES.match(text, stop).end()  # type: ignore[union-attr]  # the pattern matches empty text
        done, first, carried = stop, index + 1, space
    rest = carried + text[done:]
    if first < len(pieces):
        fill(rest, len(text), len(pieces))
    elif rest.strip() and len(protected) < len(pieces):
        last = max(number for number in range(len(pieces)) if number not in protected)
        result[last] = f"{result[last].rstrip()} {rest.strip()}"
    return result


def nearest(places: Sequence[int], place: float, lowest: int = 0, highest: int | None = None) -> int | None:
    """Returns the nearest of the sorted places with numbers from `lowest` to below `highest`; `None` without any."""
    highest = len(places) if highest is None else min(highest, len(places))
    after = bisect_left(places, place, lowest, max(highest, lowest))
    around = places[max(after - 1, lowest) : min(after + 1, highest)]
    return min(around, key=lambda other: abs(other - place), default=None)


def _cut(translation: str, texts: Sequence[str], alignment: SpanAlignment | None = None) -> list[str]:
    """Cuts a translation between words: by alignment if there is one, else in proportion to the sentence."""
    if len(texts) == 1:
        return [translation]
    places = _BoundaryPlaces("".join(texts), translation)
    words, proportional = places.words, _proportional_places(places.source, translation)
    starts, ends = [*(start for start, _ in words), len(translation)], [0, *(end for _, end in words)]
    bounds = [0, *accumulate(map(len, texts))]
    source_ends = [end for _, end in places.source_words]
    # A piece needs a word if a word of the sentence ends in it.
    needs = [bisect_right(source_ends, last) > bisect_right(source_ends, first) for first, last in pairwise(bounds)]
    wanted, later = None, sum(needs)
    if alignment is not None and len(alignment.weights) == len(words):
        wanted = alignment.cuts(needs, [bisect_left(ends, proportional(bound), 1) - 1 for bound in bounds[1:-1]])
    cuts, done = [0], 0
    for number, (bound, need) in enumerate(zip(bounds[1:-1], needs, strict=False)):
        if wanted is not None:
            lowest, highest = ends[wanted[number]], starts[wanted[number]]
            place = (lowest + highest) / 2
        else:
            # After the last word that must precede it, before the end of the first word that must follow it.
            later -= need
            min_words = min(done + need, len(words))
            max_words = max(min_words, len(words) - later)
            lowest, highest = ends[min_words], ends[max_words + 1] - 1 if max_words < len(words) else len(translation)
            place = proportional(bound)
        cuts.append(places.nearest(bound, place, max(lowest, cuts[-1]), highest))
        done = bisect_right(ends, cuts[-1]) - 1
    return [translation[first:last] for first, last in pairwise([*cuts, len(translation)])]


class _BoundaryPlaces:
    """Lists the places in a translation that suit a boundary of its sentence."""

    def __init__(self, source: str, translation: str):
        self.source, self.occurrences = source, Occurrences(translation)
        self.source_words = [word.span() for word in WORD.finditer(source)]
        self.words = [word.span() for word in WORD.finditer(translation)]
        spaces = [space.span() for space in re.finditer(r"\s+", translation)]
        edges = (0, len(translation))
        self.before_words, self.behind_words, self.before_spaces, self.behind_spaces = (
            sorted({*edges, *(span[side] for span in spans)}) for spans in (self.words, spaces) for side in (0, 1)
        )
        self.has_spaces = bool(spaces)

    def nearest(self, bound: int, place: float, lowest: int, highest: int) -> int:
        """Returns the suitable place from `lowest` to `highest` that is nearest to `place`; `lowest` without any."""
        places, offset = self._candidates(bound)
        first, last = bisect_left(places, lowest - offset), bisect_right(places, highest - offset)
        found = nearest(places, place - offset, first, last)
        return lowest if found is None else found + offset

    def _candidates(self, bound: int) -> tuple[list[int], int]:
        """
        Lists the places for a boundary, and an offset to add to them. A boundary inside a word goes inside an equal
        word, one at the end of a word after a word, one beside a space beside a space, any other between equal marks.

        >>> places = _BoundaryPlaces("Take H2O now", "Nimm jetzt H2O")
        >>> places._candidates(5), places._candidates(6)  # before H2O, and after its H
        (([0, 5, 11, 14], 0), ([11], 1))
        """
        # The last word that begins at or before the boundary.
        number = bisect_right(self.source_words, (bound, len(self.source))) - 1
        start, stop = self.source_words[number] if number >= 0 else (bound, bound)
        if start < bound < stop:
            starts = self.occurrences.of(self.source[start:stop])
            return (starts, bound - start) if starts else (self.behind_words, 0)
        if start < bound == stop:
            return self.behind_words, 0
        if self.has_spaces and self.source[:bound][-1:].isspace():
            return self.behind_spaces, 0
        if self.has_spaces and self.source[bound : bound + 1].isspace():
            return self.before_spaces, 0
        if start == bound < stop:
            return self.before_words, 0
        # Between two marks such as `-` and `(`.
        marks = self.occurrences.of(self.source[max(bound - 1, 0) : bound + 1], "any")
        return (marks, 1) if marks else (self.behind_words, 0)


def _proportional_places(source: str, translation: str) -> Callable[[int], float]:
    """
    Makes a function that maps places of a sentence to its translation. Words that both have exactly once, such as
    names and numbers, are fixed points; places between them are interpolated.

    >>> to_translation = _proportional_places("Pay Anna now", "Jetzt sofort Anna bezahlen")
    >>> [to_translation(place) for place in (0, 2, 4, 8, 12)]
    [0.0, 6.5, 13.0, 17.0, 26.0]
    """
    own, theirs = _unique_words(source), _unique_words(translation)
    fixed = [(0, 0)]
    for word, place in own.items():
        if theirs.get(word, -1) > fixed[-1][1]:
            fixed += [(place, theirs[word]), (place + len(word), theirs[word] + len(word))]
    fixed.append((len(source), len(translation)))
    starts = [start for start, _ in fixed]

    def to_translation(bound: int) -> float:
        after = min(max(bisect_left(starts, bound), 1), len(fixed) - 1)
        (a, x), (b, y) = fixed[after - 1], fixed[after]
        return x if a == b else x + (bound - a) / (b - a) * (y - x)

    return to_translation


def _unique_words(text: str) -> dict[str, int]:
    """Returns the places of the words that occur once."""
    words = [*WORD.finditer(text)]
    counts = Counter(word[0] for word in words)
    return {word[0]: word.start() for word in words if counts[word[0]] == 1}
