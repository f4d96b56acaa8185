"""What files say of their language: its tag, the direction of its script, and its plural forms."""

import re
from gettext import c2py
from typing import Any

from ..plain_text import language_code


# No language has more than six forms of a plural.
MOST_FORMS = 10
# Numbers, from 0, for which the form of a plural is looked up.
EXAMPLES = 200
# Scripts from right to left, as they stand in codes such as `arb_Arab`.
RIGHT_TO_LEFT = frozenset({"Adlm", "Arab", "Hebr", "Nkoo", "Syrc", "Thaa"})


def language_tag(language: str | None) -> str | None:
    """
    The tag of a language by BCP 47, or `None` of what is no code.

    >>> language_tag("de_DE"), language_tag("[en]"), language_tag("en_XX"), language_tag("[target]")
    ('de-DE', 'en', 'en', None)
    """
    if language_code(language) is None:
        return None
    return (language or "").strip("[]").replace("_", "-").removesuffix("-XX")


def text_direction(tag: str) -> str:
    """
    "rtl" for a language that is written from right to left, or else "ltr".

    >>> text_direction("ar-AR"), text_direction("arb-Arab"), text_direction("de")
    ('rtl', 'rtl', 'ltr')
    """
    if any(part in RIGHT_TO_LEFT for part in tag.split("-")):
        return "rtl"
    locale = _locale(tag)
    return locale.text_direction if locale else "ltr"


def is_same_language(tag: str, other: str) -> bool:
    """
    Tells whether two tags are of one language, wherever it is spoken.

    >>> is_same_language("de-AT", "deu-Latn"), is_same_language("de", "fr-FR"), is_same_language("x-a", "X-A")
    (True, False, True)
    """
    first, second = _locale(tag), _locale(other)
    known_as_one = bool(first and second) and first.language == second.language
    return known_as_one or tag.lower() == other.lower()


def english_name(language: str | None) -> str:
    """
    The name of a language in English, in lower case; an empty one if it is not known.

    >>> english_name("de_DE"), english_name("deu_Latn"), english_name("[target]")
    ('german', 'german', '')
    """
    locale = _locale(language_tag(language) or "")
    return (locale.get_language_name("en") or "").lower() if locale else ""


def plural_forms_of(language: str | None) -> str:
    """
    The header `Plural-Forms` of a language; that of English for `None`.

    >>> plural_forms_of("ja_XX"), plural_forms_of("fr")
    ('nplurals=1; plural=0;', 'nplurals=2; plural=(n > 1);')
    """
    locale = _locale(language_tag(language) or "en")
    return _babel().messages.plurals.get_plural(str(locale) if locale else "en").plural_forms


def numbers_of_forms(plural_forms: str) -> list[list[int]]:
    """
    For every form of a plural the numbers below 200 that it is for.

    Args:
        plural_forms: header of a catalogue.

    Raises:
        ValueError: the header cannot be read.

    >>> [numbers[:3] for numbers in numbers_of_forms("nplurals=2; plural=n != 1;")]
    [[1], [0, 2, 3]]
    """
    header = re.fullmatch(r"\s*nplurals\s*=\s*(\d{1,9})\s*;\s*plural\s*=\s*([^;]+);?\s*", plural_forms)
    if header is None or not 0 < int(header[1]) <= MOST_FORMS:
        raise ValueError(f"the header Plural-Forms cannot be read: {plural_forms[:200]!r}")
    forms: list[list[int]] = [[] for _ in range(int(header[1]))]
    try:
        form_of = c2py(header[2])
        for number in range(EXAMPLES):
            form = form_of(number)
            if 0 <= form < len(forms):
                forms[form].append(number)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"the header Plural-Forms cannot be read: {plural_forms[:200]!r}: {error}") from error
    return forms


def _babel() -> Any:
    """The library that knows languages."""
    try:
        import babel.messages.plurals
    except ImportError as error:
        raise ImportError("Languages in files need babel: pip install babel") from error
    return babel


def _locale(tag: str) -> Any:
    """What Babel knows of a language, or `None`."""
    babel = _babel()
    for code in (tag, tag.split("-")[0]):
        try:
            return babel.Locale.parse(code, sep="-")
        except (ValueError, babel.UnknownLocaleError):
            continue
    return None
