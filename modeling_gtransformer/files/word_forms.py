"""Words of a language: the most frequent ones, and the stems of the others."""

from collections.abc import Callable
from types import ModuleType

from .languages import english_name


# Babel distinguishes two kinds of Norwegian; the libraries do not.
KNOWN_AS = {"norwegian bokmål": "norwegian", "norwegian nynorsk": "norwegian"}


def stop_words(language: str | None) -> frozenset[str]:
    """
    Returns the most frequent words of a language in lower case; none for a language that stop-words does not know.

    Raises:
        ImportError: a library is missing.

    >>> "the" in stop_words("en_XX"), "cat" in stop_words("en_XX"), len(stop_words(None))
    (True, False, 0)
    """
    library, _ = _libraries()
    try:
        return frozenset(map(str.lower, library.get_stop_words(_name(language))))
    except library.StopWordError:
        return frozenset()


def stemmer(language: str | None) -> Callable[[str], str]:
    """
    Returns a function from a word in lower case to its stem, or to itself in a language that Snowball does not know.

    Raises:
        ImportError: a library is missing.

    >>> stemmer("de_DE")("hunde"), stemmer("de_DE")("hund"), stemmer(None)("hunde")
    ('hund', 'hund', 'hunde')
    """
    _, library = _libraries()
    name = _name(language)
    return library.stemmer(name).stemWord if name in library.algorithms() else str


def _name(language: str | None) -> str:
    """Returns the name by which both libraries know a language."""
    name = english_name(language)
    return KNOWN_AS.get(name, name)


def _libraries() -> tuple[ModuleType, ModuleType]:
    """Imports the lists of words and the stemmers."""
    try:
        import babel  # noqa: F401 (it knows the names of languages)
        import snowballstemmer
        import stop_words as lists
    except ModuleNotFoundError as error:
        raise ImportError(f"Comparing words needs {error.name}: pip install 'gtransformer-hf[files]'") from error
    return lists, snowballstemmer
