"""Message catalogues of gettext, in which messages without a translation get one."""

import re
from collections.abc import Sequence
from typing import Any

from .languages import EXAMPLES, language_tag, numbers_of_forms, plural_forms_of
from .placeholders import has_same_placeholders, placeholders_of
from .runs import Block, Run


# A line with one string in quotation marks.
STRING = re.compile(r'[^"]*"[^"\\]*(?:\\.[^"\\]*)*"\s*\Z')
UTF_8 = "text/plain; charset=UTF-8"


class Catalogue:
    """
    A PO file. `blocks` are the messages that have no translation yet, or only a fuzzy one; for a plural, both forms.
    The translation of the singular becomes the form for the number one, that of the plural all others; existing forms
    do not change. A message does not change either if its translation has other placeholders, which would break the
    program. A template gets the plural forms of its language. `polib` writes the file, with the same messages and
    comments, wrapped and ordered in its own way.

    Args:
        tgt_lang: language of the translation.
        mark_fuzzy: whether to mark new translations as fuzzy, for review.

    Raises:
        ImportError: polib is not installed.
        ValueError: the file is broken.
    """

    def __init__(self, text: str, tgt_lang: str | None = None, mark_fuzzy: bool = False):
        try:
            import polib
        except ImportError as error:
            raise ImportError("PO files need polib: pip install polib") from error
        if not re.search(r"^[ \t]*msgid\s", text, re.MULTILINE):
            raise ValueError("no messages in it: there is no line that begins with msgid")
        for number, line in enumerate(text.splitlines(), 1):
            if re.match(r"\s*(msg|\")", line) and not STRING.match(line):
                raise ValueError(f"line {number} has no string in quotation marks: {line[:200]!r}")
        try:
            # Unwrapped files stay unwrapped.
            self._file = polib.pofile(text, wrapwidth=max([78, *map(len, text.splitlines())]))
        except OSError as error:
            raise ValueError(str(error)) from error
        self._line_end = "\r\n" if "\r\n" in text else "\n"
        self._begins_with_comment = text.lstrip().startswith("#")
        self._mark_fuzzy = mark_fuzzy
        self._entries = [
            entry for entry in self._file if entry.msgid and not entry.obsolete and not entry.translated()
        ]
        self._new_header = _new_header(self._file.metadata, language_tag(tgt_lang))
        if any(entry.msgid_plural for entry in self._entries):
            plural_forms = self._file.metadata.get("Plural-Forms", "")
            if not plural_forms or "EXPRESSION" in plural_forms:  # a template
                self._new_header["Plural-Forms"] = plural_forms = plural_forms_of(tgt_lang)
            self._numbers = numbers_of_forms(plural_forms)
        self.document_starts = [0]
        self.blocks: list[Block] = [
            [Run(message)] for entry in self._entries for message in (entry.msgid, entry.msgid_plural) if message
        ]

    def fill(self, blocks: Sequence[Sequence[str]]) -> str:
        """Returns the catalogue with these translations."""
        rest = iter(text for [text] in blocks)
        for entry in self._entries:
            messages = [message for message in (entry.msgid, entry.msgid_plural) if message]
            translations = [next(rest) for _ in messages]
            is_format = any(flag.endswith("-format") and not flag.startswith("no-") for flag in entry.flags)
            pairs = zip(messages, translations, strict=True)
            if not all(has_same_placeholders(*pair, is_format) for pair in pairs):
                continue
            if entry.msgid_plural:
                old = {} if entry.fuzzy else {form: text for form, text in entry.msgstr_plural.items() if text}
                entry.msgstr_plural = {
                    form: translations[0 if _is_singular(entry, numbers) else 1]
                    for form, numbers in enumerate(self._numbers)
                } | old
            else:
                [entry.msgstr] = translations
            entry.previous_msgctxt = entry.previous_msgid = entry.previous_msgid_plural = None
            entry.flags = [flag for flag in entry.flags if flag != "fuzzy"] + ["fuzzy"] * self._mark_fuzzy
        if self._entries:
            # Any character set contains ASCII, so an ASCII file keeps its own.
            is_ascii = str(self._file).isascii()
            new = {name: text for name, text in self._new_header.items() if name != "Content-Type" or not is_ascii}
            self._file.metadata.update(new)
        catalogue = str(self._file)
        # polib begins every file with a comment.
        catalogue = catalogue if self._begins_with_comment else catalogue.removeprefix("#\n")
        return catalogue.replace("\n", self._line_end)


def _new_header(header: dict[str, str], language: str | None) -> dict[str, str]:
    """Returns the fields that a header lacks: the language, and a character set for the translation."""
    new = {}
    if not header.get("Language") and language:
        new["Language"] = language.replace("-", "_")
    content_type = header.get("Content-Type", "")
    if not re.search("charset=utf-?8", content_type, re.IGNORECASE):
        new["Content-Type"] = re.sub(r"(charset=)\S*", r"\1UTF-8", content_type) or UTF_8
    return new


def _is_singular(entry: Any, numbers: Sequence[int]) -> bool:
    """
    Returns whether the form for some numbers comes from the singular: if it is only for 1, or if it is for 1 among
    others, as in Serbian for 21 and 31, and the singular names the number as the plural does.
    """
    if 1 not in numbers or len(numbers) == EXAMPLES:
        return False
    return len(numbers) == 1 or not placeholders_of(entry.msgid_plural) - placeholders_of(entry.msgid)
