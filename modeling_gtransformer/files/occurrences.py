"""Finds where words are in a text, as whole words, with bounded work."""

import re

from ..plain_text import whole_words


# Maximum number of characters that are searched for all words, but at least those of a few searches. No sentence that
# a person wrote reaches this.
MAX_CHARACTERS, MIN_SEARCHES = 10_000_000, 10


class Occurrences:
    """
    Finds words in a text, but not as parts of longer ones; case is ignored unless the words are found as written.

    >>> Occurrences("in Berlin, in").of("in"), Occurrences("the api").of("API")
    ([0, 11], [4])
    """

    def __init__(self, text: str):
        self.text = text
        self._found: dict[str, list[int]] = {"": []}
        self._searches = max(MAX_CHARACTERS // max(len(text), 1), MIN_SEARCHES)

    def of(self, words: str) -> list[int]:
        """Returns where the words begin; nowhere once too many others were searched."""
        if words not in self._found and len(self._found) > self._searches:
            return []
        if words not in self._found:
            matches = re.finditer(whole_words(words), self.text, re.IGNORECASE)
            places = [match.start() for match in matches]
            self._found[words] = [place for place in places if self.text.startswith(words, place)] or places
        return self._found[words]
