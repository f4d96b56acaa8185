"""Finds words in a text, with bounded work."""

import re

from ..plain_text import whole_words


# Budget of characters to search for all words, and the minimum number of searches. Human-written sentences stay below.
MAX_CHARACTERS, MIN_SEARCHES = 10_000_000, 10


class Occurrences:
    """
    Finds words in a text. Case is ignored unless a whole word with the given case exists.

    >>> Occurrences("in Berlin, in").of("in"), Occurrences("the api").of("API"), Occurrences("APIs").of("API", "any")
    ([0, 11], [4], [0])
    """

    def __init__(self, text: str):
        self.text = text
        self._found: dict[tuple[str, str], list[int]] = {}
        self._claimed: set[int] = set()
        self._searches = max(MAX_CHARACTERS // max(len(text), 1), MIN_SEARCHES)

    def claim(self, words: str) -> None:
        """Reserves the places of whole words, which are no longer unclaimed."""
        self._claimed.update(self.of(words))

    def of(self, words: str, kind: str = "whole") -> list[int]:
        """
        Returns the places of words; none once the budget is used up.

        Args:
            kind: "whole" words, "any" occurrence, also inside other words, or "unclaimed" ones of any.
        """
        key = words, kind
        if not words or (key not in self._found and len(self._found) >= self._searches):
            return []
        if key not in self._found:
            self._found[key] = self._places(words, kind)
        return self._found[key]

    def _places(self, words: str, kind: str) -> list[int]:
        if kind == "unclaimed":
            return [place for place in self.of(words, "any") if place not in self._claimed]
        pattern = whole_words(words) if kind == "whole" else re.escape(words)
        places = [match.start() for match in re.finditer(pattern, self.text, re.IGNORECASE)]
        exact = [place for place in places if self.text.startswith(words, place)]
        return exact or places if kind == "whole" else places
