"""Cuts documents at sentence boundaries into segments that fit the model (paper, section 2), and packs batches."""

import re
from collections.abc import Callable, Sequence
from typing import Any


# A full batch has a multiple of this many documents, as in the authors' code; this suits tensor cores.
DOCUMENTS_MULTIPLE = 8


def segment(costs: list[int], segment_tokens: int, segment_sentences: int | None = None) -> list[slice]:
    """
    Cuts sentences greedily into segments of fewer than `segment_tokens` tokens, as in the paper's experiments (512).

    Args:
        costs: number of tokens of every sentence, including its template; for a sentence pair, that of the longer
            side.
        segment_tokens: the sentences of a segment cost less than this in total. A sentence that alone costs as much
            or more becomes a segment of its own.
        segment_sentences: maximum number of sentences in a segment; 1 gives the sentence-level baseline.

    Returns:
        The segments as slices of the sentences: in order, none empty, none missing.
    """
    boundaries, cost_so_far = [0], 0
    for index, cost in enumerate(costs):
        full = cost_so_far + cost >= segment_tokens or index - boundaries[-1] == segment_sentences
        if full and index > boundaries[-1]:
            boundaries.append(index)
            cost_so_far = 0
        cost_so_far += cost
    ends = [*boundaries[1:], len(costs)]
    return [slice(start, end) for start, end in zip(boundaries, ends, strict=True) if start < end]


# Places to cut a sentence that is too long, best first; the last is between any two characters.
CUTS = (r"(?<=[.;:!?。；：！？])\s*", r"(?<=[,、，—–)])\s*", r"\s+", r"")


def split_long_sentence(text: str, fits: Callable[[str], bool]) -> list[tuple[str, str]]:
    """
    Cuts a sentence in two, and its parts again, until they fit: at the end of a clause, at a comma, between words or,
    if there is no other way, between characters; as close to the middle as possible, and not in the outer quarters.

    Returns:
        Pairs of the white space before a part, and the part.

    Raises:
        ValueError: a single character does not fit.
    """
    if fits(text):
        return [("", text)]
    if len(text) < 2:
        raise ValueError(f"{text!r} alone does not fit.")
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
    """Packs items into [`token_batches`] by length, longest first. An item longer than `max_tokens` is a batch of its
    own."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    too_long = sum(length > max_tokens for length in lengths)
    alone = [[index] for index in order[:too_long]]
    return [*alone, *token_batches(lengths, order[too_long:], max_tokens)]


def token_batches(lengths: Sequence[int], order: Any, max_tokens: int) -> list[Any]:
    """
    Packs items into batches of at most `max_tokens` tokens, padding included: documents times the longest of them.

    Args:
        lengths: number of tokens of each item.
        order: indices of the items in the order of packing, as a list or an array; sorted by length they make batches
            with little padding.

    Returns:
        Batches of indices, each a slice of `order`. Batches of eight documents or more have a multiple of eight,
        except the last one.

    Raises:
        ValueError: an item alone is longer than `max_tokens`.
    """
    ordered = [lengths[index] for index in order]
    longest = max(ordered, default=0)
    if longest > max_tokens:
        too_long = sum(length > max_tokens for length in ordered)
        raise ValueError(
            f"{too_long} segments do not fit into a batch of max_tokens={max_tokens}, the longest has {longest} "
            "tokens: raise max_tokens or cut shorter segments."
        )
    boundaries, width = [0], 0
    for position, length in enumerate(ordered):
        # Cutting to the multiple leaves some documents over, with which the next may still not fit.
        while (size := position - boundaries[-1]) and (size + 1) * max(width, length) > max_tokens:
            boundaries.append(boundaries[-1] + (size // DOCUMENTS_MULTIPLE * DOCUMENTS_MULTIPLE or size))
            width = max(ordered[boundaries[-1] : position], default=0)
        width = max(width, length)
    ends = [*boundaries[1:], len(ordered)] if ordered else []
    return [order[start:end] for start, end in zip(boundaries, ends, strict=False)]
