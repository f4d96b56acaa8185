"""Finds words in a text, with bounded work."""

import re

from ..plain_text import whole_words


# Budget of characters to search for all words, and the minimum number of searches. Human-written sentences stay below.
MAX_CHARACTERS, MIN_SEARCHES = 10_000_000, 10


class Occurrences:
    """
    Finds whole words in a text. Case is ignored unless a match with the given case exists.

    >>> Occurrences("in Berlin, in").of("in"), Occurrences("the api").of("API"), Occurrences("APIs").of("API", True)
    ([0, 11], [4], [0])
    """

    def __init__(self, text: str):
        self.text = text
        self._found: dict[tuple[str, bool], list[int]] = {}
        self._searches = max(MAX_CHARACTERS // max(len(text), 1), MIN_SEARCHES)

    def of(self, words: str, within_words: bool = False) -> list[int]:
        """Returns the places of words, also inside other words if requested; none once the budget is used up."""
        key = words, within_words
        if not words or (key not in self._found and len(self._found) >= self._searches):
            return []
        if key not in self._found:
            pattern = re.escape(words) if within_words else whole_words(words)
            places = [match.start() for match in re.finditer(pattern, self.text, re.IGNORECASE)]
            exact = [place for place in places if self.text.startswith(words, place)]
            self._found[key] = places if within_words else exact or places
        return self._found[key]
