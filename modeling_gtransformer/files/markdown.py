"""Markdown: paragraphs, headings, items, cells and footnotes, with emphasis and links as boundaries between runs."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, pairwise, takewhile
from typing import Any, NamedTuple

from ..plain_text import ADDRESS, TEMPLATE_SYNTAX
from .markdown_template import MarkdownTemplate


EMPHASIS = frozenset({"Emphasis", "Strong", "Strikethrough"})
# Blocks and parts of a sentence that are preserved.
SKIPPED = frozenset({"CodeBlock", "HtmlBlock", "MetadataBlock"})
PROTECTED = frozenset({"Code", "DisplayMath", "Image", "InlineMath"})
# Links with a text that is not also their address or label.
NAMED_LINKS = frozenset({"Inline", "Reference"})

# Line ends and tabs inside words come from references such as `&#10;`.
LINE_END = re.compile(r"[\t\r\n]")
LINE_BREAK = re.compile(rb"<br\s*/?>", re.IGNORECASE)
SPECIAL = re.compile(r"([\\`*_~\[\]<>|]|&(?=#?\w+;)|^[-+](?=\s)|^#(?=#{0,5}(?:\s|\Z))|^:(?=::))")
NUMBER = re.compile(r"^(\d{1,9})([.)])(?=\s|\Z)")
# Site generators and wikis interpret {{ name }}, {% tag %}, [[page]], [TOC] and --8<-- "file", which are preserved.
BRACES = rb"\{:?[ \t]*(?:[#.]|[\w-]+=)[^{}\n]*\}"
TEMPLATE = re.compile(
    (TEMPLATE_SYNTAX + r"|!?\[\[[^\[\]\n]+\]\](?![(\[])|^[ \t]*(?:\[TOC\][ \t]*(?=\r?$)|-+8<-+ [^\r\n]*)|").encode()
    + BRACES,
    re.MULTILINE,
)
# Attributes of the element before them: `# Title {#name}`, `[link](address){ .class key=value }`, `{: .note }`.
ATTRIBUTES = re.compile(
    rb"(?<=[)\]`*_])" + BRACES + rb"|^" + BRACES + rb"|" + BRACES + rb"(?=[ \t]*(?:\||\r?$))", re.MULTILINE
)
# A line that opens or closes a box: `!!! note "Title"` and `=== "Tab"` of MkDocs, `::: warning Title` of Pandoc and
# VitePress, `> [!NOTE] Title` of GitHub and Obsidian. The title is translated.
DIRECTIVE = re.compile(
    rb"^[ \t>]*(?P<mark>(?:(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?:[ \t]+(?:inline|end)\b)*|===[!+]?(?=[ \t]+\")"
    rb"|:{3,}[ \t]*[\w-]*(?:[ \t]*\{[^{}\n]*\})?|\[![\w-]+\][+-]?)(?!\S)[ \t]*)(?:\"[^\r\n]*(?P<end>\")[ \t]*\r?$)?",
    re.MULTILINE,
)


# A line of MkDocs whose body is indented by four spaces, and the fence of a code block.
INDENTED_BODY = re.compile(rb"(?:!!!|\?\?\?\+?)[ \t]+[\w-]|===[!+]?[ \t]+\"")
FENCE = re.compile(rb"(`{3,}|~{3,})")


class Event(NamedTuple):
    """An event of the parser: a kind, such as "Text" or "Start" of a tag, its words, and its place in bytes."""

    kind: str
    tag: str
    words: str
    start: int
    stop: int


class Mark(NamedTuple):
    """A "template", the "attributes" of an element, the mark of a "directive" or its "code", masked as a word for the
    parser."""

    start: int
    stop: int
    kind: str


def read_markdown(text: str) -> MarkdownTemplate:
    """
    Reads a Markdown file. Code, images, formulas, addresses, HTML and front matter (`---` or `+++`) are
    preserved.

    Raises:
        ImportError: pyromark is not installed.
    """
    try:
        from pyromark import Options, events_with_range
    except ImportError as error:
        raise ImportError("Markdown needs a parser: pip install pyromark") from error
    content = text.encode()
    masked = bytearray(content)
    code = _mask_indentation(masked)
    marks = _marks(content, code)
    for mark in marks:
        masked[mark.start : mark.stop] = b"x" * (mark.stop - mark.start)
    options = Options.ENABLE_TABLES | Options.ENABLE_STRIKETHROUGH | Options.ENABLE_FOOTNOTES | Options.ENABLE_MATH
    options |= Options.ENABLE_TASKLISTS | Options.ENABLE_YAML_STYLE_METADATA_BLOCKS
    options |= Options.ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS
    reader = _Reader(content, marks)
    end = Event("", "", "", len(content), len(content))
    for event, following in pairwise(chain(_events(events_with_range(masked.decode(), options=options)), [end])):
        reader.read(event, following.start)
    return reader.finish()


def _mask_indentation(content: bytearray) -> list[Mark]:
    """Masks the indentation of the bodies of admonitions and tabs as quotes, because the parser would take the bodies
    for code. Returns their blocks of code."""
    found: list[Mark] = []
    bodies: list[int] = []  # the indentations of the open bodies
    fence: tuple[bytes, int] | None = None  # the fence and the start of an open block of code in a body
    end = 0  # of its last line
    for line in re.finditer(rb"^([ ]*)([^ \r\n][^\r\n]*)", bytes(content), re.MULTILINE):
        width, words = len(line[1]), line[2]
        if fence:
            is_outside = width < bodies[-1]
            if is_outside or (words.rstrip().startswith(fence[0]) and not words.strip(fence[0][:1] + b" ")):
                found.append(Mark(fence[1], end if is_outside else line.end(), "code"))
                fence = None
            end = line.end()
            if not is_outside:
                continue
        while bodies and width < bodies[-1]:
            bodies.pop()
        for indentation in bodies:
            content[line.start() + indentation - 4 : line.start() + indentation] = b" >  "
        if INDENTED_BODY.match(words):
            bodies.append(width + 4)
        elif bodies and (opened := FENCE.match(words)) and (words[:1] == b"~" or b"`" not in words[opened.end() :]):
            fence, end = (opened[0], line.start(2)), line.end()
    if fence:
        found.append(Mark(fence[1], end, "code"))
    return found


def _marks(content: bytes, found: Iterable[Mark]) -> list[Mark]:
    """Returns templates and marks of directives beside those found, in order. Overlapping ones are dropped."""
    marks = [*found]
    marks += [Mark(*template.span(), "template") for template in TEMPLATE.finditer(content)]
    marks += [Mark(*attributes.span(), "attributes") for attributes in ATTRIBUTES.finditer(content)]
    for directive in DIRECTIVE.finditer(content):
        start, stop = directive.span("mark")
        marks.append(Mark(start, stop + (directive["end"] is not None), "directive"))
        if directive["end"]:
            marks.append(Mark(*directive.span("end"), "directive"))
    marks.sort()
    ends = [0, *(mark.stop for mark in marks)]
    return [mark for mark, end in zip(marks, ends, strict=False) if mark.start >= end]


def _events(found: Iterable[tuple[Any, Any]]) -> Iterator[Event]:
    """Yields the events of the parser, with each preserved part as one event."""
    events = (_event(*item) for item in found)
    for event in events:
        if event.kind == "Start" and event.tag in SKIPPED | PROTECTED:
            inside = takewhile(partial(_is_inside, event), events)
            event = Event(event.tag, "", "".join(other.words for other in inside), event.start, event.stop)
        yield event


def _is_inside(event: Event, other: Event) -> bool:
    return (other.kind, other.start, other.stop) != ("End", event.start, event.stop)


def _event(found: Any, place: Any) -> Event:
    kind, value = (found, "") if isinstance(found, str) else next(iter(found.items()))
    tag, details = next(iter(value.items())) if isinstance(value, dict) else (value, None)
    if kind not in ("Start", "End"):
        return Event(kind, "", value if isinstance(value, str) else "", place["start"], place["end"])
    if tag == "Link" and details and details["link_type"] not in NAMED_LINKS:
        tag = "Image"  # preserved as well
    return Event(kind, tag, "", place["start"], place["end"])


class _Reader:
    """Adds the text of a file, and the markup between the parser's events, to a template."""

    def __init__(self, content: bytes, marks: list[Mark]):
        self.content, self.marks = content, deque(marks)
        self.file = MarkdownTemplate(_escape)
        self.done = 0
        # The method that adds the markup before the next event: it may open an emphasis or link.
        self.add: Callable[[str], None] = self.file.add
        # Words of the current line, the place where it begins, and whether it belongs to a directive.
        self.words: list[str] = []
        self.start = 0
        self.is_directive = False

    def read(self, event: Event, following: int) -> None:
        """Reads an event. The following one begins at a place, or ends an element that began before it."""
        if event.kind == "Text":
            self._read_text(event)
        elif event.kind == "SoftBreak":
            is_escaped = self.content[following - 1 : following] == b"\\"
            self._end_line(max(event.stop, following - is_escaped))
        elif event.kind == "Start" and (event.tag in EMPHASIS or event.tag == "Link"):
            self._add_until(event.start)
            self.add = self.file.open_emphasis if event.tag in EMPHASIS else partial(self._open_link, event.start)
        elif event.kind == "End" and (event.tag in EMPHASIS or event.tag == "Link"):
            self._close(event)
        elif event.kind in ("Start", "End"):
            self._add_line()
            self._end_block()
        else:
            self._add_until(event.start)
            self._read_part(event)

    def finish(self) -> MarkdownTemplate:
        self._add_until(len(self.content))
        return self.file

    def _read_text(self, event: Event) -> None:
        start, words = event.start, event.words
        while self.marks and self.marks[0].start < event.stop:
            mark = self.marks.popleft()
            if mark.start < start:  # inside code or an address
                continue
            self._add_words(self._raw(start, mark.start), start, mark.start)
            self._add_until(mark.start)
            raw = self._raw(mark.start, mark.stop)
            if mark.kind == "template":
                self.file.add_protected(raw, raw)
            else:
                self.file.add(raw)
            if mark.kind in ("directive", "code"):
                self.file.end_block()
                self.is_directive = True
            self.done = start = mark.stop
            words = self._raw(start, event.stop)
        self._add_words(words, start, event.stop)

    def _add_words(self, words: str, start: int, stop: int) -> None:
        """Adds words to the line. After a backslash, for example, they differ from the characters of the file."""
        is_escaped = self.content[self.done : start].endswith(b"\\")
        if self.content[self.done : start - is_escaped] or not self.words:
            self._add_until(start - is_escaped)
            self.start = self.done
        self.words.append(LINE_END.sub(" ", words))
        self.done = stop

    def _read_part(self, event: Event) -> None:
        raw = self._raw(event.start, event.stop)
        self.done = event.stop
        if event.kind in PROTECTED:
            words = event.words
            while self.marks and self.marks[0].start < event.stop:
                mark = self.marks.popleft()
                if mark.start >= event.start:  # others were in blocks that are preserved
                    words = words.replace("x" * (mark.stop - mark.start), self._raw(mark.start, mark.stop), 1)
            self.file.add_protected(raw, " ".join(words.split()))
            return
        self.file.add(raw)
        if event.kind in SKIPPED | {"HardBreak", "Rule"} or LINE_BREAK.fullmatch(raw.encode()):
            self._end_block()

    def _open_link(self, name: int, raw: str) -> None:
        self.file.open_link(name)
        self.file.add(raw)

    def _close(self, event: Event) -> None:
        self._add_line()
        raw = self._raw(self.done, event.stop)
        self.done = event.stop
        if event.tag in EMPHASIS:
            self.file.close_emphasis(raw)
            return
        self.file.add(raw)
        self.file.close_link(event.start)
        self.add = self.file.add  # an empty anchor was never opened

    def _end_line(self, stop: int) -> None:
        """Ends a line of a paragraph before the words of the next line. A line with a directive ends its paragraph."""
        if self.is_directive:
            self._add_until(stop)
            self._end_block()
        else:
            self._add_line(stop)

    def _end_block(self) -> None:
        self.file.end_block()
        self.add, self.is_directive = self.file.add, False

    def _add_line(self, stop: int | None = None) -> None:
        """Adds the words of the line and the markup up to the next line."""
        words = "".join(self.words)
        if self.words or stop is not None:
            raw = self._raw(self.start, self.done) if self.words else ""
            tail = "" if stop is None else self._raw(self.done, stop)
            self.file.add_line(raw, tail, lambda _: words)
        self.words.clear()
        self.done = self.done if stop is None else stop

    def _add_until(self, place: int) -> None:
        """Adds the words of the line and the markup up to the next event."""
        self._add_line()
        if self.done < place:
            self.add(self._raw(self.done, place))
            self.add, self.done = self.file.add, place

    def _raw(self, start: int, stop: int) -> str:
        return self.content[start:stop].decode()


def _escape(text: str) -> str:
    """Escapes text for Markdown, except addresses."""
    addresses = [*ADDRESS.finditer(text)]
    ends = [0, *(place for address in addresses for place in address.span()), len(text)]
    pieces = [text[start:stop] for start, stop in pairwise(ends)]
    pieces[::2] = [SPECIAL.sub(r"\\\1", piece) for piece in pieces[::2]]
    return NUMBER.sub(r"\1\\\2", "".join(pieces))
