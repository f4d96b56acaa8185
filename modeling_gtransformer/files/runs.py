"""Paragraphs as runs of different formats: their text and sentences, and translations distributed over their runs."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from ..plain_text import SplitText
from ..sentence import Alignment
from .borders import WORD, Belonging, Style, cut_around_kept, kept_places


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
        style: what distinguishes its format from that of other runs, such as the numbers of the tags around it.
    """

    text: str
    markup: str | None = None
    style: Style = field(default=(), repr=False, compare=False)


Block = list[Run]
# Upper bound on the words times runs of a sentence whose borders are compared; no sentence that a person wrote reaches
# it.
MAX_PLACES = 100_000


def has_words(block: Block) -> bool:
    """
    Tells whether a block has a word to translate; numbers do not count.

    >>> has_words([Run("the "), Run("cat")]), has_words([Run("foo()", "`foo()`"), Run(" -- ")])
    (True, False)
    """
    return any(letter.isalpha() for run in block if run.markup is None for letter in run.text)


def text_of(block: Block) -> str:
    """
    Returns what the model reads of a block.

    >>> text_of([Run("Use "), Run("foo()", "`foo()`"), Run(" now.")])
    'Use foo() now.'
    """
    return "".join(run.text for run in block)


def join_across_kept_runs(block: Block, split: SplitText) -> SplitText:
    """
    Joins sentences where the gap between them is inside a kept run, which would otherwise be torn apart.

    >>> block = [Run("Read "), Run("A. B", "`A. B`"), Run(" now. Go.")]
    >>> join_across_kept_runs(block, SplitText(["Read A.", "B now.", "Go."], ["", " ", " ", ""]))
    SplitText(sentences=['Read A. B now.', 'Go.'], separators=['', ' ', ''])
    """
    spans = _kept_spans(block)
    sentences: list[list[str]] = []
    separators, place = [split.separators[0]], len(split.separators[0])
    for sentence, gap in zip(split.sentences, split.separators[1:], strict=True):
        before = bisect_left(spans, (place,)) - 1  # the last kept run that begins before the sentence
        if sentences and before >= 0 and place - len(separators[-1]) < spans[before][1]:
            sentences[-1] += [separators.pop(), sentence]
        else:
            sentences.append([sentence])
        separators.append(gap)
        place += len(sentence) + len(gap)
    return SplitText(["".join(parts) for parts in sentences], separators)


def kept_words(block: Block, split: SplitText) -> Iterator[list[str]]:
    """
    Yields, for every sentence of a block, the texts of the kept runs in it.

    >>> block = [Run("See "), Run("a.md", "`a.md`"), Run(". Go.")]
    >>> list(kept_words(block, SplitText(["See a.md.", "Go."], ["", " ", ""])))
    [['a.md'], []]
    """
    spans = _kept_spans(block)
    text, place = text_of(block), 0
    for gap, sentence in zip(split.separators, split.sentences, strict=False):
        place += len(gap)
        stop = place + len(sentence)
        inside = spans[bisect_left(spans, (place,)) : bisect_left(spans, (stop,))]
        yield [text[a:b].strip() for a, b in inside if b <= stop and text[a:b].strip()]
        place = stop


def _kept_spans(block: Block) -> list[tuple[int, int]]:
    """
    Returns where the kept runs of a block begin and end in its text.

    >>> _kept_spans([Run("See "), Run("a.md", "`a.md`"), Run(".")])
    [(4, 8)]
    """
    borders = pairwise([0, *accumulate(len(run.text) for run in block)])
    return [span for span, run in zip(borders, block, strict=True) if run.markup is not None and run.text]


def styled_sentences(block: Block, split: SplitText) -> Iterator[bool]:
    """
    Tells, for every sentence of a block, whether it has runs of several styles, between which its words may move.

    >>> block = [Run("A "), Run("b", style=(1,)), Run(". C "), Run("d.")]
    >>> list(styled_sentences(block, SplitText(["A b.", "C d."], ["", " ", ""])))
    [True, False]
    """
    borders, place = [0, *accumulate(len(run.text) for run in block)], 0
    for gap, sentence in zip(split.separators, split.sentences, strict=False):
        place += len(gap)
        runs = (block[index] for index, _ in _pieces(sentence, place, borders))
        yield len({run.style for run in runs if run.markup is None}) > 1
        place += len(sentence)


