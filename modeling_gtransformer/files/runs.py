"""
Paragraphs as runs of unlike format, and the borders between these runs in a translation.

A translation has its words in another order and number than its sentence, so where a border belongs is a guess. Every
function here shows by an example what it guesses.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ..plain_text import UNSPACED, SplitText, whole_words


# A word; a character in scripts that put no spaces between words.
WORD = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])\w)+(?:['’-](?:(?![{UNSPACED}])\w)+)*")


@dataclass(frozen=True)
class Run:
    """
    A piece of a paragraph, such as the text between two tags, a line, or a part of a subtitle.

    A run with `markup` is kept: the model reads its text, but the file gets the markup, whatever the translation says.

    >>> Run("Use "), Run("foo()", "`foo()`")
    (Run(text='Use ', markup=None), Run(text='foo()', markup='`foo()`'))

    Args:
        text: what the model reads.
        markup: what stands for a kept run in the file; `None` for a run that is translated.
    """

    text: str
    markup: str | None = None


Block = list[Run]


def has_words(block: Block) -> bool:
    """
    Tells whether a block has a word to translate.

    >>> has_words([Run("the "), Run("cat")]), has_words([Run("foo()", "`foo()`"), Run(" -- ")])
    (True, False)
    """
    return any(WORD.search(run.text) for run in block if run.markup is None)


def text_of(block: Block) -> str:
    """
    Returns what the model reads of a block.

    >>> text_of([Run("Use "), Run("foo()", "`foo()`"), Run(" now.")])
    'Use foo() now.'
    """
    return "".join(run.text for run in block)


def join_across_kept_runs(block: Block, split: SplitText) -> SplitText:
    """
    Joins sentences wherever the gap between them lies inside a kept run, which would otherwise be torn.

    >>> block = [Run("Read "), Run("A. B", "`A. B`"), Run(" now. Go.")]
    >>> join_across_kept_runs(block, SplitText(["Read A.", "B now.", "Go."], ["", " ", " ", ""]))
    SplitText(sentences=['Read A. B now.', 'Go.'], gaps=['', ' ', ''])
    """
    spans = _kept_spans(block)
    sentences: list[str] = []
    gaps, place = [split.gaps[0]], len(split.gaps[0])
    for sentence, gap in zip(split.sentences, split.gaps[1:], strict=True):
        if sentences and any(start < place and place - len(gaps[-1]) < stop for start, stop in spans):
            sentences[-1] += gaps.pop() + sentence
        else:
            sentences.append(sentence)
        gaps.append(gap)
        place += len(sentence) + len(gap)
    return SplitText(sentences, gaps)


def kept_words(block: Block, split: SplitText) -> Iterator[list[str]]:
    """
    Yields, for every sentence of a block, the texts of the kept runs in it.

    >>> block = [Run("See "), Run("a.md", "`a.md`"), Run(". Go.")]
    >>> list(kept_words(block, SplitText(["See a.md.", "Go."], ["", " ", ""])))
    [['a.md'], []]
    """
    spans = _kept_spans(block)
    text, place = text_of(block), 0
    for gap, sentence in zip(split.gaps, split.sentences, strict=False):
        place += len(gap)
        stop = place + len(sentence)
        yield [text[a:b].strip() for a, b in spans if place <= a and b <= stop and text[a:b].strip()]
        place = stop


def _kept_spans(block: Block) -> list[tuple[int, int]]:
    """
    Returns where the kept runs of a block begin and end in its text.

    >>> _kept_spans([Run("See "), Run("a.md", "`a.md`"), Run(".")])
    [(4, 8)]
    """
    borders = pairwise([0, *accumulate(len(run.text) for run in block)])
    return [span for span, run in zip(borders, block, strict=True) if run.markup is not None and run.text]


def translated_runs(block: Block, split: SplitText, translations: Sequence[str]) -> list[str]:
    """
    Distributes the translations of a block's sentences over its runs.

    A border between two sentences stays between them. A border inside a sentence comes to a place between two words of
    the translation: in proportion to its length, measured from the nearest words that both have (numbers, names, kept
    runs) on either side. Every run in which a word ends gets at least one, as long as there are enough. Kept runs
    give their markup, in the order in which the translation has their words, and these words are taken out of the text
    around.

    >>> block = [Run("The "), Run("old"), Run(" cat uses "), Run("foo()", "`foo()`"), Run(".")]
    >>> translated_runs(block, SplitText([text_of(block)], ["", ""]), ["Die alte Katze nutzt foo()."])
    ['Die ', 'alte', ' Katze nutzt ', '`foo()`', '.']

    Args:
        split: the text of the block, taken apart.
        translations: translations of its sentences, as many.

    Returns:
        As many strings as the block has runs.
    """
    borders = [0, *accumulate(len(run.text) for run in block)]
    runs = [run.markup or "" for run in block]
    start = 0
    for gap, sentence, translation in zip(split.gaps, [*split.sentences, ""], [*translations, ""], strict=True):
        for index, piece in enumerate(_pieces(gap, start, borders)):
            if block[index].markup is None:
                runs[index] += piece
        start += len(gap)
        pieces = {index: piece for index, piece in enumerate(_pieces(sentence, start, borders)) if piece}
        if translation != sentence:  # what needed no translation stays as it is cut
            kept = [index for index in pieces if block[index].markup is not None]
            in_order = _in_order_of_words(kept, [block[index].text for index in kept], translation)
            for index, other in zip(kept, in_order, strict=True):
                runs[index], pieces[index] = block[other].markup or "", block[other].text
            cut = _cut_around_kept(translation, [*pieces.values()], [index in kept for index in pieces])
            pieces = dict(zip(pieces, cut, strict=True))
        for index, piece in pieces.items():
            if block[index].markup is None:
                runs[index] += piece
        start += len(sentence)
    return runs


def _pieces(text: str, start: int, borders: list[int]) -> Iterator[str]:
    """
    Yields the piece of a text between every two borders; the text begins at `start`, the borders count from 0.

    >>> list(_pieces("old cat", start=4, borders=[0, 4, 8, 11]))
    ['', 'old ', 'cat']
    """
    for first, last in pairwise(borders):
        yield text[max(first - start, 0) : max(last - start, 0)]


def _in_order_of_words(items: list[int], words: list[str], text: str) -> list[int]:
    """
    Sorts items by where their words stand in a text; an item whose words are missing goes with the one before it.

    >>> _in_order_of_words([1, 3, 5], ["foo", "missing", "bar"], "bar, then foo")
    [5, 1, 3]
    """
    places: list[int] = []
    for number, own in enumerate(words):
        taken = sum(other == own for other in words[:number])
        found = _occurrences(own, text)
        places.append(found[taken][0] if taken < len(found) else max(places, default=-1))
    return [item for _, item in sorted(zip(places, items, strict=True), key=lambda pair: pair[0])]


def _occurrences(words: str, text: str) -> list[tuple[int, int]]:
    """
    Finds words in a text, but not as parts of longer ones; upper and lower case differ only if that finds something.

    >>> _occurrences("in", "in Berlin, in"), _occurrences("API", "the api")
    ([(0, 2), (11, 13)], [(4, 7)])
    """
    pattern = whole_words(words)
    for flags in (0, re.IGNORECASE):
        if found := [match.span() for match in re.finditer(pattern, text, flags) if words]:
            return found
    return []


def _cut_around_kept(translation: str, pieces: list[str], kept: list[bool]) -> list[str]:
    """
    Cuts a translation into as many pieces as its sentence has; the pieces of kept runs are left empty.

    >>> _cut_around_kept("Nutze foo() jetzt", ["Use ", "foo()", " now"], [False, True, False])
    ['Nutze ', '', ' jetzt']
    >>> _cut_around_kept("Jetzt nutzen", ["Use ", "foo()", " now"], [False, True, False])  # foo() was lost
    ['Jetzt ', '', ' nutzen']
    """
    if True not in kept:
        return _cut_in_proportion(translation, pieces) if pieces else []
    index = kept.index(True)
    if len(pieces) == 1:
        return [""]
    words = pieces[index].strip()
    proportional = len("".join(pieces[:index])) / len("".join(pieces)) * len(translation)
    if found := _occurrences(words, translation):
        # Leave as many to the pieces that come as they need.
        found = found[: len(found) - sum(piece.strip() == words for piece in pieces[index + 1 :])] or found
        start, stop = min(found, key=lambda span: abs(span[0] - proportional))
    else:
        # Between two words, where it is in the sentence.
        starts = [word.start() for word in WORD.finditer(translation)] + [len(translation)]
        start = min(starts, key=lambda start: abs(start - proportional))
        space = " " if start and not translation[start - 1].isspace() else ""
        translation = f"{translation[:start]}{space} {translation[start:]}"
        start = stop = start + len(space)
    left, right = translation[:start], translation[stop:]
    # Words on a side without a run go to the other one.
    if index == 0:
        left, right = "", f"{left.strip()} {right.strip()}" if left.strip() else right
    elif index == len(pieces) - 1:
        left, right = f"{left.strip()} {right.strip()}" if right.strip() else left, ""
    before = _cut_around_kept(left, pieces[:index], kept[:index])
    behind = _cut_around_kept(right, pieces[index + 1 :], kept[index + 1 :])
    return [*before, "", *behind]


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
        self.source, self.translation = source, translation
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
        candidates = self._candidates(border)
        inside = candidates[bisect_left(candidates, lowest) : bisect_right(candidates, highest)]
        after = bisect_left(inside, place)
        return min(inside[max(after - 1, 0) : after + 1], key=lambda other: abs(other - place), default=lowest)

    def _candidates(self, border: int) -> list[int]:
        """
        Lists the places for a border: at spaces if a space stands beside it, at the same letter if it parts a word, or
        else at words.

        >>> places = _BorderPlaces("Take H2O now", "Nimm jetzt H2O")
        >>> places._candidates(5), places._candidates(6)  # before H2O, and behind its H
        ([0, 5, 11, 14], [12])
        """
        before, behind = self.source[border - 1], self.source[border]
        if before.isspace() and self.has_spaces:
            return self.behind_spaces
        if behind.isspace() and self.has_spaces:
            return self.before_spaces
        word = next((word for word in WORD.finditer(self.source, max(border - 40, 0)) if word.end() > border), None)
        if word is not None and word.start() < border:
            # Inside a word: at the same letter, if the translation has it.
            spans = _occurrences(word[0], self.translation)
            return [start + border - word.start() for start, _ in spans] or self.behind_words
        return self.before_words if word is not None and word.start() == border else self.behind_words


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
