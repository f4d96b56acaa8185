"""Paragraphs as runs of different formats: splits them into sentences, and distributes translations over the runs."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from ..plain_text import Splitter, SplitText, split_text
from ..sentence import Alignment
from .boundaries import WORD, SpanAlignment, Style, cut_around_protected, protected_places


@dataclass(frozen=True)
class Run:
    """
    A piece of a paragraph, such as the text between two tags, a line, or a part of a subtitle.

    A run with `markup` is protected: the model reads its text, and the file gets the markup.

    Args:
        text: input of the model.
        markup: characters of a protected run in the file, empty if it cannot move; `None` for a translated run.
        style: identifies its format, for example by the numbers of the tags around it.
    """

    text: str
    markup: str | None = None
    style: Style = field(default=(), repr=False, compare=False)


Block = list[Run]
# Upper bound on words times runs of a sentence with aligned boundaries. Human-written sentences stay below.
MAX_PLACES = 100_000


class SplitBlock:
    """
    A block split into sentences. A block without translatable letters has none. Protected runs are not split.

    >>> block = [Run("Read "), Run("A. B", "`A. B`"), Run(" now. Go.")]
    >>> split = SplitBlock(block, lambda text: ["Read A.", "B now.", "Go."])
    >>> split.sentences, split.protected, split.styled
    (['Read A. B now.', 'Go.'], [['A. B'], []], [False, False])

    Attributes:
        sentences: the sentences.
        protected: for every sentence, the texts of its protected runs.
        styled: for every sentence, whether it has runs of several styles, so that its words may move between them.
    """

    def __init__(self, block: Block, splitter: Splitter | None = None):
        self.block = block
        self._bounds = [0, *accumulate(len(run.text) for run in block)]
        text = "".join(run.text for run in block)
        has_words = any(letter.isalpha() for run in block if run.markup is None for letter in run.text)
        split = self._joined(split_text(text, splitter)) if has_words else SplitText([], [text])
        self.sentences, self._separators = split.sentences, split.separators
        lengths = [len(each) for pair in zip(self._separators, self.sentences, strict=False) for each in pair]
        self._starts = [*accumulate(lengths)][::2]
        pieces = [self._pieces(*place) for place in zip(self.sentences, self._starts, strict=True)]
        self.protected = [
            [piece.strip() for index, piece in own.items() if block[index].markup is not None and piece.strip()]
            for own in pieces
        ]
        self.styled = [len({block[index].style for index in own if block[index].markup is None}) > 1 for own in pieces]

    def fill(self, translations: Sequence[str], alignments: Sequence[Alignment | None] | None = None) -> list[str]:
        """
        Distributes the translations of the sentences over the runs.

        A boundary between two sentences stays between them. Inside a sentence, a boundary goes between two words of
        the translation. With an alignment, its place maximizes the words in the runs of the words they are aligned
        with. Without one, it is proportional between the nearest words common to both: numbers, names and protected
        runs. Every run in which a word ends gets at least one word, as long as there are enough.

        Protected runs become their markup, in the order of their words in the translation. These words are removed
        from the text around them.

        >>> block = [Run("The "), Run("old"), Run(" cat uses "), Run("foo()", "`foo()`"), Run(".")]
        >>> SplitBlock(block).fill(["Die alte Katze nutzt foo()."])
        ['Die ', 'alte', ' Katze nutzt ', '`foo()`', '.']

        Args:
            alignments: an alignment of words for each sentence; `None` if it has none.

        Returns:
            One string per run.
        """
        markup = [run.markup or "" for run in self.block]
        texts: list[list[str]] = [[] for _ in self.block]
        place = 0
        for number, separator in enumerate(self._separators):
            pieces = [self._pieces(separator, place)]
            place += len(separator)
            if number < len(self.sentences):
                sentence, translation = self.sentences[number], translations[number]
                alignment = alignments[number] if alignments else None
                pieces.append(self._pieces(sentence, place))
                if translation != sentence:  # an unchanged sentence keeps its pieces
                    pieces[-1] = self._translated(pieces[-1], number, translation, alignment, markup)
                place += len(sentence)
            for index, piece in (item for own in pieces for item in own.items()):
                texts[index].append(piece)
        return [
            "".join(own) if run.markup is None else around
            for run, own, around in zip(self.block, texts, markup, strict=True)
        ]

    def _joined(self, split: SplitText) -> SplitText:
        """Joins sentences whose separator is inside a protected run."""
        bounds = pairwise(self._bounds)
        spans = [span for run, span in zip(self.block, bounds, strict=True) if run.markup is not None and run.text]
        sentences: list[list[str]] = []
        separators, place = [split.separators[0]], len(split.separators[0])
        for sentence, separator in zip(split.sentences, split.separators[1:], strict=True):
            before = bisect_left(spans, (place,)) - 1  # the last protected run that begins before the sentence
            if sentences and before >= 0 and place - len(separators[-1]) < spans[before][1]:
                sentences[-1] += [separators.pop(), sentence]
            else:
                sentences.append([sentence])
            separators.append(separator)
            place += len(sentence) + len(separator)
        return SplitText(["".join(parts) for parts in sentences], separators)

    def _pieces(self, text: str, start: int) -> dict[int, str]:
        """Returns the pieces of a part of the block by the numbers of their runs."""
        bounds, stop = self._bounds, start + len(text)
        numbers = range(bisect_right(bounds, start) - 1, bisect_left(bounds, stop))
        pieces = {index: text[max(bounds[index] - start, 0) : bounds[index + 1] - start] for index in numbers}
        return {index: piece for index, piece in pieces.items() if piece}

    def _translated(
        self, pieces: dict[int, str], number: int, translation: str, alignment: Alignment | None, markup: list[str]
    ) -> dict[int, str]:
        """
        Cuts the translation of a sentence into pieces. Protected runs take the order of their words in the
        translation, unless any has empty markup.
        """
        if alignment is not None:
            pieces = self._with_neighbours(pieces, self._starts[number], self.sentences[number])
        runs, texts = [self.block[index] for index in pieces], [*pieces.values()]
        protected = [place for place, run in enumerate(runs) if run.markup is not None]
        places = protected_places(texts, protected, translation)
        order = [*range(len(runs))]
        if all(runs[place].markup for place in protected):
            for place, other in zip(protected, _by_place(places), strict=True):
                order[place] = other
        for index, other in zip(pieces, order, strict=True):
            markup[index] = runs[other].markup or ""
        spans = None
        if alignment is not None and len(alignment) * len(runs) <= MAX_PLACES:
            spans = _span_alignment([run.style for run in runs], texts, alignment)
        found = {place: places[order[place]] for place in protected}
        cut = cut_around_protected(translation, [texts[place] for place in order], found, spans)
        return dict(zip(pieces, cut, strict=True))

    def _with_neighbours(self, pieces: dict[int, str], start: int, sentence: str) -> dict[int, str]:
        """
        Adds empty pieces for translated runs that touch a sentence. Words may move there, before or after the markup
        at the edge of the sentence.
        """
        first = bisect_left(self._bounds, start) - 1
        last = bisect_right(self._bounds, start + len(sentence))
        touching = range(max(first, 0), min(last, len(self.block)))
        return {
            index: pieces.get(index, "") for index in touching if index in pieces or self.block[index].markup is None
        }


def _span_alignment(styles: list[Style], texts: list[str], alignment: Alignment) -> SpanAlignment:
    """Sums the alignment weights of each word by the styles of the words it is aligned with."""
    ends = [*accumulate(map(len, texts))]
    of_words = [styles[bisect_left(ends, word.end())] for word in WORD.finditer("".join(texts))]
    weights: list[dict[Style, float]] = []
    for row in alignment:
        weights.append({})
        for style, weight in zip(of_words, row, strict=True):
            weights[-1][style] = weights[-1].get(style, 0.0) + weight
    return SpanAlignment(styles, weights)


def _by_place(places: Mapping[int, int | None]) -> list[int]:
    """
    Sorts items by their places. An item without a place follows its predecessor.

    >>> _by_place({1: 10, 3: None, 5: 0})
    [5, 1, 3]
    """
    latest, keys = -1, {}
    for item, place in places.items():
        keys[item] = latest = latest if place is None else place
    return sorted(places, key=keys.__getitem__)
