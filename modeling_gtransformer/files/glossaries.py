"""Glossaries as files: tab-separated values, CSV and TBX."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .aligned_pairs import from_cell
from .consistency import COLUMNS
from .encoding import decode
from .languages import is_same_language, language_tag
from .xml_tokens import XML, XmlToken, ends_of, xml_tokens


# Elements of TBX in version 2 and in version 3.
CONCEPTS, LANGUAGES = frozenset({"termEntry", "conceptEntry"}), frozenset({"langSet", "langSec"})
PREFERRED = "preferredTerm-admn-sts"
# Terms that a translation must not use.
NOT_USED = frozenset({"deprecatedTerm-admn-sts", "supersededTerm-admn-sts", "forbidden", "obsolete"})


@dataclass(frozen=True)
class Concept:
    """
    What the terms of a glossary stand for.

    Attributes:
        place: name of its place in the file, for messages.
        terms: the terms by tags of languages, each with its status or an empty string; in a file that names no
            languages, the tags are "source" and "target".
    """

    place: str
    terms: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Glossary:
    """A glossary: its name, its concepts, and whether it says which languages its terms are in."""

    name: str
    concepts: list[Concept]
    names_languages: bool = False

    def between(self, src_lang: str | None, tgt_lang: str | None) -> dict[str, str]:
        """
        Returns the terms of one language and their translations into another: the preferred term of a concept, or else
        its first one, but never one that must not be used.

        Raises:
            ValueError: a term has several translations, or the glossary has no terms in these languages.
        """
        source, target = self._tags(src_lang, tgt_lang)
        if not source or not target:
            raise ValueError("it has terms in several languages: choose two with src_lang and tgt_lang")
        glossary: dict[str, str] = {}
        known: dict[str, str] = {}  # in lower case, as terms are found
        for concept in self.concepts:
            usable = _usable_terms(concept, target)
            usable.sort(key=lambda term: term[1] != PREFERRED)
            for term, _ in _terms_in(concept, source) if usable else ():
                if known.setdefault(term.lower(), usable[0][0]) != usable[0][0]:
                    raise ValueError(f"{concept.place}: {term!r} already has another translation")
                glossary[term] = usable[0][0]
        if self.concepts and not glossary:
            tags = ", ".join(sorted({tag for concept in self.concepts for tag in concept.terms}))
            raise ValueError(f"no concept has terms in both {source} and {target}; its languages are {tags}")
        return glossary

    def has_terms_between(self, src_lang: str | None, tgt_lang: str | None) -> bool:
        """Tells whether any concept has a term in one language, and one that may be used in the other."""
        source, target = self._tags(src_lang, tgt_lang)
        return any(_terms_in(concept, source) and _usable_terms(concept, target) for concept in self.concepts)

    def _tags(self, src_lang: str | None, tgt_lang: str | None) -> tuple[str, str]:
        """The keys of the terms in two languages; an empty string for an unknown language."""
        if not self.names_languages:
            return "source", "target"
        return language_tag(src_lang) or "", language_tag(tgt_lang) or ""


def _terms_in(concept: Concept, tag: str) -> list[tuple[str, str]]:
    """The terms in a language; those for the same country, if there are any."""
    found = [terms for own, terms in concept.terms.items() if is_same_language(own, tag)]
    return concept.terms.get(tag) or (found[0] if found else [])


def _usable_terms(concept: Concept, tag: str) -> list[tuple[str, str]]:
    """The terms in a language that a translation may use."""
    return [term for term in _terms_in(concept, tag) if term[1] not in NOT_USED]


def read_glossary(path: str | Path) -> Glossary:
    """
    Reads a glossary according to its ending: a term and its translation on every line, as CSV (`.csv`) or otherwise
    separated by a tab, in which case quotation marks belong to the terms; or TBX of version 2 or 3 (`.tbx`). Blank
    lines are skipped. A report of [`Consistency`] is also a glossary, once its unwanted lines have been deleted.

    Raises:
        ValueError: the file is not a glossary, or a term has several translations; the line or the concept is named.
    """
    text = decode(Path(path).read_bytes()).removeprefix("\ufeff")
    ending = Path(path).suffix.lower()
    if ending == ".tbx":
        return Glossary(str(path), list(_concepts(text)), names_languages=True)
    glossary = Glossary(str(path), list(_lines(text, ending == ".csv")))
    glossary.between(None, None)
    return glossary


def _lines(text: str, is_csv: bool) -> Iterator[Concept]:
    """Yields the concepts of a file with one on each line."""
    separator = _separator(text) if is_csv else "\t"
    name = {",": "comma", ";": "semicolon", "\t": "tab"}[separator]
    is_report = next(csv.reader([text.partition("\n")[0]], delimiter=separator), []) == COLUMNS
    # Between tabs, a quotation mark has no special meaning.
    quoting: dict[str, Any] = {"strict": True} if is_csv or is_report else {"quoting": csv.QUOTE_NONE}
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, **quoting)
    try:
        for row in reader:
            fields = [value.strip() for value in row]
            if not any(fields) or fields == COLUMNS:
                continue
            if is_report:
                fields = [from_cell(value) for value in fields[:2]]
            if len(fields) != 2 or not all(fields):
                raise ValueError(f"line {reader.line_num}: expected a term, a {name} and its translation, not {row}")
            yield Concept(f"line {reader.line_num}", {"source": [(fields[0], "")], "target": [(fields[1], "")]})
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from error


def _separator(text: str) -> str:
    """
    The comma, or the semicolon that some spreadsheets write instead: whichever divides all lines.

    Raises:
        ValueError: both do.
    """
    dividing = [separator for separator in ",;" if _divides(text, separator)]
    if len(dividing) == 2:
        raise ValueError(
            "both commas and semicolons divide all lines in two: put terms that contain either in quotation marks"
        )
    if dividing:
        return dividing[0]
    # Some line is wrong; with the separator of the first line, its error is found.
    first = next((line for line in text.splitlines() if line.strip()), "")
    return ";" if ";" in first and "," not in first else ","


def _divides(text: str, separator: str) -> bool:
    """Tells whether this separator divides all lines into the columns of a glossary or of the report."""
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        sizes = {len(row) for row in rows if any(map(str.strip, row))}
    except csv.Error:
        return False
    return bool(sizes) and sizes <= {2, len(COLUMNS)}


def _concepts(text: str) -> Iterator[Concept]:
    """Yields the concepts of a TBX file."""
    tokens = xml_tokens(text)
    ends = ends_of(tokens)
    number = position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.kind == "start" and token.name[1] in CONCEPTS:
            number += 1
            name = token.get("id")
            concept = Concept(f"concept {number}" + (f" ({name})" if name else ""))
            _add_terms(concept, tokens, ends, position)
            yield concept
            position = ends[position]
        position += 1
    if not number:
        raise ValueError("not TBX: it has neither termEntry nor conceptEntry")


def _add_terms(concept: Concept, tokens: list[XmlToken], ends: dict[int, int], start: int) -> None:
    """
    Adds the terms of an element to their concept, each in its language.

    Raises:
        ValueError: a term has no language, or is empty.
    """
    language, position = "", start
    while position < ends[start]:
        token = tokens[position]
        name = (token.get("type") or token.name[1]) if token.name[1] == "termNote" else token.name[1]
        if token.kind == "start" and name in LANGUAGES:
            language = token.get("lang", XML)
        elif token.kind == "start" and name in ("term", "administrativeStatus"):
            words = " ".join("".join(inner.words for inner in tokens[position : ends[position]]).split())
            terms = concept.terms.setdefault(language, [])
            if name == "administrativeStatus":
                terms[-1:] = [(term, words) for term, _ in terms[-1:]]
            elif not language or not words:
                raise ValueError(f"{concept.place}: a term {'is empty' if language else 'has no language'}")
            else:
                terms.append((words, ""))
            position = ends[position]
        position += 1
