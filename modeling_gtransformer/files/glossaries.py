"""Glossary files: tab-separated values, CSV and TBX."""

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
from .xml_tokens import XML, XmlTree, xml_tokens


# Elements of TBX 2 and TBX 3.
CONCEPTS, LANGUAGES = frozenset({"termEntry", "conceptEntry"}), frozenset({"langSet", "langSec"})
PREFERRED = "preferredTerm-admn-sts"
# Status of terms that a translation must not use.
NOT_USED = frozenset({"deprecatedTerm-admn-sts", "supersededTerm-admn-sts", "forbidden", "obsolete"})


@dataclass(frozen=True)
class Concept:
    """
    Terms with one meaning.

    Attributes:
        place: its place in the file, for messages.
        terms: terms by language tag, each with its status or an empty string. In a file without languages, the tags
            are "source" and "target".
    """

    place: str
    terms: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def terms_in(self, tag: str) -> list[tuple[str, str]]:
        """Returns the terms in a language, preferring its country, each with its status."""
        same = (terms for own, terms in self.terms.items() if is_same_language(own, tag))
        return self.terms.get(tag) or next(same, [])

    def translation(self, tag: str) -> str:
        """Returns the preferred term in a language, else its first permitted one, else an empty string."""
        usable = [entry for entry in self.terms_in(tag) if entry[1] not in NOT_USED]
        return min(usable, key=lambda entry: entry[1] != PREFERRED, default=("", ""))[0]


@dataclass(frozen=True)
class Glossary:
    """
    A glossary.

    Attributes:
        name: its name, for messages.
        names_languages: whether the file declares the language of each term.
    """

    name: str
    concepts: list[Concept]
    names_languages: bool = False

    def between(self, src_lang: str | None, tgt_lang: str | None, required: bool = True) -> dict[str, str]:
        """
        Returns the terms of one language with their translations into another.

        Args:
            required: whether to raise an error if there are none.

        Raises:
            ValueError: a term has several translations, or no concept has terms in both languages.
        """
        tags = (language_tag(src_lang), language_tag(tgt_lang)) if self.names_languages else ("source", "target")
        source, target = (tag or "" for tag in tags)
        if required and not (source and target):
            raise ValueError("it has terms in several languages: choose two with src_lang and tgt_lang")
        glossary: dict[str, str] = {}
        known: dict[str, str] = {}  # in lower case: matching ignores case
        for concept in self.concepts:
            translation = concept.translation(target)
            if not translation:
                continue
            for term, _ in concept.terms_in(source):
                if known.setdefault(term.lower(), translation) != translation:
                    raise ValueError(f"{concept.place}: {term!r} already has another translation")
                glossary[term] = translation
        if required and self.concepts and not glossary:
            known_tags = ", ".join(sorted({tag for concept in self.concepts for tag in concept.terms}))
            raise ValueError(f"no concept has terms in both {source} and {target}; its languages are {known_tags}")
        return glossary


def read_glossary(path: str | Path) -> Glossary:
    """
    Reads a glossary by its extension.

    - `.csv`: a term and its translation per line, separated by a comma or semicolon.
    - `.tbx`: TBX 2 or 3.
    - Any other: a term, a tab and its translation per line. Quotation marks belong to the terms.

    Blank lines are skipped. A report of [`Consistency`] becomes a glossary once its unwanted lines are deleted.

    Raises:
        ValueError: the file is not a glossary, or a term has several translations; the message names the place.
    """
    text = decode(Path(path).read_bytes()).removeprefix("\ufeff")
    extension = Path(path).suffix.lower()
    if extension == ".tbx":
        return Glossary(str(path), _concepts(text), names_languages=True)
    glossary = Glossary(str(path), _comma_separated(text) if extension == ".csv" else list(_lines(text, "\t")))
    glossary.between(None, None)
    return glossary


def _lines(text: str, separator: str) -> Iterator[Concept]:
    name = {",": "comma", ";": "semicolon", "\t": "tab"}[separator]
    is_report = next(csv.reader([text.partition("\n")[0]], delimiter=separator), []) == COLUMNS
    # Tab-separated glossaries do not quote terms.
    is_plain = separator == "\t" and not is_report
    quoting: dict[str, Any] = {"quoting": csv.QUOTE_NONE} if is_plain else {"strict": True}
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


def _comma_separated(text: str) -> list[Concept]:
    """Reads CSV with commas, or with the semicolons that some spreadsheets write: the one that divides all lines."""
    found: dict[str, list[Concept]] = {}
    errors: dict[str, ValueError] = {}
    for separator in ",;":
        try:
            found[separator] = list(_lines(text, separator))
        except ValueError as error:
            errors[separator] = error
    if not errors and found[","]:
        raise ValueError(
            "both commas and semicolons divide all lines in two: put terms that contain either in quotation marks"
        )
    if found:
        return next(iter(found.values()))
    # Some line is wrong. The separator of the first line leads to a message about it.
    first = next(line for line in text.splitlines() if line.strip())
    raise errors[";" if ";" in first and "," not in first else ","]


def _concepts(text: str) -> list[Concept]:
    """
    Returns the concepts of a TBX file.

    Raises:
        ValueError: the file has no concepts, or a term is empty or has no language.
    """
    tree = XmlTree(xml_tokens(text))
    concepts: list[Concept] = []
    language = ""
    for position, token in enumerate(tree.tokens):
        if token.kind != "start":
            continue
        name = token.get("type") if token.name[1] == "termNote" else token.name[1]
        if name in CONCEPTS:
            identifier, language = token.get("id"), ""
            concepts.append(Concept(f"concept {len(concepts) + 1}" + (f" ({identifier})" if identifier else "")))
        elif name in LANGUAGES:
            language = token.get("lang", XML)
        elif name in ("term", "administrativeStatus") and concepts:
            _add_term(concepts[-1], name == "term", language, " ".join(tree.words(position).split()))
    if not concepts:
        raise ValueError("not TBX: it has neither termEntry nor conceptEntry")
    return concepts


def _add_term(concept: Concept, is_term: bool, language: str, words: str) -> None:
    """Adds a term to its concept, or sets the status of its last term."""
    terms = concept.terms.setdefault(language, [])
    if not is_term:
        terms[-1:] = [(term, words) for term, _ in terms[-1:]]
    elif not language or not words:
        raise ValueError(f"{concept.place}: a term {'is empty' if language else 'has no language'}")
    else:
        terms.append((words, ""))
