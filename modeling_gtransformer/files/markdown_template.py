"""A template for Markdown files. Marks of emphasis stay valid around other text."""

import operator
from collections.abc import Callable, Sequence
from itertools import accumulate

from .template import TextFile, character_before, character_behind


class MarkdownTemplate(TextFile):
    """
    A file with marks of emphasis. They adapt to the text inside: `****`, `** x**` and `a_b_` do not mark emphasis.
    """

    def __init__(self, escape: Callable[[str], str]):
        super().__init__(escape, drop_blank_lines=True)
        # Numbers of open formats, and of the parts that open them.
        self._open_marks: list[tuple[int, int]] = []
        # Numbers of the parts that open and close an emphasis, inner ones first.
        self._emphases: list[tuple[int, int]] = []

    def end_block(self) -> None:
        """Ends the paragraph and every open emphasis."""
        super().end_block()
        self._open_marks.clear()
        self.style = ()

    def open_emphasis(self, mark: str) -> None:
        """Adds a mark before emphasised text."""
        number = len(self._parts)
        self.open_style(number)
        self._open_marks.append((number, len(self._parts)))
        self.add(mark)

    def close_emphasis(self, mark: str) -> None:
        """Adds a mark after emphasised text."""
        if not self._open_marks:
            self.add(mark)
            return
        number, first = self._open_marks.pop()
        if any(self._runs_with_words(first, len(self._parts))):
            self._emphases.append((first, len(self._parts)))
        self.add(mark)
        self.close_style(number)

    def filled_parts(self, blocks: Sequence[Sequence[str]]) -> list[str]:
        """Returns the parts of the file with these texts for its runs and valid marks of emphasis."""
        parts = super().filled_parts(blocks)
        changes = [0, *accumulate(map(operator.ne, parts, super().filled_parts(self.own_texts())))]
        for first, last in self._emphases:
            # Words may move to the empty runs beside the marks, so compare up to the neighbours of those.
            if changes[max(first - 2, 0)] == changes[min(last + 3, len(parts))]:
                continue  # unchanged inside and beside
            inside = range(first + 1, last)
            begin = next((number for number in inside if parts[number].strip()), None)
            if begin is None:
                parts[first] = parts[last] = ""
                continue
            end = next(number for number in reversed(inside) if parts[number].strip())
            # Marks must touch words, so white space and line ends move outside.
            words = parts[begin].lstrip(" \t")
            parts[first] = parts[begin][: len(parts[begin]) - len(words)] + parts[first]
            parts[begin] = words
            tail = "" if isinstance(part := self._parts[end], str) else part.tail
            words = parts[end].removesuffix(tail).rstrip(" \t")
            later = (parts[number].lstrip(" \t")[:1] for number in range(last + 1, len(parts)))
            if next(filter(None, later), "") not in ("\n", "\r"):  # two line ends would end the paragraph
                parts[last] += parts[end][len(words) :]
            parts[end] = words
            before = character_before(parts, first) if parts[first][:1].strip() else ""
            behind = character_behind(parts, last) if parts[last][-1:].strip() else ""
            if before.isalnum() or behind.isalnum():
                # Underscores do not mark emphasis inside a word.
                parts[first], parts[last] = (parts[number].replace("_", "*") for number in (first, last))
        return parts