def translated_runs(
    block: Block,
    split: SplitText,
    translations: Sequence[str],
    alignments: Sequence[Alignment | None] | None = None,
) -> list[str]:
    """
    Distributes the translations of a block's sentences over its runs.

    A border between two sentences stays between them. A border inside a sentence goes between two words of the
    translation: so that as many words as possible are where the words are that they are aligned with; or, without an
    alignment, in proportion to its length, measured from the nearest words that both have (numbers, names, kept runs)
    on either side. Every run in which a word ends gets at least one, as long as there are enough. Kept runs become
    their markup, in the order in which the translation has their words, which are removed from the text around them.

    >>> block = [Run("The "), Run("old"), Run(" cat uses "), Run("foo()", "`foo()`"), Run(".")]
    >>> translated_runs(block, SplitText([text_of(block)], ["", ""]), ["Die alte Katze nutzt foo()."])
    ['Die ', 'alte', ' Katze nutzt ', '`foo()`', '.']

    Args:
        split: the text of the block, taken apart.
        translations: one translation per sentence.
        alignments: one alignment of words per sentence; `None` for those that are not aligned.

    Returns:
        One string per run of the block.
    """
    borders = [0, *accumulate(len(run.text) for run in block)]
    runs = [[run.markup or ""] for run in block]
    start = 0
    aligned = [*(alignments or [None] * len(translations)), None]
    for gap, sentence, translation, alignment in zip(
        split.separators, [*split.sentences, ""], [*translations, ""], aligned, strict=True
    ):
        for index, piece in _pieces(gap, start, borders):
            if block[index].markup is None:
                runs[index].append(piece)
        start += len(gap)
        pieces = dict(_pieces(sentence, start, borders))
        if alignment is not None:
            pieces = _with_neighbours(pieces, block, start, start + len(sentence), borders)
        if translation != sentence:  # what needed no translation keeps its pieces
            own = [block[index] for index in pieces]
            order, cut = _translated_pieces(own, [*pieces.values()], translation, alignment)
            for index, other in zip(pieces, order, strict=True):
                runs[index] = [own[other].markup or ""] if block[index].markup is not None else runs[index]
            pieces = dict(zip(pieces, cut, strict=True))
        for index, piece in pieces.items():
            if block[index].markup is None:
                runs[index].append(piece)
        start += len(sentence)
    return ["".join(parts) for parts in runs]


def _translated_pieces(
    runs: list[Run], pieces: list[str], translation: str, alignment: Alignment | None = None
) -> tuple[list[int], list[str]]:
    """
    Cuts the translation of a sentence into as many pieces as the sentence has. Its kept runs take the order of their
    words in the translation; if any has empty markup, they cannot move.

    >>> runs = [Run("Use "), Run("a", "`a`"), Run(" or "), Run("b", "`b`")]
    >>> _translated_pieces(runs, ["Use ", "a", " or ", "b"], "Nutze b oder a")
    ([0, 3, 2, 1], ['Nutze ', '', ' oder ', ''])
    """
    kept = [number for number, run in enumerate(runs) if run.markup is not None]
    places = kept_places(pieces, kept, translation)
    order = [*range(len(runs))]
    if all(runs[number].markup for number in kept):
        for number, other in zip(kept, _by_place(places), strict=True):
            order[number] = other
    found = {number: places[order[number]] for number in kept}
    belonging = None
    if alignment is not None and len(alignment) * len(runs) <= MAX_PLACES:
        belonging = _belonging(runs, pieces, alignment)
    return order, cut_around_kept(translation, [pieces[number] for number in order], found, belonging)


def _belonging(runs: list[Run], pieces: list[str], alignment: Alignment) -> Belonging:
    """
    Returns where the words of a translation belong: to the styles of the words that they are aligned with.

    >>> runs = [Run("The "), Run("old", style=(1,)), Run(" cat")]
    >>> _belonging(runs, ["The ", "old", " cat"], [[1.0, 0.0, 0.0], [0.0, 0.75, 0.25]]).weights
    [{(): 1.0, (1,): 0.0}, {(): 0.25, (1,): 0.75}]
    """
    ends = [*accumulate(map(len, pieces))]
    styles = [run.style for run in runs]
    of_words = [styles[bisect_left(ends, word.end())] for word in WORD.finditer("".join(pieces))]
    weights: list[dict[Style, float]] = []
    for row in alignment:
        weights.append({})
        for style, weight in zip(of_words, row, strict=True):
            weights[-1][style] = weights[-1].get(style, 0.0) + weight
    return Belonging(styles, weights)


def _by_place(places: Mapping[int, int | None]) -> list[int]:
    """
    Sorts items by their places; an item without a place goes with the one before it.

    >>> _by_place({1: 10, 3: None, 5: 0})
    [5, 1, 3]
    """
    latest, keys = -1, {}
    for item, place in places.items():
        keys[item] = latest = latest if place is None else place
    return sorted(places, key=keys.__getitem__)


def _with_neighbours(
    pieces: dict[int, str], block: Block, start: int, stop: int, borders: list[int]
) -> dict[int, str]:
    """
    Adds the runs that touch a sentence without having any of it, as empty pieces. Words may move there: before markup
    that the sentence begins with, or after markup that it ends with.

    >>> _with_neighbours({1: "B"}, [Run("A. "), Run("B", style=(1,)), Run("")], 3, 4, [0, 3, 4, 4])
    {0: '', 1: 'B', 2: ''}
    """
    first, last = bisect_left(borders, start) - 1, bisect_right(borders, stop)
    touching = range(max(first, 0), min(last, len(block)))
    return {index: pieces.get(index, "") for index in touching if index in pieces or block[index].markup is None}


def _pieces(text: str, start: int, borders: list[int]) -> Iterator[tuple[int, str]]:
    """
    Yields the pieces of a text between two borders, each with the number of the border before it; the text begins at
    `start`, and the borders count from 0.

    >>> list(_pieces("old cat", start=4, borders=[0, 4, 8, 11]))
    [(1, 'old '), (2, 'cat')]
    """
    stop = start + len(text)
    for index in range(bisect_right(borders, start) - 1, bisect_left(borders, stop)):
        piece = text[max(borders[index] - start, 0) : borders[index + 1] - start]
        if piece:
            yield index, piece
