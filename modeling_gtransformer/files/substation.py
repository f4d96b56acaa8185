"""SubStation Alpha subtitles (SSA, ASS)."""

import re

from .subtitles import LINE, PAUSE, TIME, add_dialogue, seconds
from .template import TextFile


SECTION = re.compile(r"\s*\[([^\]]*)\]\s*\Z")
TIMING = re.compile(TIME)
# Default fields of an event. The text is last and may contain commas.
FIELDS = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"]
# Override tags and line breaks.
MARKUP = re.compile(r"(?<!\\)(?P<tags>\{[^{}]*\})|\\[Nn]")
ESCAPED = re.compile(r"\\([h{}])")
# A backslash that would form a line break, a space or a tag with the next character.
SPECIAL = re.compile(r"\\(?=[Nnh{}]|\Z)")


def read_substation(text: str) -> TextFile:
    """
    Reads an SSA or ASS file. Dialogue is translated, with tags such as `{\\i1}` as boundaries between runs and `\\N`
    as a line break. A sentence may span several events of one style and speaker, like cues in SubRip. Comments,
    drawings, styles and other sections do not change.

    Raises:
        ValueError: the file has no dialogue, or a time is invalid.
    """
    file = TextFile(_escape)
    fields, section = FIELDS, ""
    begun = ended = 0.0
    spoken = None
    # The last match is an empty line.
    for number, match in enumerate(LINE.finditer(text), 1):
        line, line_end = match.groups()
        kind, _, values = line.partition(":")
        kind = kind.strip().lower() if section == "events" else ""
        if heading := SECTION.match(line):
            section = heading[1].strip().lower()
        elif kind == "format":
            fields = [name.strip().lower() for name in values.split(",")]
            if fields[-1] != "text" or not {"start", "end"} <= {*fields}:
                raise ValueError(f"line {number} must list Start and End, and Text as the last field: {line[:200]!r}")
        elif kind == "dialogue":
            parts = values.split(",", len(fields) - 1)
            if len(parts) < len(fields):
                raise ValueError(f"line {number} has {len(parts)} fields, not {len(fields)}: {line[:200]!r}")
            event = {name: part.strip() for name, part in zip(fields, parts, strict=True)}
            start, stop = (_time(event[name], number, line) for name in ("start", "end"))
            speaker = event.get("style"), event.get("name")
            if speaker != spoken or start <= begun or start - ended >= PAUSE:
                file.end_block()
            file.add(line[: len(line) - len(parts[-1])])
            add_dialogue(file, parts[-1], line_end, MARKUP, _unescape)
            begun, ended, spoken = start, stop, speaker
            continue
        file.add(line + line_end)
    if spoken is None:
        raise ValueError("no subtitles in it: there is no line that begins with Dialogue: under [Events]")
    return file


def _time(value: str, number: int, line: str) -> float:
    time = TIMING.fullmatch(value)
    if time is None:
        raise ValueError(f"line {number} has an invalid time {value[:50]!r}: {line[:200]!r}")
    return seconds(time.groups())


def _unescape(raw: str) -> str:
    return ESCAPED.sub(lambda mark: "\u00a0" if mark[1] == "h" else mark[1], raw)


def _escape(text: str) -> str:
    """Escapes text. A word joiner separates a backslash from a character that it would change."""
    safe = SPECIAL.sub("\\\\\u2060", text).replace("{", "\\{").replace("}", "\\}")
    return safe.replace("\u00a0", "\\h")
