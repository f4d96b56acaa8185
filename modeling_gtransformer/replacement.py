"""Inserts missing required strings into a translation, by word alignment."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import reduce

from .numbers_and_codes import ANY_NUMBER, count_number, is_grouped, is_number
from .plain_text import UNSPACED, WIDE_MARKS, WORD, whole_words
from .sentence import Alignment
from .terminology import PLACEHOLDER, TRAILING, missing, occurrences


# Minimum alignment weight between a string's source and the words that the string replaces or follows.
MIN_WEIGHT = 0.2
# Minimum weight of a neighbouring word that belongs to the translation of a term.
NEIGHBOUR_WEIGHT = 0.5
# A word with adjacent characters, such as all digits of a number; a character in scripts without spaces between words.
CHUNK = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}{WIDE_MARKS}]+")
# Groups of digits, as in telephone numbers.
GROUPS = re.compile(r"[+(]{0,2}\d(?:[\s().+/-]{0,3}\d)*")
# What multiplies the number before it, as in "1.5 million" or 12万, and hours; such characters before another number.
MAGNITUDES = "万萬億亿兆만억조千천"
MAGNITUDE = re.compile(
    rf"[\s\u00a0\u202f]?(?:[{MAGNITUDES}]|[mb]ill?[iyjh]?[oaõó]|m[ln]?[dn]\b|mio\b|mrd\b|tril|tys\b|tsd\b|tausend"
    r"|thousand|mil\b|тыс|мил|мл|(?-i:[KM])\b|h\b|uhr\b|[時时시](?!間|间|간|민))",
    re.IGNORECASE,
)
NEXT_WORD = re.compile(r"[\s\u00a0\u202f]?[^\W\d_]")
FROM_DIGIT_TO_DIGIT = re.compile(r"\d(?:[\d.,:'’/·_٫٬-]*\d)?")
RANGE = re.compile(r"\d(?:[\d.,:'’/·_٫٬–-]*\d)?")
# Minimum similarity of a string and what may be its remains.
MIN_SIMILARITY = 0.5
LEADING = "([\"'«»„“‚‘¿¡"

Span = tuple[int, int]


def with_required(
    source: str,
    translation: str,
    alignment: Alignment | None,
    required: Sequence[str],
    terms: Mapping[str, Sequence[str]],
) -> str:
    """
    Returns the translation with missing required strings. A number replaces a similar or aligned one that the source
    lacks, a placeholder its remains, and a term the words aligned with it. Without these, a number or placeholder
    follows the word aligned with it. A string without a likely place stays missing, such as a number that the
    translation may express in another way.

    Args:
        alignment: for every word of the translation, the weights of the words of the source.
        terms: words of the source by their required translation. The source contains other required strings verbatim.
    """
    if not alignment:
        return translation
    chunks, words = _chunks(translation)
    if not chunks:
        return translation
    rest = reduce(lambda text, words: text.replace(words, " "), required, source)
    free = _without([*required, *ANY_NUMBER.findall(rest)], translation, chunks)
    edits: list[tuple[Span, str]] = []
    for text in missing(required, translation):
        is_term = text in terms
        of_words = _weights(terms.get(text, [text]), source, alignment)
        weights = [max(of_words[word] for word in of_chunk) for of_chunk in words]
        if is_term:
            fit = [number for number in free if weights[number] >= MIN_WEIGHT]
        else:
            fit = [number for number in free if _is_akin(text, translation, chunks[number], weights[number])]
        best = max(fit or range(len(chunks)), key=weights.__getitem__)
        if fit:
            span = chunks[best]
            if is_term:
                first, last = _widened(best, fit, weights)
                span = chunks[first][0], chunks[last][1]
            elif is_grouped(text):
                span = _widened_to_groups(span, translation, [chunks[number] for number in free], chunks)
            elif is_number(text) and (
                digits := (RANGE if "-" in text else FROM_DIGIT_TO_DIGIT).search(translation, *span)
            ):
                span = digits.span()  # a unit stays
            free = [number for number in free if not _overlap(chunks[number], span)]
            edits.append((span, text))
        elif (
            not is_term
            and weights[best] >= MIN_WEIGHT
            and not (_digits(text) and any(_digits(translation[slice(*chunks[number])]) for number in (best, *free)))
        ):
            end = chunks[best][1]
            edits.append(((end, end), text if re.match(f"[{UNSPACED}]", translation[end - 1]) else f" {text}"))
    for (start, end), text in sorted(edits, reverse=True):
        translation = translation[:start] + text + translation[end:]
    return translation


def _chunks(text: str) -> tuple[list[Span], list[range]]:
    """Returns the spans of chunks that contain words, without surrounding punctuation, and the numbers of these
    words."""
    spans: list[Span] = []
    words: list[range] = []
    starts, first = [word.start() for word in WORD.finditer(text)], 0
    for chunk in CHUNK.finditer(text):
        end = bisect_left(starts, chunk.end())
        if first < end:
            start = chunk.end() - len(chunk[0].lstrip(LEADING))
            spans.append((start, chunk.start() + len(chunk[0].rstrip(TRAILING + "]“”’"))))
            words.append(range(first, end))
        first = end
    return spans, words


def _without(required: Sequence[str], translation: str, chunks: Sequence[Span]) -> list[int]:
    """Returns the numbers of chunks without required strings. Surplus repetitions of a string do not count."""
    taken: list[Span] = []
    for text, times in Counter(required).items():
        if is_number(text):
            found = [match.span() for match in ANY_NUMBER.finditer(translation) if count_number(text, match[0])]
        else:
            found = [match.span() for match in occurrences(text, translation)]
        taken += found[:times]
    return [number for number, chunk in enumerate(chunks) if not any(_overlap(chunk, span) for span in taken)]


def _weights(terms: Sequence[str], source: str, alignment: Alignment) -> list[float]:
    """Returns, for every word of a translation, the total weight of all occurrences of `terms` in the source."""
    pattern = "|".join(map(whole_words, terms))
    places = [found.span() for found in re.finditer(pattern, source, re.IGNORECASE)]
    own = [
        number
        for number, word in enumerate(WORD.finditer(source))
        if any(start < word.end() and word.start() < end for start, end in places)
    ]
    return [sum(row[number] for number in own) for row in alignment]


def _is_akin(text: str, translation: str, span: Span, weight: float) -> bool:
    """Returns whether a chunk with this weight may be a corrupted number, code, placeholder or address."""
    chunk = translation[slice(*span)]
    if PLACEHOLDER.fullmatch(text):
        is_other = PLACEHOLDER.fullmatch(chunk) and (chunk[0], chunk[-1]) == (text[0], text[-1])
        return bool(is_other and weight >= MIN_WEIGHT) or _similarity(text.lower(), chunk.lower()) >= MIN_SIMILARITY
    digits, others = _digits(text), _digits(chunk)
    if not (digits and others) or (is_number(text) and _is_in_other_words(text, translation, span)):
        return False
    is_similar = _similarity(digits, others) >= MIN_SIMILARITY or (len(others) > 1 and others in digits)
    return is_similar or weight >= MIN_WEIGHT


def _is_in_other_words(number: str, translation: str, span: Span) -> bool:
    """Returns whether a chunk with digits may express a number in another way, such as 1.5 million for 1,500,000."""
    ends = [found.end() for found in FROM_DIGIT_TO_DIGIT.finditer(translation, *span)]
    if any(MAGNITUDE.match(translation, end) for end in ends):
        return True
    # The next word may multiply it, in any language.
    are_equal = _digits(number).rstrip("0") == _digits(translation[slice(*span)]).rstrip("0")
    is_multiplied = are_equal and NEXT_WORD.match(translation, ends[-1]) is not None
    return is_multiplied or translation[: span[0]].rstrip().endswith(tuple(MAGNITUDES))


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _similarity(first: str, second: str) -> float:
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def _widened(best: int, fit: Sequence[int], weights: Sequence[float]) -> Span:
    """Returns the first and last of the adjacent chunks that translate a term."""
    first = last = best
    while first - 1 in fit and weights[first - 1] >= NEIGHBOUR_WEIGHT:
        first -= 1
    while last + 1 in fit and weights[last + 1] >= NEIGHBOUR_WEIGHT:
        last += 1
    return first, last


def _widened_to_groups(span: Span, translation: str, fit: Sequence[Span], chunks: Sequence[Span]) -> Span:
    """Extends a chunk by adjacent groups of digits, unless one of them belongs to another required string."""
    groups = [found.span() for found in GROUPS.finditer(translation) if _overlap(found.span(), span)]
    widened = min(start for start, _ in [span, *groups]), max(end for _, end in [span, *groups])
    return span if any(_overlap(other, widened) and other not in fit for other in chunks) else widened


def _overlap(first: Span, second: Span) -> bool:
    return first[0] < second[1] and second[0] < first[1]
