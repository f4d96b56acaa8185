"""Subtitles (SubRip, WebVTT)."""

import html
import re
from collections.abc import Callable
from functools import partial

from ..plain_text import ITEM
from .character_references import unescape
from .template import TextFile


TIME = r"(?:(\d{1,9}):)?(\d\d):(\d\d)[.,](\d{1,3})"
TIMING = re.compile(rf"[ \t]*{TIME}[ \t]*-->[ \t]*{TIME}(?:[ \t][^\r\n]*)?[ \t]*(?:\r\n|\r|\n|\Z)")
LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
# Blocks of WebVTT that are not cues.
NO_CUE = re.compile(r"(?:NOTE|STYLE|REGION)(?!\S)(?:[^\r\n]+|(?:\r\n|\r|\n)(?=[^\r\n]))*")
# `<i>`, `</font>`, `<00:01:02.000>` of WebVTT, `{\an8}` of SubRip.
TAG = re.compile(r"(?P<tags></?[a-zA-Z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\})")
# A tag that begins or ends a drawing in SubStation Alpha.
DRAWING = re.compile(r"\\p(\d)")
SENTENCE_END = re.compile(r"[.!?…。！？♪][\"'”’»)\]]*\Z")
# A pause of this many seconds ends a sentence.
PAUSE = 3.0


def read_subtitles(text: str) -> TextFile:
    """
    Reads subtitles. Only the text of cues changes. Sentences may span several cues. They end within a cue, at the end
    of a cue with final punctuation, before a dash that marks another speaker, or at a pause of three seconds.

    Args:
        text: a SubRip or WebVTT file.

    Raises:
        ValueError: the file has no cues, or a timing is invalid.
    """
    is_vtt = text.startswith("WEBVTT")
    file = TextFile(partial(html.escape, quote=False)) if is_vtt else TextFile()
    position, ended, cues = 0, None, 0
    while position < len(text):
        if timing := TIMING.match(text, position):
            start, stop = (seconds(timing.groups()[side : side + 4]) for side in (0, 4))
            if ended is None or start - ended >= PAUSE:
                file.end_block()
            file.add(timing[0])
            position = _read_cue(file, text, timing.end(), is_vtt)
            ended, cues = stop, cues + 1
        elif is_vtt and (block := NO_CUE.match(text, position)):
            file.add(block[0])
            position = block.end()
        elif cues and not is_vtt and not _ends_cue(text, position):
            # After a blank line, but still part of the previous cue.
            position = _read_cue(file, text, position, is_vtt)
        else:
            words, line_end = _line(text, position)
            if "-->" in words:
                raise ValueError(f"line {_line_number(text, position)} is not the timing of a subtitle: {words!r}")
            file.add(words + line_end)
            position += len(words) + len(line_end)
    if not cues:
        raise ValueError("no subtitles in it: there is no line such as 00:00:01,000 --> 00:00:02,500")
    return file


def _line(text: str, position: int) -> tuple[str, str]:
    """Returns the words of the line at a position, and its line end with the white space before it."""
    line, line_end = LINE.match(text, position).groups()  # type: ignore[union-attr]  # any text has a line
    words = line.rstrip(" \t")
    return words, line[len(words) :] + line_end


def _ends_cue(text: str, position: int) -> bool:
    """Returns whether a blank line, a timing or the number before one starts at a position."""
    words, line_end = _line(text, position)
    after = position + len(words) + len(line_end)
    return not words or "-->" in words or (words.isdigit() and "-->" in _line(text, after)[0])


def _read_cue(file: TextFile, text: str, position: int, is_vtt: bool) -> int:
    """Adds the lines of a cue. Returns the position after it."""
    while position < len(text) and not _ends_cue(text, position):
        words, line_end = _line(text, position)
        add_dialogue(file, words, line_end, TAG, unescape if is_vtt else str)
        position += len(words) + len(line_end)
    return position


def add_dialogue(
    file: TextFile, words: str, line_end: str, markup: re.Pattern[str], unescape: Callable[[str], str]
) -> None:
    """
    Adds a line of a cue, or a whole event of SubStation Alpha. The next one continues after a space.

    Args:
        markup: matches tags, in the group `tags`, and line breaks.
    """
    plain = markup.sub(" ", words).rstrip()
    if ITEM.match(plain):
        file.end_block()
    done, is_drawing = 0, False
    for start, stop, tail, tags in [*map(_parts, markup.finditer(words)), (len(words), len(words), line_end, "")]:
        raw, done = words[done:start], stop
        if is_drawing:
            file.add(raw + tail)
        elif raw or tail:
            file.add_line(raw, tail, unescape)
        file.add(tags)
        is_drawing = ([is_drawing] + [digit != "0" for digit in DRAWING.findall(tags)])[-1]
    if SENTENCE_END.search(plain):
        file.end_block()


def _parts(mark: re.Match[str]) -> tuple[int, int, str, str]:
    """Returns the place of markup in its line, and its characters as a line break and as tags."""
    return (*mark.span(), "" if mark["tags"] else mark[0], mark["tags"] or "")


def _line_number(text: str, position: int) -> int:
    return len(re.findall(r"\r\n|\r|\n", text[:position])) + 1


def seconds(time: tuple[str | None, ...]) -> float:
    """
    Converts hours, minutes, seconds and decimals to seconds.

    >>> seconds(("1", "00", "02", "50"))
    3602.5
    """
    hours, minutes, whole = (int(part or 0) for part in time[:3])
    return 3600 * hours + 60 * minutes + whole + float(f"0.{time[3]}")
