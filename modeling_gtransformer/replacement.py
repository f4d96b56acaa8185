"""Puts required strings that a translation lacks in the place of the words that are aligned with their source."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from .numbers_and_codes import NUMBER, count_number, is_grouped, is_number
from .plain_text import UNSPACED, WIDE_MARKS, WORD, whole_words
from .sentence import Alignment
from .terminology import PLACEHOLDER, TRAILING, missing


# Minimum weight of the source of a string in the words that the string replaces or follows.
MIN_WEIGHT = 0.2
# Weight from which a neighbour belongs to the translation of a term.
NEIGHBOUR_WEIGHT = 0.5
# A word with what adjoins it, such as all digits of a number; a character in scripts without spaces between words.
CHUNK = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}{WIDE_MARKS}]+")
# Groups of digits, such as those of a telephone number.
GROUPS = re.compile(r"[+(]{0,2}\d(?:[\s().+/-]{0,3}\d)*")
LEADING = "([\"'«»„“‚‘¿¡"

Span = tuple[int, int]


def with_required(
    source: str, translation: str, alignment: Alignment | None, required: Sequence[str], terms: Mapping[str, str]
) -> str:
    """
    Returns the translation with the required strings that it lacks. A number takes the place of another number, a
    placeholder that of its remains, a term that of the words aligned with it. Numbers and placeholders of which
    nothing remains follow the word aligned with them. A string without a likely place stays missing.

    Args:
        alignment: for every word of the translation, the weights of the words of the source.
        terms: the words of the source that required strings translate; other strings are in the source themselves.
    """
    if not alignment:
        return translation
    chunks, words = _chunks(translation)
    free = _without(required, translation, chunks)
    edits: list[tuple[Span, str]] = []
    for text in missing(required, translation):
        is_term = text in terms
        of_words = _weights(terms.get(text, text), source, alignment)
        weights = [max(of_words[word] for word in of_chunk) for of_chunk in words]
        fit = [
            number
            for number in free
            if (weights[number] >= MIN_WEIGHT if is_term else _is_akin(text, translation[slice(*chunks[number])]))
        ]
        best = max(fit or range(len(chunks)), key=weights.__getitem__)
        if fit:
            span = chunks[best]
            if is_term:
                first, last = _widened(best, fit, weights)
                span = chunks[first][0], chunks[last][1]
            elif is_grouped(text):
                span = _widened_to_groups(span, translation, [chunks[number] for number in fit], chunks)
            free = [number for number in free if not _overlap(chunks[number], span)]
            edits.append((span, text))
        elif not is_term and weights[best] >= MIN_WEIGHT:
            end = chunks[best][1]
            edits.append(((end, end), text if re.match(f"[{UNSPACED}]", translation[end - 1]) else f" {text}"))
    for (start, end), text in sorted(edits, reverse=True):
        translation = translation[:start] + text + translation[end:]
    return translation


def _chunks(text: str) -> tuple[list[Span], list[list[int]]]:
    """Spans of the chunks of a text that contain words, without the punctuation around them, and the numbers of these
    words."""
    spans: list[Span] = []
    words: list[list[int]] = []
    numbers = iter(enumerate(WORD.finditer(text)))
    number, word = next(numbers, (0, None))
    for chunk in CHUNK.finditer(text):
        own = []
        while word is not None and word.start() < chunk.end():
            own.append(number)
            number, word = next(numbers, (0, None))
        if own:
            start = chunk.end() - len(chunk[0].lstrip(LEADING))
            spans.append((start, chunk.start() + len(chunk[0].rstrip(TRAILING + "]“”’"))))
            words.append(own)
    return spans, words


def _without(required: Sequence[str], translation: str, chunks: Sequence[Span]) -> list[int]:
    """Numbers of the chunks that hold none of the required strings, not counting repetitions that are too many."""
    taken: list[Span] = []
    for text, times in Counter(required).items():
        if is_number(text):
            found = [match.span() for match in NUMBER.finditer(translation) if count_number(text, match[0])]
        else:
            pattern = re.escape(text) if PLACEHOLDER.fullmatch(text) else whole_words(text)
            found = [match.span() for match in re.finditer(pattern, translation, re.IGNORECASE)]
        taken += found[:times]
    return [number for number, chunk in enumerate(chunks) if not any(_overlap(chunk, span) for span in taken)]


def _weights(words: str, source: str, alignment: Alignment) -> list[float]:
    """For every word of a translation, the weight of all places of these words in the source."""
    places = [found.span() for found in re.finditer(whole_words(words), source, re.IGNORECASE)]
    own = [
        number
        for number, word in enumerate(WORD.finditer(source))
        if any(start < word.end() and word.start() < end for start, end in places)
    ]
    return [sum(row[number] for number in own) for row in alignment]


def _is_akin(text: str, chunk: str) -> bool:
    """Whether a chunk may be what became of a number, code, placeholder or address."""
    if PLACEHOLDER.fullmatch(text):
        return not {*re.findall(r"[^\w\s]", text)}.isdisjoint(chunk)
    return any(character.isdigit() for character in chunk)


def _widened(best: int, fit: Sequence[int], weights: Sequence[float]) -> Span:
    """The first and the last of the adjacent chunks that translate a term."""
    first = last = best
    while first - 1 in fit and weights[first - 1] >= NEIGHBOUR_WEIGHT:
        first -= 1
    while last + 1 in fit and weights[last + 1] >= NEIGHBOUR_WEIGHT:
        last += 1
    return first, last


def _widened_to_groups(span: Span, translation: str, fit: Sequence[Span], chunks: Sequence[Span]) -> Span:
    """A chunk with the groups of digits before and after it, if none of them belongs to another required string."""
    groups = [found.span() for found in GROUPS.finditer(translation) if _overlap(found.span(), span)]
    widened = min(start for start, _ in [span, *groups]), max(end for _, end in [span, *groups])
    return span if any(_overlap(other, widened) and other not in fit for other in chunks) else widened


def _overlap(first: Span, second: Span) -> bool:
    return first[0] < second[1] and second[0] < first[1]
