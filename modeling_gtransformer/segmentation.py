"""Cuts documents at sentence boundaries into segments that fit the model (paper, section 2), and packs batches."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any


# Full batches have a multiple of this many documents, as in the authors' code, which suits tensor cores.
DOCUMENTS_MULTIPLE = 8


def segment(costs: list[int], segment_tokens: int, segment_sentences: int | None = None) -> list[slice]:
    """
    Cuts sentences greedily into segments of fewer than `segment_tokens` tokens, as in the paper's experiments (512).

    Args:
        costs: number of tokens of every sentence, including its template; for sentence pairs, of the longer side.
        segment_tokens: exclusive upper bound on the total cost of a segment. A sentence that costs as much or more
            becomes a separate segment.
        segment_sentences: maximum number of sentences in a segment; 1 gives the sentence-level baseline.

    Returns:
        The segments, as consecutive slices that cover all sentences.
    """
    boundaries, cost_so_far = [0], 0
    for index, cost in enumerate(costs):
        full = cost_so_far + cost >= segment_tokens or index - boundaries[-1] == segment_sentences
        if full and index > boundaries[-1]:
            boundaries.append(index)
            cost_so_far = 0
        cost_so_far += cost
    return [slice(start, end) for start, end in pairwise([*boundaries, len(costs)]) if start < end]


# Places to cut a long sentence, best first: ends of clauses, commas, spaces, marks inside words, any characters.
CUTS = (r"(?<=[.;:!?])\s+|(?<=[。；：！？])\s*", r"(?<=[,)])\s+|(?<=[、，—–])\s*", r"\s+", r"(?<=[.;:!?,])(?!\d)", r"")


def split_long_sentence(text: str, fits: Callable[[str], bool]) -> list[tuple[str, str]]:
    """
    Bisects a sentence recursively until the parts fit: at the best kind of place in `CUTS` outside the outer quarters,
    as close to the middle as possible.

    Returns:
        Pairs of the white space before a part, and the part.

    Raises:
        ValueError: a single character does not fit.
    """
    if fits(text):
        return [("", text)]
    if len(text) < 2:
        raise ValueError(f"The single character {text!r} does not fit.")
    middle = range(len(text) // 4, len(text) - len(text) // 4 + 1)
    for pattern in CUTS:
        cuts = [match.span() for match in re.finditer(pattern, text)]
        cuts = [cut for cut in cuts if cut[0] in middle and cut[1] in middle and cut[0] > 0 and cut[1] < len(text)]
        if cuts:
            break
    start, stop = min(cuts, key=lambda cut: abs(sum(cut) - len(text)))
    (_, first), *others = split_long_sentence(text[stop:], fits)
    return [*split_long_sentence(text[:start], fits), (text[start:stop], first), *others]


def longest_first_batches(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Packs items into [`token_batches`] by length, longest first. An item longer than `max_tokens` forms a separate
    batch."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    too_long = sum(length > max_tokens for length in lengths)
    alone = [[index] for index in order[:too_long]]
    return [*alone, *token_batches(lengths, order[too_long:], max_tokens)]


def token_batches(lengths: Sequence[int], order: Any, max_tokens: int) -> list[Any]:
    """
    Packs items into batches of up to `max_tokens` tokens, padding included: number of items times maximum length.

    Args:
        lengths: number of tokens of each item.
        order: indices of the items in packing order, as a list or an array; sorting by length reduces padding.

    Returns:
        Batches of indices, each a slice of `order`. Batches of at least eight items have a multiple of eight, except
        the last one.

    Raises:
        ValueError: an item is longer than `max_tokens`.
    """
    ordered = [lengths[index] for index in order]
    longest = max(ordered, default=0)
    if longest > max_tokens:
        too_long = sum(length > max_tokens for length in ordered)
        raise ValueError(
            f"{too_long} segments exceed max_tokens={max_tokens}, the longest with {longest} tokens: raise max_tokens "
            "or cut shorter segments."
        )
    boundaries, width = [0], 0
    for position, length in enumerate(ordered):
        # After rounding down to the multiple, the remaining items and the next one may still not fit.
        while (size := position - boundaries[-1]) and (size + 1) * max(width, length) > max_tokens:
            boundaries.append(boundaries[-1] + (size // DOCUMENTS_MULTIPLE * DOCUMENTS_MULTIPLE or size))
            width = max(ordered[boundaries[-1] : position], default=0)
        width = max(width, length)
    return [order[start:end] for start, end in pairwise([*boundaries, len(ordered)]) if start < end]
