"""A file as a template: blocks of runs to translate, and markup that is preserved byte for byte."""

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from .runs import Block, Run, Style


# Hyphens that split a word at the end of a line.
HYPHENS = ("\u2010", "\u00ad")
# Maximum depth of nested formats; deeper ones are ignored.
MAX_STYLES = 8


class TextFile:
    """
    Collects a file from beginning to end, then returns it with other text in its runs.

    Args:
        escape: escapes text for the file.
        drop_blank_lines: whether to drop the end of a line that its translation leaves blank, which would end the
            paragraph.

    Attributes:
        blocks: the paragraphs, in order; sentences do not cross them.
        document_starts: numbers of the blocks that begin a document.
        style: formats of the next text.
    """

    def __init__(self, escape: Callable[[str], str] = str, drop_blank_lines: bool = False):
        self.escape, self.drop_blank_lines = escape, drop_blank_lines
        self.blocks: list[Block] = []
        self.document_starts = [0]
        self.style: Style = ()
        self._parts: list[str | _FilePart] = []
        # State of the open paragraph: the number of its block, or `None` without text; parts where words may move,
        # with their formats; parts that are readings.
        self._open: int | None = None
        self._insertions: list[tuple[int, Style]] = []
        self._readings: list[int] = []
        # The blocks of the readings in ended paragraphs.
        self._reading_blocks: dict[int, int] = {}
        # Parts that begin and end a link, and the first parts of open links.
        self._links: list[tuple[int, int]] = []
        self._open_links: dict[Hashable, int] = {}
        # State of the paragraphs around it.
        self._outer: list[tuple[Style, int | None, list[tuple[int, Style]], list[int]]] = []

    def add(self, markup: str) -> None:
        """Adds markup, which is preserved."""
        self._parts.append(markup)

    def add_reading(self, markup: str) -> None:
        """Adds a ruby reading. It is removed when its paragraph is translated."""
        self._readings.append(len(self._parts))
        self._parts.append(markup)

    def add_text(self, raw: str, unescape: Callable[[str], str] = str) -> None:
        """Adds text to translate. The model reads a line end as a space; the file keeps it at a similar place."""
        done = 0
        for end in re.finditer(r"[\r\n][ \t\r\n]*", raw):
            line = raw[done : end.start()].rstrip(" \t")
            self.add_line(line, raw[done + len(line) : end.end()], unescape)
            done = end.end()
        if done < len(raw):
            self.add_line(raw[done:], "", unescape)

    def add_line(self, raw: str, tail: str, unescape: Callable[[str], str] = str) -> None:
        """
        Adds a line to translate, and the characters up to the words of the next line of its paragraph. A typographic
        hyphen at its end splits a word.
        """
        text = unescape(raw)
        if tail:
            text = text[:-1] if text.endswith(HYPHENS) else f"{text} "
        self._add_run(Run(text, style=self.style), raw, tail)

    def add_element(self, raw: str, text: str, escape: Callable[[str], str]) -> int:
        """Adds text with the markup around it, which `escape` writes as well. Returns the number of the part."""
        return self._add_run(Run(text, style=self.style), raw, escape=escape)

    def add_copy(self, number: int, raw: str) -> None:
        """Adds a copy of the text of another part."""
        part = self._parts[number]
        self._parts.append(part._replace(raw=raw) if isinstance(part, _FilePart) else raw)

    def add_protected(self, raw: str, text: str, is_movable: bool = True) -> None:
        """Adds a preserved part of a sentence, such as code or an image. The model reads `text`."""
        self._add_run(Run(text, raw if is_movable else ""), raw if is_movable else "")
        if not is_movable:
            self.add(raw)

    def add_aside(self, raw: str, text: str, escape: Callable[[str], str]) -> None:
        """Adds a block inside another, such as the description of an image."""
        self.blocks.append([Run(text)])
        self._parts.append(_FilePart(len(self.blocks) - 1, 0, raw, "", escape))

    def open_style(self, name: Hashable) -> None:
        """Begins a format before its markup. Words may move in front of it."""
        if len(self.style) < MAX_STYLES:
            self._add_insertion()
            self.style = (*self.style, name)

    def close_style(self, name: Hashable) -> None:
        """Ends a format after its markup. Words may move behind it."""
        if name in self.style:
            self.style = tuple(other for other in self.style if other != name)
            self._add_insertion()

    def open_link(self, name: Hashable) -> None:
        """Begins a link, which is a format. A link without translated words keeps its text."""
        self._open_links[name] = len(self._parts)
        self.open_style(name)

    def close_link(self, name: Hashable) -> None:
        """Ends a link after its markup."""
        start = self._open_links.pop(name, None)
        if start is not None and not self._open_links:
            self._links.append((start, len(self._parts)))
        self.close_style(name)

    def end_block(self) -> None:
        if self._open is not None:
            self._use_insertions(self._open)
            self._reading_blocks |= dict.fromkeys(self._readings, self._open)
        self._open, self._insertions, self._readings = None, [], []

    def open_paragraph(self) -> None:
        """Begins a paragraph that may be nested in another."""
        self._outer.append((self.style, self._open, self._insertions, self._readings))
        self.style, self._open, self._insertions, self._readings = (), None, [], []

    def close_paragraph(self) -> None:
        """Ends a paragraph and continues the outer one."""
        self.end_block()
        self.style, self._open, self._insertions, self._readings = self._outer.pop()

    def begin_document(self) -> None:
        """Ends the paragraph and the document. Documents are translated independently."""
        self.end_block()
        if self.document_starts[-1] < len(self.blocks):
            self.document_starts.append(len(self.blocks))

    def _runs_with_words(self, first: int, stop: int) -> "Iterator[tuple[int, _FilePart]]":
        """Yields the runs among these parts that are not blank, with their numbers."""
        for number in range(first, stop):
            part = self._parts[number]
            if isinstance(part, _FilePart) and part.raw.strip():
                yield number, part

    def own_texts(self) -> list[list[str]]:
        """Returns the texts that leave the file unchanged."""
        return [[run.text if run.markup is None else run.markup for run in block] for block in self.blocks]

    def fill(self, blocks: Sequence[Sequence[str]]) -> str:
        return "".join(self.filled_parts(blocks))

    def filled_parts(self, blocks: Sequence[Sequence[str]]) -> list[str]:
        """Returns the parts of the file, in order, with these texts for its runs."""
        before = self.own_texts()
        last, last_before = ([*map(_last_words, texts)] for texts in (blocks, before))
        result: list[str] = []
        for part in self._parts:
            if isinstance(part, str):
                result.append(part)
                continue
            block, number = part.block, part.number
            filled = self._filled(part, blocks[block][number], "".join(blocks[block][number + 1 : number + 2]))
            is_blank = bool(before[block][number].strip()) and not blocks[block][number].strip()
            is_last = number == last[block] < last_before[block]
            if not (self.drop_blank_lines and (is_blank or is_last)):
                filled += part.tail
            elif part.tail and number < last[block] and (filled or "".join(result[-1:]))[-1:].strip():
                filled += " "
            result.append(filled)
        for place, block in self._reading_blocks.items():
            if list(blocks[block]) != before[block]:
                result[place] = ""
        for begin, end in self._links:
            self._restore_link(result, begin, end)
        return result

    def _restore_link(self, result: list[str], first: int, last: int) -> None:
        """Restores the text of a link that its translation leaves without words."""
        runs = [*self._runs_with_words(first, last)]
        if runs and not any(result[number].strip() for number, _ in runs):
            for number, part in runs:
                result[number] = part.raw + part.tail
            result[first] = " " * character_before(result, first).isalnum() + result[first]
            result[last - 1] += " " * character_behind(result, last - 1).isalnum()

    def _filled(self, part: "_FilePart", text: str, following: str) -> str:
        """Returns the characters of a run in the file, without its line end."""
        run = self.blocks[part.block][part.number]
        if run.markup is not None:
            return text
        if text == run.text:
            return part.raw
        filled = part.escape(text.rstrip(" ") if part.tail else text)
        is_divided = part.tail and part.raw.endswith(HYPHENS) and text[-1:].isalnum() and following[:1].isalnum()
        return filled + part.raw[-1] if is_divided else filled

    def _add_run(self, run: Run, raw: str, tail: str = "", escape: Callable[[str], str] | None = None) -> int:
        if self._open is None:
            self._open = len(self.blocks)
            self.blocks.append([])
        self._use_insertions(self._open, run.style if run.markup is None else None)
        block = self.blocks[self._open]
        block.append(run)
        self._parts.append(_FilePart(self._open, len(block) - 1, raw, tail, escape or self.escape))
        return len(self._parts) - 1

    def _add_insertion(self) -> None:
        """Marks a place for an empty run, used if the runs beside it have other styles."""
        self._insertions.append((len(self._parts), self.style))
        self._parts.append("")

    def _use_insertions(self, number: int, following: Style | None = None) -> None:
        """Adds empty runs where needed before a run of a style, or at the end of a block."""
        block = self.blocks[number]
        for place, style in self._insertions:
            is_beside = bool(block) and block[-1].markup is None and block[-1].style == style
            if not is_beside and style != following:
                block.append(Run("", style=style))
                self._parts[place] = _FilePart(number, len(block) - 1, "", "", self.escape)
        self._insertions = []


def character_before(parts: Sequence[str], stop: int) -> str:
    """Returns the last character before a part, or an empty string."""
    return next((parts[number][-1] for number in range(stop - 1, -1, -1) if parts[number]), "")


def character_behind(parts: Sequence[str], start: int) -> str:
    """Returns the first character after a part, or an empty string."""
    return next((parts[number][0] for number in range(start + 1, len(parts)) if parts[number]), "")


def _last_words(texts: Sequence[str]) -> int:
    """Returns the number of the last text that is not blank, or -1."""
    return max((number for number, text in enumerate(texts) if text.strip()), default=-1)


class _FilePart(NamedTuple):
    """A run in the file: its block and number, its characters, the line end after it, and the escape function."""

    block: int
    number: int
    raw: str
    tail: str
    escape: Callable[[str], str]
