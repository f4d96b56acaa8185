"""Subtitles, SubRip and WebVTT: only the text of the cues changes; a sentence may go through several of them."""

import re

from .plain_text import ITEM
from .text_file import TextFile


TIME = r"(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})"
TIMING = re.compile(rf"[ \t]*{TIME}[ \t]+-->[ \t]+{TIME}(?:[ \t][^\r\n]*)?[ \t]*(?:\r\n|\r|\n|\Z)")
LINE = re.compile(r"([^\r\n]*?)([ \t]*(?:\r\n|\r|\n|\Z))")
# `<i>`, `</font>`, `<00:01:02.000>` of WebVTT, `{\an8}` of SubRip.
TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}")
SENTENCE_END = re.compile(r"[.!?…。！？♪][\"'”’»)\]]*\Z")
# Seconds without a subtitle, after which another sentence begins.
PAUSE = 3.0


def read_subtitles(text: str) -> TextFile:
    """
    Args:
        text: a SubRip or WebVTT file. Sentences end within a cue, with it at a full stop or the like, before a dash
            that marks another speaker, or at a pause of three seconds.

    Raises:
        ValueError: there are no cues, or one has no timing that can be read.
    """
    file = TextFile()
    position, ended, cues = 0, None, 0
    while position < len(text):
        timing = TIMING.match(text, position)
        if timing is None:
            line = LINE.match(text, position)
            if line is None or "-->" in line[1]:
                number = len(re.findall(r"\r\n|\r|\n", text[:position])) + 1
                raise ValueError(f"line {number} is no timing of a subtitle: {line and line[1]!r}")
            file.add(line[0])
            position = line.end()
            continue
        start, stop = (_seconds(timing.groups()[side : side + 4]) for side in (0, 4))
        if ended is None or start - ended >= PAUSE:
            file.end_block()
        file.add(timing[0])
        position = _read_cue(file, text, timing.end())
        ended, cues = stop, cues + 1
    if not cues:
        raise ValueError("no subtitles in it: there is no line such as 00:00:01,000 --> 00:00:02,500")
    return file


def _read_cue(file: TextFile, text: str, position: int) -> int:
    """Adds the lines until a blank one; returns where they end."""
    while position < len(text):
        line = LINE.match(text, position)
        assert line is not None  # any text has a line
        if not line[1]:
            break
        words, place = line[1], 0
        if ITEM.match(words):
            file.end_block()
        for tag in TAG.finditer(words):
            if tag.start() > place:
                file.add_line(words[place : tag.start()], "")
            file.add(tag[0])
            place = tag.end()
        # The next line, or the next cue, goes on after a space.
        file.add_line(words[place:], line[2])
        if SENTENCE_END.search(TAG.sub("", words)):
            file.end_block()
        position = line.end()
    return position


def _seconds(time: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, thousandths = (int(part or 0) for part in time)
    return 3600 * hours + 60 * minutes + seconds + thousandths / 1000
