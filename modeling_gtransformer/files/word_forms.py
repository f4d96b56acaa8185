"""What a language has of words: those that every text is full of, and forms that have one stem."""

from collections.abc import Callable

from .languages import english_name


NEEDED = "Comparing words needs stop-words and snowballstemmer: pip install stop-words snowballstemmer"


def stop_words(language: str | None) -> frozenset[str]:
    """
    The most frequent words of a language, in lower case; none of a language that stop-words does not know.

    Raises:
        ImportError: stop-words is missing.

    >>> "the" in stop_words("en_XX"), "cat" in stop_words("en_XX"), len(stop_words(None))
    (True, False, 0)
    """
    try:
        from stop_words import StopWordError, get_stop_words
    except ImportError as error:
        raise ImportError(NEEDED) from error
    try:
        return frozenset(map(str.lower, get_stop_words(english_name(language))))
    except StopWordError:
        return frozenset()


def stemmer(language: str | None) -> Callable[[str], str]:
    """
    What gives the stem of a word in lower case; the word itself in a language that Snowball does not know.

    Raises:
        ImportError: snowballstemmer is missing.

    >>> stemmer("de_DE")("hunde"), stemmer("de_DE")("hund"), stemmer(None)("hunde")
    ('hund', 'hund', 'hunde')
    """
    try:
        import snowballstemmer
    except ImportError as error:
        raise ImportError(NEEDED) from error
    name = english_name(language)
    return snowballstemmer.stemmer(name).stemWord if name in snowballstemmer.algorithms() else str
