"""Languages in files: tags, text direction and plural forms."""

import re
from gettext import c2py
from typing import Any

from ..plain_text import language_code


# Upper bound on the plural forms of a catalogue; no language has more than six.
MAX_FORMS = 10
# Plural forms are evaluated for the numbers below this.
EXAMPLES = 200
# Right-to-left scripts, as in codes such as `arb_Arab`.
RIGHT_TO_LEFT = frozenset({"Adlm", "Arab", "Hebr", "Nkoo", "Syrc", "Thaa"})


def language_tag(language: str | None) -> str | None:
    """
    Returns the BCP 47 tag of a language; `None` if the argument is not a language code.

    >>> language_tag("de_DE"), language_tag("[en]"), language_tag("en_XX"), language_tag("[target]")
    ('de-DE', 'en', 'en', None)
    """
    if language_code(language) is None:
        return None
    return (language or "").strip("[]").replace("_", "-").removesuffix("-XX")


def text_direction(tag: str) -> str:
    """Returns "rtl" for languages written from right to left, otherwise "ltr"."""
    if any(part in RIGHT_TO_LEFT for part in tag.split("-")):
        return "rtl"
    locale = _locale(tag)
    return locale.text_direction if locale else "ltr"


def is_same_language(tag: str, other: str) -> bool:
    """
    Returns whether two tags denote one language, in any country.

    >>> is_same_language("de-AT", "deu-Latn"), is_same_language("de", "fr-FR"), is_same_language("x-a", "X-A")
    (True, False, True)
    """
    languages = [locale.language if (locale := _locale(each)) else each.lower() for each in (tag, other)]
    # Norwegian is usually Bokmål.
    first, second = ("nb" if language == "no" else language for language in languages)
    return first == second


def english_name(language: str | None) -> str:
    """Returns the English name of a language in lower case; an empty string if it is unknown."""
    locale = _locale(language_tag(language) or "")
    return (locale.get_language_name("en") or "").lower() if locale else ""


def plural_forms_of(language: str | None) -> str:
    """Returns the header `Plural-Forms` for a language; that of English for unknown languages."""
    locale = _locale(language_tag(language) or "en")
    return _babel().messages.plurals.get_plural(str(locale) if locale else "en").plural_forms


def numbers_of_forms(plural_forms: str) -> list[list[int]]:
    """
    Returns, for every plural form, the numbers below 200 that use it.

    Args:
        plural_forms: header `Plural-Forms` of a catalogue.

    Raises:
        ValueError: the header is invalid.

    >>> [numbers[:3] for numbers in numbers_of_forms("nplurals=2; plural=n != 1;")]
    [[1], [0, 2, 3]]
    """
    header = re.fullmatch(r"\s*nplurals\s*=\s*(\d{1,9})\s*;\s*plural\s*=\s*([^;]+);?\s*", plural_forms)
    if header is None or not 0 < int(header[1]) <= MAX_FORMS:
        raise ValueError(f"invalid header Plural-Forms: {plural_forms[:200]!r}")
    forms: list[list[int]] = [[] for _ in range(int(header[1]))]
    try:
        form_of = c2py(header[2])
        for number in range(EXAMPLES):
            form = form_of(number)
            if 0 <= form < len(forms):
                forms[form].append(number)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"invalid header Plural-Forms: {plural_forms[:200]!r}: {error}") from error
    return forms


def _babel() -> Any:
    try:
        import babel.messages.plurals
    except ImportError as error:
        raise ImportError("Languages in files need babel: pip install babel") from error
    return babel


def _locale(tag: str) -> Any:
    babel = _babel()
    for code in (tag, tag.split("-")[0]):
        try:
            return babel.Locale.parse(code, sep="-")
        except (ValueError, babel.UnknownLocaleError):
            continue
    return None
