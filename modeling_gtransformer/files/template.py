"""A file as a template: what is translated, in blocks of runs, and everything else, which stays byte for byte."""

import re
from collections.abc import Callable, Sequence

from .runs import Block, Run


# Those that part a word at the end of a line.
HYPHENS = ("\u2010", "\u00ad")


class TextFile:
    """
    Collects a file from its beginning to its end, then gives it back with other text in its runs.

    Args:
        escape: makes text safe to stand in the file.

    `blocks` are the paragraphs, in order: a sentence never goes beyond one.
    """

    def __init__(self, escape: Callable[[str], str] = str):
        self.escape = escape
        self.blocks: list[Block] = []
        # Strings as they are, or (block, run, the run in the file, line end and indentation behind it, its escape).
        self._parts: list[str | tuple[int, int, str, str, Callable[[str], str]]] = []
        # The number of the block that is not ended, if there is one.
        self._open: int | None = None

    def add(self, markup: str) -> None:
        """Adds markup, which stays as it is."""
        self._parts.append(markup)

    def add_text(self, raw: str, unescape: Callable[[str], str] = str) -> None:
        """Adds text to translate. A line end in it is a space to the reader; it returns at about the same place."""
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
        self._add_run(Run(text), raw, tail)

    def keep(self, raw: str, text: str) -> None:
        """Adds a part of a sentence that stays as it is, such as code or an image; the model reads `text` in its
        place."""
        self._add_run(Run(text, raw), raw, "")

    def add_aside(self, raw: str, text: str, escape: Callable[[str], str]) -> None:
        """A block in the midst of another, such as the description of an image."""
        self.blocks.append([Run(text)])
        self._parts.append((len(self.blocks) - 1, 0, raw, "", escape))

    def _add_run(self, run: Run, raw: str, tail: str) -> None:
        if self._open is None:
            self._open = len(self.blocks)
            self.blocks.append([])
        block = self.blocks[self._open]
        block.append(run)
        self._parts.append((self._open, len(block) - 1, raw, tail, self.escape))

    def end_block(self) -> None:
        """Ends the paragraph."""
        self._open = None

    def fill(self, blocks: Sequence[Sequence[str]]) -> str:
        """Returns the file with these texts for its runs."""
        result = []
        for part in self._parts:
            if isinstance(part, str):
                result.append(part)
                continue
            block, index, raw, tail, escape = part
            run, text = self.blocks[block][index], blocks[block][index]
            if run.markup is not None:
                result.append(text)
            elif text == run.text:
                result.append(raw)
            else:
                result.append(escape(text.rstrip(" ") if tail else text))
                following = "".join(blocks[block][index + 1 : index + 2])
                if tail and raw.endswith(HYPHENS) and text[-1:].isalnum() and following[:1].isalnum():
                    result.append(raw[-1])
            result.append(tail)
        return "".join(result)
