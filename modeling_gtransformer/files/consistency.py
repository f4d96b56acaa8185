"""Sentences, and words inside of them, that are there several times and are translated in several ways."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..plain_text import UNSPACED
from .aligned_pairs import Pairs, tab_separated
from .borders import WORD
from .runs import Alignment
from .word_forms import stemmer, stop_words


COLUMNS = ["source_text", "translation_text", "kind", "times", "places"]
# A word of a translation stands for a word of the sentence that has more than this share of its weight.
LEAST_SHARE = 0.5
# Stands alone where there are no spaces between words: then words are not known.
CHARACTER = re.compile(f"[{UNSPACED}]")


class Occurrence(NamedTuple):
    """Where a sentence or a word stands, and its translation there."""

    source: str
    translation: str
    place: str


# By what is the same in the source and, there, by what is the same in the translation.
Occurrences = dict[str, dict[str, list[Occurrence]]]


class Consistency:
    """
    Collects the translations of sentences and words, and where they stand.

    Sentences are the same if their texts are: headings, labels and names above all. Words are the same in upper and
    lower case; their translations are if they have one stem. Words that every text is full of, such as articles, are
    left out.

    Args:
        src_lang, tgt_lang: codes of the languages. Where one is unknown, it has no stop words and no stems.

    Raises:
        ImportError: a library for words is missing.
    """

    def __init__(self, src_lang: str | None = None, tgt_lang: str | None = None) -> None:
        self._frequent, self._frequent_translations = stop_words(src_lang), stop_words(tgt_lang)
        self._stem = stemmer(tgt_lang)
        self._sentences: Occurrences = {}
        self._words: Occurrences = {}

    def add(self, name: str, pairs: Pairs, alignments: Sequence[Alignment | None] | None = None) -> None:
        """
        Adds the sentence pairs of a document; places are named by its name and the number of the sentence.

        Args:
            alignments: for each pair weights between the words of translation and sentence, `(V, W)`, as
                [`align_words`] gives them; words of a pair without are not compared.
        """
        for number, (pair, alignment) in enumerate(zip(pairs, alignments or [None] * len(pairs), strict=True), 1):
            source, translation, place = pair["source_text"], pair["translation_text"], f"{name}, sentence {number}"
            if source.strip():
                _note(self._sentences, source, translation, Occurrence(source, translation, place))
            for word, translated in _linked_words(source, translation, alignment or []):
                key, form = word.lower(), translated.lower()
                if key not in self._frequent and form not in self._frequent_translations:
                    _note(self._words, key, self._stem(form), Occurrence(word, translated, place))

    def rows(self) -> Iterator[dict[str, Any]]:
        """
        Yields the translations of every sentence and every word that has several, the most frequent first, with their
        numbers and places.
        """
        for kind, found in (("sentence", self._sentences), ("word", self._words)):
            for translations in found.values():
                for occurrences in sorted(translations.values(), key=len, reverse=True):
                    if len(translations) > 1:
                        sources, texts, places = zip(*occurrences, strict=True)
                        yield {
                            "source_text": _most_frequent(sources),
                            "translation_text": _most_frequent(texts),
                            "kind": kind,
                            "times": len(places),
                            "places": "; ".join(dict.fromkeys(places)),
                        }

    def to_tsv(self) -> str:
        """Returns these rows as tab-separated values with a header, for a spreadsheet."""
        return tab_separated(COLUMNS, self.rows())


def _note(found: Occurrences, key: str, form: str, occurrence: Occurrence) -> None:
    found.setdefault(key, {}).setdefault(form, []).append(occurrence)


def _most_frequent(texts: Sequence[str]) -> str:
    return Counter(texts).most_common(1)[0][0]


def _linked_words(sentence: str, translation: str, alignment: Alignment) -> Iterator[tuple[str, str]]:
    """
    Yields words of a sentence with those that stand for them, where each has the most weight for the other. A sentence
    of a single word has none, as it is compared as a whole.

    >>> list(_linked_words("the cat", "die Katze schläft", [[0.6, 0.4], [0.1, 0.9], [0.3, 0.7]]))
    [('the', 'die'), ('cat', 'Katze')]
    """
    words, translated = ([match[0] for match in WORD.finditer(text)] for text in (sentence, translation))
    if len(words) < 2:
        return
    for number, weights in enumerate(alignment):
        own, share = max(enumerate(weights), key=lambda item: item[1])
        is_mutual = share > LEAST_SHARE and share == max(other[own] for other in alignment)
        if is_mutual and not CHARACTER.match(words[own]) and not CHARACTER.match(translated[number]):
            yield words[own], translated[number]
