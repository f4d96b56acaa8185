"""Hard-wrapped text."""

import re
from itertools import pairwise

from ..plain_text import ADDRESS, ITEM
from .template import TextFile


# Indentation and quotation marks, words, and the line end.
LINE = re.compile(r"([^\S\r\n>]*(?:>[^\S\r\n>]*)*)([^\r\n]*)(\r\n|\r|\n|\Z)")


def read_wrapped(text: str) -> TextFile:
    """
    Reads hard-wrapped paragraphs, as in e-mails and manual pages. A blank line, a list item or a change of indentation
    begins a paragraph. The second line may instead align with the text of a list item, or be indented less than the
    first.
    """
    file = TextFile(drop_blank_lines=True)
    lines = [_line(*match.groups()) for match in LINE.finditer(text)]
    joined = [False, *_continuations(lines), False]
    for number, (indentation, words, tail) in enumerate(lines):
        if not joined[number]:
            item = ITEM.match(words)
            bullet = item.end() if item else 0
            file.add(indentation + words[:bullet])
            words = words[bullet:]
        if joined[number + 1]:
            file.add_line(words, tail + lines[number + 1][0], _without_justification)
            continue
        if words:
            file.add_line(words, "", _without_justification)
        file.end_block()
        file.add(tail)
    return file


def _line(indentation: str, words: str, line_end: str) -> tuple[str, str, str]:
    """Moves the white space after the words of a line to its line end."""
    bare = words.rstrip()
    return indentation, bare, words[len(bare) :] + line_end


def _has_words(words: str) -> bool:
    """Returns whether a line has a letter or a digit outside addresses."""
    return any(character.isalnum() for character in ADDRESS.sub("", words))


def _without_justification(line: str) -> str:
    return re.sub(r"(?<=\S)  (?=\S)", " ", line)


def _continuations(lines: list[tuple[str, str, str]]) -> list[bool]:
    """Returns for every line after the first whether it continues the previous line."""
    result: list[bool] = []
    for (indentation, words, _), (next_indentation, next_words, _) in pairwise(lines):
        item = ITEM.match(words)
        is_first = not (result and result[-1])
        width, next_width = len(indentation), len(next_indentation)
        fits = width == next_width or (is_first and (next_width == width + item.end() if item else next_width < width))
        fits = fits and indentation.count(">") == next_indentation.count(">")
        result.append(_has_words(words) and _has_words(next_words) and fits and not ITEM.match(next_words))
    return result
