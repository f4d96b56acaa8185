"""Paragraphs as runs of different formats: splits them into sentences, and distributes translations over the runs."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from ..plain_text import Splitter, split_text
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
        self._text = "".join(run.text for run in block)
        self._bounds = [0, *accumulate(len(run.text) for run in block)]
        has_words = any(letter.isalpha() for run in block if run.markup is None for letter in run.text)
        self._spans = self._sentence_spans(splitter) if has_words else []
        self.sentences = [self._text[start:stop] for start, stop in self._spans]
        pieces = [self._pieces(*span) for span in self._spans]
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
        pieces: list[dict[int, str]] = []
        done = 0
        alignments = alignments or [None] * len(translations)
        for span, before, after, alignment in zip(self._spans, self.sentences, translations, alignments, strict=True):
            pieces.append(self._pieces(done, span[0]))
            is_same = after == before
            pieces.append(self._pieces(*span) if is_same else self._translated(span, after, alignment, markup))
            done = span[1]
        pieces.append(self._pieces(done, len(self._text)))
        texts: list[list[str]] = [[] for _ in self.block]
        for index, piece in (item for own in pieces for item in own.items()):
            texts[index].append(piece)
        return [
            "".join(own) if run.markup is None else around
            for run, own, around in zip(self.block, texts, markup, strict=True)
        ]

    def _sentence_spans(self, splitter: Splitter | None) -> list[tuple[int, int]]:
        """Returns the places of the sentences. Sentences whose separator is inside a protected run are joined."""
        runs = zip(self.block, pairwise(self._bounds), strict=True)
        protected = [span for run, span in runs if run.markup is not None and run.text]
        split = split_text(self._text, splitter)
        spans: list[tuple[int, int]] = []
        place = 0
        for separator, sentence in zip(split.separators, split.sentences, strict=False):
            start = place + len(separator)
            place = start + len(sentence)
            before = bisect_left(protected, (start,)) - 1  # the last protected run that begins before the sentence
            if spans and before >= 0 and spans[-1][1] < protected[before][1]:
                start, _ = spans.pop()
            spans.append((start, place))
        return spans

    def _pieces(self, start: int, stop: int, with_neighbours: bool = False) -> dict[int, str]:
        """
        Returns the pieces of a part of the block by the numbers of their runs. With neighbours, translated runs that
        touch it have empty pieces: words may move there, before or after the markup at its edge.
        """
        bounds = self._bounds
        touching = range(max(bisect_left(bounds, start) - 1, 0), min(bisect_right(bounds, stop), len(self.block)))
        pieces = {index: self._text[max(bounds[index], start) : min(bounds[index + 1], stop)] for index in touching}
        return {
            index: piece
            for index, piece in pieces.items()
            if piece or (with_neighbours and self.block[index].markup is None)
        }

    def _translated(
        self, span: tuple[int, int], translation: str, alignment: Alignment | None, markup: list[str]
    ) -> dict[int, str]:
        """
        Cuts the translation of a sentence into pieces. Protected runs take the order of their words in the
        translation, unless any has empty markup.
        """
        pieces = self._pieces(*span, with_neighbours=alignment is not None)
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
