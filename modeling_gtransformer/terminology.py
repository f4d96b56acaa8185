"""Strings that a translation must contain: placeholders, addresses, numbers and codes of its source, and terms."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from .numbers_and_codes import count_number, is_number, numbers_and_codes
from .plain_text import ADDRESS, LETTER, TEMPLATE_SYNTAX, WEB_ADDRESS, whole_words


# Every alternative starts with a character that it does not repeat, so matching is linear.
PLACEHOLDER = re.compile(
    # {n, plural, one {# file} other {# files}}, to a depth of three; {{ name|upper }}; {a:%Y-%m-%d}; {name}, ${name}
    r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,[^{}]*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}[^{}]*)*\}"
    rf"|{TEMPLATE_SYNTAX}"
    r"|\{[\w.!\[\]]*:(?=[^{}%]*%)[^{}]*\}"
    r"|[$%#]?\{\{?[ ]?[\w.:!\[\]<>,+#-]*[ ]?\}?\}"
    # %s, %5.2f, %*d, %1$s, %(user.name)s; "% s", but not "50 % d'accord"; %1, %L1 and %n of Qt; %%
    r"|%(?:\([^()%]+\)|\d{1,2}\$)?[-+#0]{0,4}(?:\d{1,9}|\*)?(?:\.(?:\d{1,9}|\*))?(?:hh|h|ll|l|z|j|t)?[sdiufgeoxXcrpG@](?!\w)"
    r"|(?<!\d)(?<!\d\s)%[ ][sdifgeoxX](?![\w'’])"
    r"|%L?[1-9]\d?(?!\w)|%n(?!\w)|%%"
    # $HOME; @name, but not in a mail address
    r"|(?<!\w)(?<!\d[ \u00a0])\$[a-z_][a-z0-9_]*|(?<![\w@.-])@[a-z_][a-z0-9_-]*(?![\w@])"
    r"|</?[a-z][^<>]*>"
    rf"|{ADDRESS.pattern}",
    re.IGNORECASE,
)
# Punctuation that does not belong to the address before it.
TRAILING = ".,;:!?)\"'»”"
IS_LETTER = re.compile(LETTER)


class Terminology:
    """
    Finds the strings that the translation of a sentence must contain.

    Args:
        glossary: terms of the source language and their translations. Terms match whole words. Terms and translations
            match regardless of case.

    Raises:
        ValueError: the glossary is not a mapping, has a blank entry, or has several translations of a term.
    """

    def __init__(self, glossary: Mapping[str, str] | None = None):
        glossary = glossary or {}
        self.glossary = _in_lower_case(glossary)
        lengths: dict[str, set[int]] = {}
        for term in glossary:
            lengths.setdefault(term.lower()[0], set()).add(len(term))
        # Longest first, so that a term takes precedence over its parts.
        self.lengths = {first: sorted(of_first, reverse=True) for first, of_first in lengths.items()}

    def required(self, sentence: str, keep_placeholders: bool = True, protected: Sequence[str] = ()) -> list[str]:
        """
        Lists the strings that the sentence's translation must contain, with repetitions.

        Args:
            protected: untranslated parts of the sentence, without terms.
        """
        placeholders = _placeholders(sentence) if keep_placeholders else []
        sentence = _without([*placeholders, *protected], sentence)
        numbers = numbers_and_codes(sentence) if keep_placeholders else []
        return [*placeholders, *numbers, *(self.glossary[term] for term in self._terms(sentence))]

    def terms(
        self, sentence: str, keep_placeholders: bool = True, protected: Sequence[str] = ()
    ) -> dict[str, list[str]]:
        """Returns the terms that `required` finds, in lower case and with repetitions, by their translations."""
        placeholders = _placeholders(sentence) if keep_placeholders and self.glossary else []
        terms: dict[str, list[str]] = {}
        for term in self._terms(_without([*placeholders, *protected], sentence)):
            terms.setdefault(self.glossary[term], []).append(term)
        return terms

    def _terms(self, sentence: str) -> Iterator[str]:
        """Yields the terms in a sentence, in lower case. The time depends on the number of lengths, not of terms."""
        if not self.glossary:
            return
        is_letter = [IS_LETTER.match(character) is not None for character in sentence] + [False]
        position = 0
        while position < len(sentence):
            found = 1
            if not (is_letter[position] and is_letter[position - 1]):
                for length in self.lengths.get(sentence[position].lower()[0], ()):
                    term, end = sentence[position : position + length].lower(), position + length
                    if end <= len(sentence) and term in self.glossary and not (is_letter[end - 1] and is_letter[end]):
                        found = length
                        yield term
                        break
            position += found


def _in_lower_case(glossary: Mapping[str, str]) -> dict[str, str]:
    """Checks the terms of a glossary, and returns their translations by terms in lower case."""
    if not isinstance(glossary, Mapping):
        raise ValueError(f"A glossary is a mapping of terms to translations, not a {type(glossary).__name__}.")
    translations: dict[str, str] = {}
    for term, translation in glossary.items():
        if not (term.strip() and translation.strip()):
            raise ValueError(f"The glossary has a blank entry: {term!r}, {translation!r}.")
        if (known := translations.setdefault(term.lower(), translation)) != translation:
            raise ValueError(f"The glossary translates {term!r} as {known!r} and as {translation!r}: remove one.")
    return translations


def _placeholders(sentence: str) -> list[str]:
    candidates = [_without_trailing(match[0]) for match in PLACEHOLDER.finditer(sentence)]
    # Without punctuation, "s://," is no address.
    return [words for words in candidates if PLACEHOLDER.fullmatch(words)]


def _without(parts: Sequence[str], sentence: str) -> str:
    """Replaces parts of a sentence by something without words."""
    for words in sorted({*parts} - {""}, key=len, reverse=True):
        sentence = sentence.replace(words, " | ")
    return sentence


def _without_trailing(placeholder: str) -> str:
    """Removes the punctuation of the sentence from a placeholder, except parentheses that the placeholder opens."""
    bare = placeholder.rstrip(TRAILING)
    while placeholder[len(bare) :].startswith(")") and bare.count("(") > bare.count(")"):
        bare += ")"
    return bare


def missing(required: Sequence[str], translation: str) -> list[str]:
    """Lists required strings that the translation lacks, with repetitions. Terms match regardless of case."""
    result = []
    for words, times in Counter(required).items():
        found = count_number(words, translation) if is_number(words) else len(occurrences(words, translation))
        result += [words] * (times - found)
    return result


def occurrences(words: str, translation: str) -> list[re.Match]:
    """Finds a required string that is not a number: a placeholder, not inside a longer one, or a term, regardless of
    case."""
    if PLACEHOLDER.fullmatch(words):
        return [*re.finditer(_unextended(words), translation)]
    return [*re.finditer(whole_words(words), translation, re.IGNORECASE)]


def _unextended(placeholder: str) -> str:
    """Returns a pattern that matches a placeholder, but not inside a longer one."""
    if WEB_ADDRESS.fullmatch(placeholder):
        before = r"(?<![A-Za-z])"  # an address may follow a digit
    else:
        before = r"(?<![A-Za-z0-9_])" if re.match(r"\w", placeholder) else ""
    behind = r"(?![A-Za-z0-9_])" if re.search(r"\w\Z", placeholder) else ""
    longer = r"(?![/?#&=%]+[A-Za-z0-9])" if ADDRESS.fullmatch(placeholder) else ""
    return before + re.escape(placeholder) + behind + longer
