"""A file as a template: what is translated, as blocks of runs, and everything else, which stays byte for byte."""

import re
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from .borders import Style
from .runs import Block, Run


# Hyphens that divide a word at the end of a line.
HYPHENS = ("\u2010", "\u00ad")
# Number of nested formats that are distinguished.
DEEPEST = 8


class TextFile:
    """
    Collects a file from beginning to end, then returns it with other text in its runs.

    Args:
        escape: makes text safe in the file.
        drop_blank_lines: whether to drop a line that its translation leaves blank, as it would end the paragraph.

    `blocks` are the paragraphs, in order; a sentence never extends beyond one. `document_starts` are the numbers of
    those that begin a document.
    """

    def __init__(self, escape: Callable[[str], str] = str, drop_blank_lines: bool = False):
        self.escape, self.drop_blank_lines = escape, drop_blank_lines
        self.blocks: list[Block] = []
        self.document_starts = [0]
        # The formats of the text that comes next.
        self.style: Style = ()
        # Parts where words may move, and the formats there.
        self._rooms: list[tuple[int, Style]] = []
        self._parts: list[str | _Continuation | _FilePart | _Reading] = []
        # Places of the readings in the paragraph that has not ended.
        self._readings: list[int] = []
        # The number of the block that has not ended, if there is one.
        self._open: int | None = None

    def add(self, markup: str) -> None:
        """Adds markup, which stays as it is."""
        self._parts.append(markup)

    def add_continuation(self, markup: str) -> None:
        """Adds markup before a further line of a paragraph, which is dropped together with that line."""
        self._parts.append(_Continuation(markup))

    def add_reading(self, markup: str) -> None:
        """Adds what is above words, and is removed when their paragraph is translated."""
        self._readings.append(len(self._parts))
        self._parts.append(markup)

    def add_text(self, raw: str, unescape: Callable[[str], str] = str) -> None:
        """Adds text to translate. A line end in it reads as a space, and is put back at about the same place."""
        done = 0
        for end in re.finditer(r"[\r\n][ \t\r\n]*", raw):
            line = raw[done : end.start()].rstrip(" \t")
            self.add_line(line, raw[done + len(line) : end.end()], unescape)
            done = end.end()
        if done < len(raw):
            self.add_line(raw[done:], "", unescape)

    def add_line(self, raw: str, tail: str, unescape: Callable[[str], str] = str) -> None:
        """Adds a line to translate, and the characters between it and the next line of its paragraph. A typographic
        hyphen at its end divides a word."""
        text = unescape(raw)
        if tail:
            text = text[:-1] if text.endswith(HYPHENS) else f"{text} "
        self._add_run(Run(text, style=self.style), raw, tail)

    def open_style(self, name: Hashable) -> None:
        """Begins a format, whose markup comes next. Words may move before it."""
        if len(self.style) < DEEPEST:
            self._add_room()
            self.style = (*self.style, name)

    def close_style(self, name: Hashable) -> None:
        """Ends a format, whose markup has just been added. Words may move after it."""
        if name in self.style:
            self.style = tuple(other for other in self.style if other != name)
            self._add_room()

    def _add_room(self) -> None:
        """Marks a place for an empty run, in case there is no run of its style beside it."""
        self._rooms.append((len(self._parts), self.style))
        self._parts.append("")

    def _make_room(self, number: int, following: Style | None = None) -> None:
        """Adds the empty runs that are needed before a run of a style, or at the end of a block."""
        block = self.blocks[number]
        for place, style in self._rooms:
            is_beside = bool(block) and block[-1].markup is None and block[-1].style == style
            if not is_beside and style != following:
                block.append(Run("", style=style))
                self._parts[place] = _FilePart(number, len(block) - 1, "", "", self.escape)
        self._rooms.clear()

    def keep(self, raw: str, text: str) -> None:
        """Adds a part of a sentence that stays as it is, such as code or an image; the model reads `text` instead."""
        self._add_run(Run(text, raw), raw, "")

    def add_aside(self, raw: str, text: str, escape: Callable[[str], str]) -> None:
        """Adds a block inside another, such as the description of an image."""
        self.blocks.append([Run(text)])
        self._parts.append(_FilePart(len(self.blocks) - 1, 0, raw, "", escape))

    def _add_run(self, run: Run, raw: str, tail: str) -> None:
        if self._open is None:
            self._open = len(self.blocks)
            self.blocks.append([])
        self._make_room(self._open, run.style if run.markup is None else None)
        block = self.blocks[self._open]
        block.append(run)
        self._parts.append(_FilePart(self._open, len(block) - 1, raw, tail, self.escape))

    def end_block(self) -> None:
        """Ends the paragraph."""
        if self._open is not None:
            self._make_room(self._open)
            for place in self._readings:
                self._parts[place] = _Reading(str(self._parts[place]), self._open)
        self._rooms.clear()
        self._readings.clear()
        self._open = None

    def begin_document(self) -> None:
        """Ends the paragraph and the document: what follows is translated without what came before."""
        self.end_block()
        if self.document_starts[-1] < len(self.blocks):
            self.document_starts.append(len(self.blocks))

    def has_words(self, number: int) -> bool:
        """Tells whether a part of the file is a run that is not blank."""
        part = self._parts[number]
        return isinstance(part, _FilePart) and bool(part.raw.strip())

    def source_of(self, number: int) -> str:
        """Returns the characters of a part in the file as it was."""
        part = self._parts[number]
        if isinstance(part, _FilePart):
            return part.raw + part.tail
        return part.markup if isinstance(part, _Reading) else part

    def fill(self, blocks: Sequence[Sequence[str]]) -> str:
        """Returns the file with these texts for its runs."""
        return "".join(self.filled_parts(blocks))

    def filled_parts(self, blocks: Sequence[Sequence[str]]) -> list[str]:
        """Returns the parts of the file, in order, with these texts for its runs."""
        # The last run of every block that is not left blank, and the last one that was not blank.
        last = [_last_words(texts) for texts in blocks]
        before = [[run.text for run in block] for block in self.blocks]
        last_before = list(map(_last_words, before))
        result: list[str] = []
        is_dropped = False
        for part in self._parts:
            if isinstance(part, _FilePart):
                run, text = self.blocks[part.block][part.number], blocks[part.block][part.number]
                filled = self._filled(part, run, text, "".join(blocks[part.block][part.number + 1 : part.number + 2]))
                is_blank = bool(run.text.strip()) and not text.strip()
                is_last = part.number == last[part.block] < last_before[part.block]
                is_dropped = self.drop_blank_lines and bool(part.tail) and (is_blank or is_last)
                if not is_dropped:
                    filled += part.tail
                elif part.number < last[part.block] and (filled or "".join(result[-1:]))[-1:].strip():
                    filled += " "
                result.append(filled)
            elif isinstance(part, _Reading):
                result.append(part.markup if list(blocks[part.block]) == before[part.block] else "")
            else:
                result.append("" if is_dropped and isinstance(part, _Continuation) else str(part))
        return result

    def _filled(self, part: "_FilePart", run: Run, text: str, following: str) -> str:
        """Returns what stands for a run in the file, without the line end after it."""
        if run.markup is not None:
            return text
        if text == run.text:
            return part.raw
        filled = part.escape(text.rstrip(" ") if part.tail else text)
        is_divided = part.tail and part.raw.endswith(HYPHENS) and text[-1:].isalnum() and following[:1].isalnum()
        return filled + part.raw[-1] if is_divided else filled


def _last_words(texts: Sequence[str]) -> int:
    """Returns the number of the last text that is not blank, or -1."""
    return max((number for number, text in enumerate(texts) if text.strip()), default=-1)


class _Continuation(str):
    """Markup before a further line of a paragraph."""


class _Reading(NamedTuple):
    """Markup that stays only if its block is unchanged."""

    markup: str
    block: int


class _FilePart(NamedTuple):
    """A run in the file: its numbers, its characters, what follows up to the next line, and what makes text safe."""

    block: int
    number: int
    raw: str
    tail: str
    escape: Callable[[str], str]
