"""Text in runs: a paragraph in pieces of unlike format, whose borders are found again in its translation."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from .plain_text import SplitText


# A character is a word in the scripts that put no spaces between words.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
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
        after = max((places[i] + 1 for i in range(number) if words[i] == own), default=0)
        place = _find(own, text, after)
        places.append(place if place >= 0 else max(places, default=-1))
    return [item for _, item in sorted(zip(places, items, strict=True), key=lambda pair: pair[0])]


def _find(words: str, text: str, start: int = 0) -> int:
    """Where words stand in a text, if need be in upper or lower case; -1 if they do not."""
    place = text.find(words, start)
    return place if place >= 0 else text.lower().find(words.lower(), start)


def _cut(translation: str, pieces: list[str], kept: list[bool]) -> list[str]:
    """A sentence's translation in as many pieces as the sentence has; those that are kept are left empty."""
    if True not in kept:
        return _share_out(translation, pieces) if pieces else []
    index = kept.index(True)
    if len(pieces) == 1:
        return [""]
    words = pieces[index].strip()
    if _find(words, translation) < 0:
        # Between two words, where it is in the sentence.
        share = len("".join(pieces[:index])) / len("".join(pieces))
        starts = [word.start() for word in WORD.finditer(translation)] + [len(translation)]
        place = min(starts, key=lambda start: abs(start - share * len(translation)))
        before, behind = translation[:place], translation[place:]
        space = " " if before and not before[-1].isspace() else ""
        translation = f"{before}{space}{words}{' ' if behind else ''}{behind}"
    place = _find(words, translation)
    left, right = translation[:place], translation[place + len(words) :]
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
    needs = [WORD.search(text) is not None for text in texts]
    cuts, done, border = [0], 0, 0
    for index, text in enumerate(texts[:-1]):
        border += len(text)
        least = min(done + needs[index], len(ends))
        most = max(least, len(ends) - sum(needs[index + 1 :]))
        places = {place: sum(end <= place for end in ends) for place in _places(source, border, translation)}
        places = {place: words for place, words in places.items() if place >= cuts[-1] and least <= words <= most}
        cuts.append(min(places, key=lambda place: abs(place - proportional(border)), default=cuts[-1]))
        done = places.get(cuts[-1], done)
    return [translation[first:last] for first, last in pairwise([*cuts, len(translation)])]


def _places(source: str, border: int, translation: str) -> Iterator[int]:
    """Where in the translation a border may be: before a word or behind it, as it is in the source."""
    yield from (0, len(translation))
    before, behind = source[border - 1], source[border]
    if before.isspace() and re.search(r"\s", translation):
        yield from (match.end() for match in re.finditer(r"\s+", translation))
    elif behind.isspace() and re.search(r"\s", translation):
        yield from (match.start() for match in re.finditer(r"\s+", translation))
    elif WORD.match(behind):
        yield from (match.start() for match in WORD.finditer(translation))
    else:
        yield from (match.end() for match in WORD.finditer(translation))


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

    def to_translation(border: int) -> float:
        (a, x), (b, y) = next(pair for pair in pairwise(fixed) if border <= pair[1][0])
        return x if a == b else x + (border - a) / (b - a) * (y - x)

    return to_translation
