"""Subtitles (SubRip, WebVTT)."""

import html
import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from ..plain_text import ITEM
from .character_references import unescape
from .template import TextFile


TIME = r"(?:(\d{1,9}):)?(\d\d):(\d\d)[.,](\d{1,3})"
TIMING = re.compile(rf"[ \t]*{TIME}[ \t]*-->[ \t]*{TIME}(?:[ \t][^\r\n]*)?")
LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
# The first line of blocks of WebVTT that are not cues.
NOTE = re.compile(r"(?:NOTE|STYLE|REGION)(?!\S)")
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
    ended: float | None = None
    is_note = is_cue = False
    # The last match is an empty line.
    for number, (match, following) in enumerate(pairwise(LINE.finditer(text)), 1):
        line, line_end = match.groups()
        words = line.rstrip(" \t")
        is_note = is_vtt and bool(line) and (is_note or (("-->" in line or not is_cue) and bool(NOTE.match(line))))
        if is_note:
            file.add(match[0])
        elif timing := TIMING.fullmatch(line):
            start, stop = (seconds(timing.groups()[side : side + 4]) for side in (0, 4))
            if ended is None or start - ended >= PAUSE:
                file.end_block()
            file.add(match[0])
            ended, is_cue = stop, True
        elif "-->" in words:
            raise ValueError(f"line {number} is not the timing of a subtitle: {words!r}")
        elif is_cue and words and not (words.isdigit() and "-->" in following[1]):
            add_dialogue(file, line, line_end, TAG, unescape if is_vtt else str)
        else:
            file.add(match[0])
            # In SubRip, text after a blank line still belongs to the previous cue.
            is_cue = is_cue and not is_vtt
    if ended is None:
        raise ValueError("no subtitles in it: there is no line such as 00:00:01,000 --> 00:00:02,500")
    return file


def add_dialogue(
    file: TextFile, line: str, line_end: str, markup: re.Pattern[str], unescape: Callable[[str], str]
) -> None:
    """
    Adds a line of a cue, or a whole event of SubStation Alpha. The next one continues after a space.

    Args:
        markup: matches tags, in the group `tags`, and line breaks.
    """
    words = line.rstrip()
    line_end = line[len(words) :] + line_end
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


def seconds(time: tuple[str | None, ...]) -> float:
    """
    Converts hours, minutes, seconds and decimals to seconds.

    >>> seconds(("1", "00", "02", "50"))
    3602.5
    """
    hours, minutes, whole = (int(part or 0) for part in time[:3])
    return 3600 * hours + 60 * minutes + whole + float(f"0.{time[3]}")
