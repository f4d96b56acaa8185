"""Finds where words are in a text, in an index of its tokens that is made once."""

import re
from functools import lru_cache

from ..plain_text import LETTER, UNSPACED


# A word, a character in scripts without spaces between words, or a mark.
TOKEN = re.compile(rf"[{UNSPACED}]|{LETTER}+|\S")
# Number of comparisons per character of the text, over all words, after which the work is bounded; and number of
# places that are searched for a word from then on. No sentence written by a person reaches this.
COMPARISONS, FEW_PLACES = 10, 10


class Occurrences:
    """
    Finds words in a text, but not as parts of longer ones; case is ignored unless the words are found as written.

    >>> Occurrences("in Berlin, in").of("in"), Occurrences("the api").of("API")
    ([0, 11], [4])
    """

    def __init__(self, text: str):
        self.text = text
        self._tokens: dict[str, list[int]] = {}
        for token in TOKEN.finditer(text):
            self._tokens.setdefault(token[0].lower(), []).append(token.start())
        self._found: dict[str, list[int]] = {}
        self._budget = COMPARISONS * len(text)

    def of(self, words: str) -> list[int]:
        """
        Returns where the words begin.

        >>> Occurrences("foo() and foo").of("foo()")
        [0]
        """
        if words not in self._found:
            places = self._places(words)
            exact = [place for place in places if self.text.startswith(words, place)]
            self._found[words] = exact or places
        return self._found[words]

    def _places(self, words: str) -> list[int]:
        """
        Lists where the words begin, in upper or lower case, by looking around the rarest of their tokens.

        >>> Occurrences("Do a.b, not a.c")._places("A.C")
        [12]
        """
        tokens = _tokens(words)
        if not tokens:
            return []
        rarest, offset = min(tokens, key=lambda token: len(self._tokens.get(token[0], ())))
        places = self._tokens.get(rarest, [])[: max(self._budget // len(words), FEW_PLACES)]
        self._budget -= len(places) * len(words)
        starts = (place - offset for place in places)
        return [start for start in starts if start >= 0 and self._is_here(words, start)]

    def _is_here(self, words: str, start: int) -> bool:
        """
        Tells whether the words are at a place, in upper or lower case, and are not part of longer ones.

        >>> text = Occurrences("The API, APIs")
        >>> text._is_here("api", 4), text._is_here("api", 9)
        (True, False)
        """
        stop = start + len(words)
        if self.text[start:stop].lower() != words.lower():
            return False
        begins = not (start and _is_letter(words[0]) and _is_letter(self.text[start - 1]))
        return begins and not (stop < len(self.text) and _is_letter(words[-1]) and _is_letter(self.text[stop]))


@lru_cache(maxsize=1024)
def _tokens(words: str) -> list[tuple[str, int]]:
    """
    Lists the tokens of words in lower case, and where they begin.

    >>> _tokens("A.b")
    [('a', 0), ('.', 1), ('b', 2)]
    """
    return [(token[0].lower(), token.start()) for token in TOKEN.finditer(words)]


def _is_letter(character: str) -> bool:
    """
    Tells whether a character may be part of a longer word.

    >>> _is_letter("a"), _is_letter("("), _is_letter("猫")
    (True, False, False)
    """
    return re.match(LETTER, character) is not None
