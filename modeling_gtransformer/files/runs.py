"""Text in runs: a paragraph in pieces of unlike format, whose borders are found again in its translation."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ..plain_text import UNSPACED, SplitText, whole_words


WORD = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])\w)+(?:['’-](?:(?![{UNSPACED}])\w)+)*")


@dataclass(frozen=True)
class Run:
    """
    A piece of a paragraph: between two tags, a line of it, a part of a subtitle.

    Args:
        text: what the model reads.
        markup: of a run that is not translated, what stands for it in the file.
    """

    text: str
    markup: str | None = None


Block = list[Run]


def has_words(block: Block) -> bool:
    """Whether there is anything to translate."""
    return any(WORD.search(run.text) for run in block if run.markup is None)


def text_of(block: Block) -> str:
    return "".join(run.text for run in block)


def whole_runs(block: Block, split: SplitText) -> SplitText:
    """The sentences of a block, with those as one that a run to keep goes through."""
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
    """Of every sentence the text of its runs to keep."""
    spans = _kept_spans(block)
    text, place = text_of(block), 0
    for gap, sentence in zip(split.gaps, split.sentences, strict=False):
        place += len(gap)
        stop = place + len(sentence)
        yield [text[a:b].strip() for a, b in spans if place <= a and b <= stop and text[a:b].strip()]
        place = stop


def _kept_spans(block: Block) -> list[tuple[int, int]]:
    borders = pairwise([0, *accumulate(len(run.text) for run in block)])
    return [span for span, run in zip(borders, block, strict=True) if run.markup is not None and run.text]


def translated_runs(block: Block, split: SplitText, translations: Sequence[str]) -> list[str]:
    """
    The runs of a block with the translations of its sentences: as many strings as it has runs.

    A border between two sentences stays between them. One inside a sentence comes to a place between two words of the
    translation: in proportion to its length, measured from the nearest words that both have (numbers, names, runs to
    keep) on either side. A run with words gets at least one while there are enough. Runs to keep give their markup, in
    the order in which the translation has them, and are taken out of the translation around them.

    Args:
        split: the text of the block, taken apart.
        translations: of its sentences.
    """
    borders = [0, *accumulate(len(run.text) for run in block)]
    runs = [run.markup or "" for run in block]
    start = 0
    for gap, sentence, translation in zip(split.gaps, [*split.sentences, ""], [*translations, ""], strict=True):
        for index, piece in enumerate(_between(gap, start, borders)):
            if block[index].markup is None:
                runs[index] += piece
        start += len(gap)
        pieces = {index: piece for index, piece in enumerate(_between(sentence, start, borders)) if piece}
        if translation != sentence:  # what needed no translation stays as it is cut
            kept = [index for index in pieces if block[index].markup is not None]
            in_order = _by_place(kept, [block[index].text for index in kept], translation)
            for index, other in zip(kept, in_order, strict=True):
                runs[index], pieces[index] = block[other].markup or "", block[other].text
            pieces = dict(zip(pieces, _cut(translation, [*pieces.values()], [i in kept for i in pieces]), strict=True))
        for index, piece in pieces.items():
            if block[index].markup is None:
                runs[index] += piece
        start += len(sentence)
    return runs


def _between(text: str, start: int, borders: list[int]) -> Iterator[str]:
    """A text that starts at a place, in the pieces that lie between the borders."""
    for first, last in pairwise(borders):
        yield text[max(first - start, 0) : max(last - start, 0)]


def _by_place(items: list[int], words: list[str], text: str) -> list[int]:
    """Items in the order in which their words stand in a text; those that are not there keep their neighbours."""
    places: list[int] = []
    for number, own in enumerate(words):
        taken = sum(other == own for other in words[:number])
        found = _occurrences(own, text)
        places.append(found[taken][0] if taken < len(found) else max(places, default=-1))
    return [item for _, item in sorted(zip(places, items, strict=True), key=lambda pair: pair[0])]


def _occurrences(words: str, text: str) -> list[tuple[int, int]]:
    """Where words stand in a text, not as part of others; in upper or lower case if they are not there as they are."""
    pattern = whole_words(words)
    for flags in (0, re.IGNORECASE):
        if found := [match.span() for match in re.finditer(pattern, text, flags) if words]:
            return found
    return []


def _cut(translation: str, pieces: list[str], kept: list[bool]) -> list[str]:
    """A sentence's translation in as many pieces as the sentence has; those that are kept are left empty."""
    if True not in kept:
        return _share_out(translation, pieces) if pieces else []
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
        return ["", *_cut(f"{left.strip()} {right.strip()}" if left.strip() else right, pieces[1:], kept[1:])]
    if index == len(pieces) - 1:
        return [*_cut(f"{left.strip()} {right.strip()}" if right.strip() else left, pieces[:-1], kept[:-1]), ""]
    return [*_cut(left, pieces[:index], kept[:index]), "", *_cut(right, pieces[index + 1 :], kept[index + 1 :])]


def _share_out(translation: str, texts: list[str]) -> list[str]:
    """Cuts a translation where its sentence is cut, at borders of words."""
    source = "".join(texts)
    proportional = _proportional(source, translation)
    ends = [word.end() for word in WORD.finditer(translation)]
    borders = [0, *accumulate(map(len, texts))]
    source_ends = [word.end() for word in WORD.finditer(source)]
    # How many words end in each piece: one that holds the beginning of a word only needs none.
    needs = [bisect_right(source_ends, last) > bisect_right(source_ends, first) for first, last in pairwise(borders)]
    places, later = _Places(source, translation), sum(needs)
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


class _Places:
    """Where in the translation a border of the source may be: before a word or behind it, as there."""

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
        """The one that is nearest to a place; the lowest if there is none between."""
        candidates = self._candidates(border)
        inside = candidates[bisect_left(candidates, lowest) : bisect_right(candidates, highest)]
        after = bisect_left(inside, place)
        return min(inside[max(after - 1, 0) : after + 1], key=lambda other: abs(other - place), default=lowest)

    def _candidates(self, border: int) -> list[int]:
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


def _proportional(source: str, translation: str) -> Callable[[int], float]:
    """From places of the source to places of the translation, by the words that both have, each once."""
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
