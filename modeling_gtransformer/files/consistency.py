"""Sentences that are there several times, and are translated in several ways."""

from collections.abc import Iterator
from typing import Any

from .aligned_pairs import Pairs, tab_separated


COLUMNS = ["source_text", "translation_text", "times", "places"]


class Consistency:
    """
    Collects the translations of sentences, and where they stand. Only whole sentences that are the same are compared:
    headings, labels, cells and names above all.
    """

    def __init__(self) -> None:
        self._places: dict[str, dict[str, list[str]]] = {}

    def add(self, name: str, pairs: Pairs) -> None:
        """Adds the sentence pairs of a document; places are named by its name and the number of the sentence."""
        for number, pair in enumerate(pairs, 1):
            if pair["source_text"].strip():
                translations = self._places.setdefault(pair["source_text"], {})
                translations.setdefault(pair["translation_text"], []).append(f"{name}, sentence {number}")

    def rows(self) -> Iterator[dict[str, Any]]:
        """
        Yields the translations of every sentence that has several, the most frequent first, with their numbers and
        places.
        """
        for source, translations in self._places.items():
            for translation, places in sorted(translations.items(), key=lambda item: -len(item[1])):
                if len(translations) > 1:
                    yield {
                        "source_text": source,
                        "translation_text": translation,
                        "times": len(places),
                        "places": "; ".join(places),
                    }

    def to_tsv(self) -> str:
        """Returns these rows as tab-separated values with a header, for a spreadsheet."""
        return tab_separated(COLUMNS, self.rows())
