"""Stop words and stemming."""

from .languages import english_name


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
