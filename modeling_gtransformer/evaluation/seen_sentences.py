"""Finds test sentences that occur in the training data; a model may know their translations by heart."""

from collections.abc import Iterable, Sequence
from typing import Any


def positions_of_unseen(sources: Sequence[Sequence[str]], training: Iterable[Sequence[str]]) -> list[list[int]]:
    """
    Finds the sentences of test documents that occur in no training document, ignoring case and white space.

    Args:
        sources: source sentences of every test document.
        training: source sentences of every training document.

    Returns:
        The positions of such sentences, document by document.
    """
    seen = {_plain(sentence) for document in training for sentence in document}
    return [[n for n, sentence in enumerate(document) if _plain(sentence) not in seen] for document in sources]


def at_positions(documents: Sequence[Sequence[Any]], positions: Sequence[Sequence[int]]) -> list[list[Any]]:
    """Keeps only the sentences at these positions, and leaves out documents without any."""
    pairs = zip(documents, positions, strict=True)
    return [[document[position] for position in kept] for document, kept in pairs if kept]


def _plain(sentence: str) -> str:
    return " ".join(sentence.casefold().split())
