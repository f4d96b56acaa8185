"""Message catalogues of gettext: messages without a translation get one."""

import re
from collections.abc import Sequence

from .runs import Block, Run


class Catalogue:
    """
    A PO file. `blocks` are the messages that have no translation yet, or a fuzzy one; of a plural both forms. The
    translation of the singular is the first form, that of the plural all others; forms that are there stay. `polib`
    writes the file, with the same messages and comments, wrapped and ordered in its way.

    Raises:
        ImportError: polib is not installed.
        ValueError: the file is broken.
    """

    def __init__(self, text: str):
        try:
            import polib
        except ImportError as error:
            raise ImportError("PO files need polib: pip install polib") from error
        if not re.search(r"^\s*msgid\s", text, re.MULTILINE):
            raise ValueError("no messages in it: there is no line that begins with msgid")
        for number, line in enumerate(text.splitlines(), 1):
            if re.match(r"\s*(msg|\")", line) and not re.search(r'"(?:[^"\\]|\\.)*"\s*$', line):
                raise ValueError(f"line {number} has no string in quotation marks: {line!r}")
        try:
            # Unwrapped files stay so.
            self._file = polib.pofile(text, wrapwidth=max(78, *map(len, text.splitlines())))
        except OSError as error:
            raise ValueError(str(error)) from error
        self._line_end = "\r\n" if "\r\n" in text else "\n"
        self._begins_with_comment = text.lstrip().startswith("#")
        forms = re.search(r"nplurals\s*=\s*(\d+)", self._file.metadata.get("Plural-Forms", ""))
        self._plurals = int(forms[1]) if forms else 2
        self._entries = [entry for entry in self._file if not entry.obsolete and not entry.translated()]
        self.blocks: list[Block] = [
            [Run(message)] for entry in self._entries for message in (entry.msgid, entry.msgid_plural) if message
        ]

    def fill(self, blocks: Sequence[Sequence[str]]) -> str:
        """The catalogue with these translations."""
        translations = iter(text for [text] in blocks)
        for entry in self._entries:
            singular = next(translations)
            if entry.msgid_plural:
                plural = next(translations)
                kept = {} if entry.fuzzy else {form: text for form, text in entry.msgstr_plural.items() if text}
                forms = {form: plural if form else singular for form in range(self._plurals)}
                entry.msgstr_plural = forms | kept
            else:
                entry.msgstr = singular
            entry.flags = [flag for flag in entry.flags if flag != "fuzzy"]
        catalogue = str(self._file)
        # polib begins every file with a comment.
        catalogue = catalogue if self._begins_with_comment else catalogue.removeprefix("#\n")
        return catalogue.replace("\n", self._line_end)
