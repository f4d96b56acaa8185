"""Message catalogues of gettext (PO). Only untranslated messages change."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .languages import EXAMPLES, english_name, is_same_language, language_tag, numbers_of_forms, plural_forms_of
from .placeholders import has_same_placeholders, placeholders_of
from .runs import Block, Run


# A line with a quoted string, after a keyword or as the continuation of the previous string.
LINE = re.compile(r'\s*(?:(msgctxt|msgid_plural|msgid|msgstr(?:\[\d{1,9}\])?)\s*)?"([^"\\]*(?:\\.[^"\\]*)*)"\s*\Z')
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", '"': '"', "\\": "\\"}
ESCAPED = str.maketrans({character: f"\\{letter}" for letter, character in ESCAPES.items()})
UTF_8 = "text/plain; charset=UTF-8"


@dataclass
class _Message:
    """
    A message of a catalogue.

    Attributes:
        strings: for every keyword, its text and the range of its lines.
        flags: for every line of flags, its number and the flags other than `fuzzy`.
        is_fuzzy: whether the translation is fuzzy.
        previous: numbers of the lines with the previous message of a fuzzy translation.
    """

    strings: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    flags: dict[int, list[str]] = field(default_factory=dict)
    is_fuzzy: bool = False
    previous: list[int] = field(default_factory=list)

    @property
    def translations(self) -> dict[str, tuple[str, int, int]]:
        return {name: string for name, string in self.strings.items() if name.startswith("msgstr")}

    @property
    def sources(self) -> list[str]:
        """The message, and its plural if any."""
        return [self.strings[name][0] for name in ("msgid", "msgid_plural") if name in self.strings]

    @property
    def is_format(self) -> bool:
        flags = (flag for own in self.flags.values() for flag in own)
        return any(flag.endswith("-format") and not flag.startswith("no-") for flag in flags)


class Catalogue:
    """
    A PO file.

    `blocks` are the messages without a translation or with a fuzzy one; a plural has a block for each form. The
    translation of the singular becomes the form for the number one, the translation of the plural all other forms.
    Existing forms do not change. A template gets the plural forms of its language. New translations are wrapped only
    at line breaks.

    `fill` skips a translation with other placeholders, which would break the program. `untranslated` then lists the
    number of its block.

    Args:
        tgt_lang: language of the translation.
        mark_fuzzy: whether to mark new translations as fuzzy, for review.

    Raises:
        ValueError: the file is broken, or is for another language.
    """

    def __init__(self, text: str, tgt_lang: str | None = None, mark_fuzzy: bool = False):
        self._lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
        self._line_end = "\r\n" if "\r\n" in text else "\n"
        if not re.search(r"^[ \t]*msgid\s", text, re.MULTILINE):
            raise ValueError("no messages in it: there is no line that begins with msgid")
        messages = [*_messages(self._lines)]
        self._mark_fuzzy = mark_fuzzy
        headers = (each for each in messages if each.sources == [""] and "msgctxt" not in each.strings)
        self._header = next(headers, None)
        self._messages = [
            each
            for each in messages
            if each.sources[0] and (each.is_fuzzy or not all(text for text, _, _ in each.translations.values()))
        ]
        metadata = self._header.strings["msgstr"][0] if self._header else ""
        there, language = _field(metadata, "Language").partition("@")[0].replace("_", "-"), language_tag(tgt_lang)
        if language and english_name(there) and not is_same_language(there, language):
            raise ValueError(f"its language is {there}, but the translation is in {language}")
        self._new_fields = _new_fields(metadata, language, text.isascii())
        if any("msgid_plural" in each.strings for each in self._messages):
            plural_forms = _field(metadata, "Plural-Forms")
            if not plural_forms or "EXPRESSION" in plural_forms:  # a template
                self._new_fields["Plural-Forms"] = plural_forms = plural_forms_of(tgt_lang)
            self._numbers = numbers_of_forms(plural_forms)
        self.document_starts = [0]
        self.untranslated: list[int] = []
        self.blocks: list[Block] = [[Run(source)] for each in self._messages for source in each.sources]

    def fill(self, blocks: Sequence[Sequence[str]]) -> str:
        """Returns the catalogue with these translations."""
        rest = iter(enumerate(text for [text] in blocks))
        lines = [*self._lines]
        self.untranslated = []
        for message in self._messages:
            numbers, translations = zip(*(next(rest) for _ in message.sources), strict=True)
            pairs = zip(message.sources, translations, strict=True)
            if all(has_same_placeholders(*pair, message.is_format) for pair in pairs):
                self._replace(lines, message, translations)
            else:
                self.untranslated.append(numbers[0])
        if lines != self._lines:
            self._add_fields(lines)
        return "".join(lines)

    def _replace(self, lines: list[str], message: _Message, translations: Sequence[str]) -> None:
        places = [*message.translations.values()]
        first, last = places[0][1], places[-1][2]
        forms = [self._string("msgstr", translations[0])]
        if "msgid_plural" in message.strings:
            forms = [
                self._old_form(message, f"msgstr[{form}]")
                or self._string(f"msgstr[{form}]", translations[0 if _is_singular(message, numbers) else 1])
                for form, numbers in enumerate(self._numbers)
            ]
        lines[first:last] = ["".join(forms), *[""] * (last - first - 1)]
        for number in message.previous:
            lines[number] = ""
        for number, flags in message.flags.items():
            lines[number] = self._flags(flags + ["fuzzy"] * (self._mark_fuzzy and number == min(message.flags)))
        if self._mark_fuzzy and not message.flags:
            start = min(start for _, start, _ in message.strings.values())
            lines[start] = self._flags(["fuzzy"]) + lines[start]

    def _old_form(self, message: _Message, name: str) -> str:
        """Returns the lines of a translated plural form, or an empty string."""
        text, start, stop = message.strings.get(name, ("", 0, 0))
        return "" if message.is_fuzzy or not text else "".join(self._lines[start:stop])

    def _add_fields(self, lines: list[str]) -> None:
        before, start, stop = self._header.strings["msgstr"] if self._header else ("", 0, 0)
        text = before
        # Any character set contains ASCII, so an ASCII file keeps its declaration.
        is_ascii = all(map(str.isascii, lines))
        for name, value in self._new_fields.items():
            if name != "Content-Type" or not is_ascii:
                old = re.search(rf"(?m)^{name}:.*\n?", text)
                place, end = old.span() if old else (len(text), len(text))
                text = f"{text[:place]}{name}: {value}\n{text[end:]}"
        if text != before:
            entry = self._string("msgstr", text)
            new = entry if self._header else self._string("msgid", "") + entry + self._line_end
            lines[start:stop] = [new, *[""] * (stop - start - 1)]

    def _string(self, keyword: str, text: str) -> str:
        """Returns a keyword and its text, with one quoted string per line of the text."""
        parts = re.findall(r"[^\n]*\n|[^\n]+", text) or [""]
        parts = ["", *parts] if len(parts) > 1 else parts
        return f"{keyword} " + "".join(f'"{part.translate(ESCAPED)}"{self._line_end}' for part in parts)

    def _flags(self, flags: Sequence[str]) -> str:
        return f"#, {', '.join(flags)}{self._line_end}" if flags else ""


def _messages(lines: Sequence[str]) -> Iterator[_Message]:
    """
    Yields the messages of a catalogue, except those that are commented out.

    Raises:
        ValueError: a line has no place in a catalogue, or a message lacks its translation or repeats it.
    """
    message, name = _Message(), ""
    for number, line in enumerate(lines):
        if not line.strip() or line.lstrip().startswith("#~"):
            if not message.strings:
                message, name = _Message(), ""
            continue
        found = LINE.match(line)
        is_comment = line.lstrip().startswith("#")
        if message.translations and (is_comment or (found and found[1] in ("msgctxt", "msgid"))):
            yield message
            message = _Message()
        if is_comment:
            _add_comment(message, number, line.strip())
            continue
        if found is None and re.match(r"\s*(msg|\")", line):
            raise ValueError(f"line {number + 1} has no string in quotation marks: {line[:200]!r}")
        if found is None or (not found[1] and not name) or found[1] in message.strings:
            raise ValueError(f"line {number + 1} has no place in a catalogue: {line[:200]!r}")
        name = found[1] or name
        if "msgid" not in message.strings and name not in ("msgctxt", "msgid"):
            raise ValueError(f"line {number + 1} has no message before it: {line[:200]!r}")
        if name.startswith("msgstr") and ("[" in name) != ("msgid_plural" in message.strings):
            raise ValueError(f"line {number + 1}: msgstr[0] and others follow msgid_plural, and msgstr follows msgid")
        before, start, _ = message.strings.get(name, ("", number, number))
        message.strings[name] = before + _unescape(found[2]), start, number + 1
    if message.translations:
        yield message
    elif message.strings:
        raise ValueError("the last message ends without msgstr")


def _add_comment(message: _Message, number: int, comment: str) -> None:
    if comment.startswith("#,"):
        flags = [flag.strip() for flag in comment[2:].split(",") if flag.strip()]
        message.flags[number] = [flag for flag in flags if flag != "fuzzy"]
        message.is_fuzzy |= "fuzzy" in flags
    elif comment.startswith("#|"):
        message.previous.append(number)


def _unescape(string: str) -> str:
    return re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[1]), string)


def _field(header: str, name: str) -> str:
    found = re.search(rf"^{name}:(.*)$", header, re.MULTILINE)
    return found[1].strip() if found else ""


def _new_fields(header: str, language: str | None, is_ascii: bool) -> dict[str, str]:
    """Returns missing header fields: the language, and a character set for the translation."""
    new = {}
    if not _field(header, "Language") and language:
        new["Language"] = language.replace("-", "_")
    content_type = _field(header, "Content-Type")
    # A file with non-ASCII characters is written in the encoding it was read in.
    if not content_type or (is_ascii and not re.search("charset=utf-?8", content_type, re.IGNORECASE)):
        new["Content-Type"] = re.sub(r"(charset=)\S*", r"\1UTF-8", content_type) or UTF_8
    return new


def _is_singular(message: _Message, numbers: Sequence[int]) -> bool:
    """
    Returns whether a plural form translates the singular. This requires that it applies to 1. If it also applies to
    other numbers, such as 21 and 31 in Serbian, the singular must have the placeholders of the plural.
    """
    if 1 not in numbers or len(numbers) == EXAMPLES:
        return False
    singular, plural = message.sources
    return len(numbers) == 1 or not placeholders_of(plural) - placeholders_of(singular)
