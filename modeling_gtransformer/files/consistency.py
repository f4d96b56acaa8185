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
from .word_forms import WordForms


COLUMNS = ["source_text", "translation_text", "kind", "times", "places"]
# A word of a translation is linked with the word of the sentence that has more than this share of its weight.
MIN_SHARE = 0.5
# A character of a script without spaces, in which words cannot be told apart.
CHARACTER = re.compile(f"[{UNSPACED}]")
# Maximum length of a stop word that is surely not a term; long lists of stop words have terms such as "system".
MAX_STOP_WORD = 3
# Maximum number of places that are named for each translation, as spreadsheets limit the length of a cell.
MAX_PLACES = 10


@dataclass
class _Translation:
    """The spellings of a sentence or word and of one of its translations, and the first places where it occurs."""

    sources: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)


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
        self._forms = [WordForms(language) for language in (src_lang, tgt_lang)]
        # By kind and source, translations by what identifies them.
        self._found: dict[tuple[str, str], dict[str, _Translation]] = {}

    def add(self, name: str, pairs: Pairs, alignments: Sequence[Alignment | None] | None = None) -> None:
        """
        Adds the sentence pairs of a document; places are named by its name and the number of the sentence.

        Args:
            alignments: for each pair, the weights between the words of translation and sentence, `(V, W)`, as
                the pipeline returns them; `None` for a pair whose words are not compared.
        """
        for number, (pair, alignment) in enumerate(zip(pairs, alignments or [None] * len(pairs), strict=True), 1):
            source, translation, place = pair["source_text"], pair["translation_text"], f"{name}, sentence {number}"
            if source.strip():
                self._note(("sentence", source), translation, (source, translation), place)
            for words in _linked_words(source, translation, alignment or []):
                lower = [word.lower() for word in words]
                if not self._is_frequent(lower):
                    stem, other = (forms.stem(word) for forms, word in zip(self._forms, lower, strict=True))
                    self._note(("word", stem), other, words, place)

    def _note(self, source: tuple[str, str], translation: str, spellings: tuple[str, str], place: str) -> None:
        found = self._found.setdefault(source, {}).setdefault(translation, _Translation())
        found.sources[spellings[0]] += 1
        found.texts[spellings[1]] += 1
        if len(found.places) < MAX_PLACES:
            found.places.append(place)

    def _is_frequent(self, words: Sequence[str]) -> bool:
        """Returns whether a word and its translation are stop words, as far as these are known, or one of them is a
        short one."""
        known = [(word, forms.stop_words) for word, forms in zip(words, self._forms, strict=True) if forms.stop_words]
        found = [word for word, frequent in known if word in frequent]
        return bool(found) and (len(found) == len(known) or min(map(len, found)) <= MAX_STOP_WORD)

    def rows(self) -> Iterator[dict[str, Any]]:
        """
        Yields the translations of every sentence and every word that has several, the most frequent first, with how
        often and where they occur, in their most frequent spelling.
        """
        # Sentences first; sorting keeps the order of what is equal.
        for (kind, _), translations in sorted(self._found.items(), key=lambda item: item[0][0]):
            ordered = sorted(translations.values(), key=lambda each: -each.texts.total())
            for each in ordered if len(ordered) > 1 else ():
                times = each.texts.total()
                more = [f"and {times - len(each.places)} more"] if times > len(each.places) else []
                source, text = (spellings.most_common(1)[0][0] for spellings in (each.sources, each.texts))
                places = "; ".join([*dict.fromkeys(each.places), *more])
                yield dict(zip(COLUMNS, (source, text, kind, times, places), strict=True))

    def to_tsv(self) -> str:
        """Returns these rows as tab-separated values with a header, for a spreadsheet."""
        return tab_separated(COLUMNS, self.rows())


def _linked_words(sentence: str, translation: str, alignment: Alignment) -> Iterator[tuple[str, str]]:
    """
    Yields pairs of words of a sentence and its translation in which each has the most weight for the other. A sentence
    of a single word has none, as it is compared as a whole.

    >>> list(_linked_words("the cat", "die Katze schläft", [[0.6, 0.4], [0.1, 0.9], [0.3, 0.7]]))
    [('the', 'die'), ('cat', 'Katze')]
    """
    words, translated = (_words(text) for text in (sentence, translation))
    for number, weights in enumerate(alignment if len(words) > 1 else ()):
        own, share = max(enumerate(weights), key=lambda item: item[1])
        word, other = words[own], translated[number]
        if share > MIN_SHARE and share == max(each[own] for each in alignment) and word and other:
            yield word, other


def _words(text: str) -> list[str]:
    """
    Returns the words of a text, with an empty string for a character of a script without spaces, and for a part of a
    word that combining marks cut into pieces.

    >>> _words("two 本"), _words("cafe\\u0301 noir")
    (['two', ''], ['', 'noir'])
    """
    words = []
    for match in WORD.finditer(text):
        around = text[max(match.start() - 1, 0) : match.start()] + text[match.end() : match.end() + 1]
        is_part = any(unicodedata.category(each).startswith("M") for each in around)
        words.append("" if is_part or CHARACTER.match(match[0]) else match[0])
    return words
