"""Finds sentences and words that a document translates in several ways."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..plain_text import UNSPACED
from .aligned_pairs import Pairs, tab_separated
from .boundaries import WORD
from .languages import english_name
from .runs import Alignment


COLUMNS = ["source_text", "translation_text", "kind", "times", "places"]
# A word of a translation is linked to the word of the sentence with more than this share of its weight.
MIN_SHARE = 0.5
# A character of a script without spaces between words.
CHARACTER = re.compile(f"[{UNSPACED}]")
# Longer stop words may be terms: long lists contain words such as "system".
MAX_STOP_WORD = 3
# Maximum number of places listed for each translation; spreadsheets limit the length of a cell.
MAX_PLACES = 10


# The libraries do not distinguish the written forms of Norwegian, as Babel does.
KNOWN_AS = {"norwegian bokmål": "norwegian", "norwegian nynorsk": "norwegian"}


class WordForms:
    """
    The `stop_words` of a language, and `stem`, a function from a word to its stem, all in lower case. Unknown
    languages have no stop words, and `stem` returns the word.

    Raises:
        ImportError: a library is missing.

    >>> english, german = WordForms("en_XX"), WordForms("de_DE")
    >>> "the" in english.stop_words, "cat" in english.stop_words, german.stem("hunde"), WordForms(None).stem("hunde")
    (True, False, 'hund', 'hunde')
    """

    def __init__(self, language: str | None):
        try:
            import babel  # noqa: F401 (for the names of languages)
            import snowballstemmer
            import stop_words
        except ModuleNotFoundError as error:
            raise ImportError(f"Comparing words needs {error.name}: pip install 'gtransformer-hf[files]'") from error
        name = english_name(language)
        name = KNOWN_AS.get(name, name)
        try:
            self.stop_words = frozenset(map(str.lower, stop_words.get_stop_words(name)))
        except stop_words.StopWordError:
            self.stop_words = frozenset()
        self.stem = snowballstemmer.stemmer(name).stemWord if name in snowballstemmer.algorithms() else str


@dataclass
class _Translation:
    """Spellings of a source and of one of its translations, with the first places where they occur."""

    sources: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)


class Consistency:
    """
    Collects the translations of sentences and words, and where they occur.

    Sentences are compared by their text; most repeated ones are headings, labels and names. Words and their
    translations are compared by their stems, ignoring case. Pairs of stop words are skipped, as are all pairs with a
    stop word of up to three letters.

    Args:
        src_lang, tgt_lang: language codes. Unknown languages have no stop words and no stems.

    Raises:
        ImportError: a library for words is missing.
    """

    def __init__(self, src_lang: str | None = None, tgt_lang: str | None = None) -> None:
        self._forms = [WordForms(language) for language in (src_lang, tgt_lang)]
        # Translations by kind and source.
        self._found: dict[tuple[str, str], dict[str, _Translation]] = {}

    def add(self, name: str, pairs: Pairs, alignments: Sequence[Alignment | None] | None = None) -> None:
        """
        Adds the sentence pairs of a document.

        Args:
            name: name of the document, shown with the number of the sentence as its place.
            alignments: for each pair, the weights between the words of translation and sentence, `(V, W)`, as
                the pipeline returns them; `None` skips the words of a pair.
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
        """Returns whether a word and its translation are both stop words, or either is a short one."""
        known = [(word, forms.stop_words) for word, forms in zip(words, self._forms, strict=True) if forms.stop_words]
        found = [word for word, frequent in known if word in frequent]
        return bool(found) and (len(found) == len(known) or min(map(len, found)) <= MAX_STOP_WORD)

    def rows(self) -> Iterator[dict[str, Any]]:
        """
        Yields every sentence and word with several translations: a row per translation, most frequent first, with its
        count, its places and its most frequent spelling.
        """
        # Sentences first.
        for (kind, _), translations in sorted(self._found.items(), key=lambda item: item[0][0]):
            ordered = sorted(translations.values(), key=lambda each: -each.texts.total())
            for each in ordered if len(ordered) > 1 else ():
                times = each.texts.total()
                more = [f"and {times - len(each.places)} more"] if times > len(each.places) else []
                source, text = (spellings.most_common(1)[0][0] for spellings in (each.sources, each.texts))
                places = "; ".join([*dict.fromkeys(each.places), *more])
                yield dict(zip(COLUMNS, (source, text, kind, times, places), strict=True))

    def to_tsv(self) -> str:
        """Returns the rows as tab-separated values with a header."""
        return tab_separated(COLUMNS, self.rows())


def _linked_words(sentence: str, translation: str, alignment: Alignment) -> Iterator[tuple[str, str]]:
    """
    Yields pairs of words with the maximum weight for each other. A sentence of one word has none: it is compared as a
    sentence.

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
    Returns the words of a text. Characters of scripts without spaces, and fragments of words with combining marks, are
    empty strings.

    >>> _words("two 本"), _words("cafe\\u0301 noir")
    (['two', ''], ['', 'noir'])
    """
    words = []
    for match in WORD.finditer(text):
        around = text[max(match.start() - 1, 0) : match.start()] + text[match.end() : match.end() + 1]
        is_part = any(unicodedata.category(each).startswith("M") for each in around)
        words.append("" if is_part or CHARACTER.match(match[0]) else match[0])
    return words
