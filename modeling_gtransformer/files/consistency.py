"""Finds sentences, and words in them, that occur several times and are translated in several ways."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..plain_text import UNSPACED
from .aligned_pairs import Pairs, tab_separated
from .boundaries import WORD
from .runs import Alignment
from .word_forms import stemmer, stop_words


COLUMNS = ["source_text", "translation_text", "kind", "times", "places"]
# A word of a translation stands for the word of the sentence that has more than this share of its weight.
LEAST_SHARE = 0.5
# A character of a script without spaces, in which words cannot be told apart.
CHARACTER = re.compile(f"[{UNSPACED}]")
# Maximum length of a stop word that is surely not a term; long lists of stop words have terms such as "system".
SHORT = 3
# Number of places that are named for each translation, as spreadsheets limit the length of a cell.
MAX_PLACES = 10


@dataclass
class Translation:
    """
    One of the translations of a sentence or word.

    Attributes:
        sources, texts: the spellings of both sides, and how often each occurs.
        places: the first places where it occurs.
    """

    sources: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)

    def add(self, source: str, text: str, place: str) -> None:
        """Adds an occurrence."""
        self.sources[source] += 1
        self.texts[text] += 1
        if len(self.places) < MAX_PLACES:
            self.places.append(place)

    @property
    def times(self) -> int:
        """Number of occurrences."""
        return self.texts.total()

    def row(self, kind: str) -> dict[str, Any]:
        """Returns a row of the report, with the most frequent spelling of both sides."""
        more = self.times - len(self.places)
        return {
            "source_text": self.sources.most_common(1)[0][0],
            "translation_text": self.texts.most_common(1)[0][0],
            "kind": kind,
            "times": self.times,
            "places": "; ".join([*dict.fromkeys(self.places), *([f"and {more} more"] if more else [])]),
        }


class Consistency:
    """
    Collects the translations of sentences and words, and where they occur.

    Sentences are the same if their texts are: these are mostly headings, labels and names. Words, and their
    translations, are the same if their stems are, in upper or lower case. A stop word that is translated as a stop
    word is left out, and a short one in any case.

    Args:
        src_lang, tgt_lang: codes of the languages. For an unknown language there are neither stop words nor stems.

    Raises:
        ImportError: a library for words is missing.
    """

    def __init__(self, src_lang: str | None = None, tgt_lang: str | None = None) -> None:
        self._stop_words = [stop_words(language) for language in (src_lang, tgt_lang)]
        self._stems = [stemmer(language) for language in (src_lang, tgt_lang)]
        # Translations by what identifies the source and, below it, the translation.
        self._sentences: dict[str, dict[str, Translation]] = {}
        self._words: dict[str, dict[str, Translation]] = {}

    def add(self, name: str, pairs: Pairs, alignments: Sequence[Alignment | None] | None = None) -> None:
        """
        Adds the sentence pairs of a document; places are named by its name and the number of the sentence.

        Args:
            alignments: for each pair, the weights between the words of translation and sentence, `(V, W)`, as
                [`align_words`] returns them; `None` for a pair whose words are not compared.
        """
        for number, (pair, alignment) in enumerate(zip(pairs, alignments or [None] * len(pairs), strict=True), 1):
            source, translation, place = pair["source_text"], pair["translation_text"], f"{name}, sentence {number}"
            if source.strip():
                _at(self._sentences, source, translation).add(source, translation, place)
            for words in _linked_words(source, translation, alignment or []):
                lower = [word.lower() for word in words]
                if not self._is_frequent(lower):
                    stems = (stem(word) for stem, word in zip(self._stems, lower, strict=True))
                    _at(self._words, *stems).add(*words, place)

    def _is_frequent(self, words: Sequence[str]) -> bool:
        """Tells whether a word and its translation are stop words, as far as these are known, or one of them is a
        short one."""
        known = [(word, frequent) for word, frequent in zip(words, self._stop_words, strict=True) if frequent]
        found = [word for word, frequent in known if word in frequent]
        return bool(found) and (len(found) == len(known) or min(map(len, found)) <= SHORT)

    def rows(self) -> Iterator[dict[str, Any]]:
        """
        Yields the translations of every sentence and every word that has several, the most frequent first, with how
        often and where they occur.
        """
        for kind, found in (("sentence", self._sentences), ("word", self._words)):
            for translations in found.values():
                if len(translations) > 1:
                    for translation in sorted(translations.values(), key=lambda each: -each.times):
                        yield translation.row(kind)

    def to_tsv(self) -> str:
        """Returns these rows as tab-separated values with a header, for a spreadsheet."""
        return tab_separated(COLUMNS, self.rows())


def _at(found: dict[str, dict[str, Translation]], source: str, translation: str) -> Translation:
    return found.setdefault(source, {}).setdefault(translation, Translation())


def _linked_words(sentence: str, translation: str, alignment: Alignment) -> Iterator[tuple[str, str]]:
    """
    Yields words of a sentence with those that stand for them, if each has the most weight for the other. A sentence of
    a single word has none, as it is compared as a whole.

    >>> list(_linked_words("the cat", "die Katze schläft", [[0.6, 0.4], [0.1, 0.9], [0.3, 0.7]]))
    [('the', 'die'), ('cat', 'Katze')]
    """
    words, translated = (_words(text) for text in (sentence, translation))
    if len(words) < 2:
        return
    for number, weights in enumerate(alignment):
        own, share = max(enumerate(weights), key=lambda item: item[1])
        word, other = words[own], translated[number]
        if share > LEAST_SHARE and share == max(each[own] for each in alignment) and word and other:
            yield word, other


def _words(text: str) -> list[str]:
    """
    Returns the words of a text, with an empty string for what is not a word: a character of a script without spaces,
    or a part of a word that combining marks cut into pieces.

    >>> _words("two 本"), _words("cafe\\u0301 noir")
    (['two', ''], ['', 'noir'])
    """

    def is_whole(match: re.Match[str]) -> bool:
        around = text[max(match.start() - 1, 0) : match.start()] + text[match.end() : match.end() + 1]
        return not CHARACTER.match(match[0]) and not any(unicodedata.category(each).startswith("M") for each in around)

    return [match[0] if is_whole(match) else "" for match in WORD.finditer(text)]
