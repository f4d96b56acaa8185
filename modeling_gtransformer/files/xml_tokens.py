"""Splits XML into tokens that add up to the text: expat finds where each begins, and expands and fetches nothing."""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple
from xml.parsers import expat

from .character_references import escape_for, unescape


XML = "http://www.w3.org/XML/1998/namespace"
# Separates a namespace from a local name, and occurs in no namespace.
SEPARATOR = "\n"
ENCODING = re.compile(r"""<\?xml\s[^<>]{0,200}?encoding\s*=\s*["']([\w.:-]+)""")
# An attribute of a tag that expat has read, with the white space before it.
ATTRIBUTE = re.compile(r"""(?<=\s)([^\s=<>/"']+)\s*=\s*("[^"]*"|'[^']*')""")
TAG_NAME = re.compile(r"</?([^\s/>]+)")


NO_ATTRIBUTES: Mapping[tuple[str, str], str] = MappingProxyType({})


class XmlToken(NamedTuple):
    """
    A tag, a stretch of text, or anything else, with its characters in the file; the end tag of an empty element such
    as `<br/>` has none.
    """

    kind: str  # "start", "end", "text", "cdata", "other"
    raw: str
    name: tuple[str, str] = ("", "")  # namespace and local name
    attributes: Mapping[tuple[str, str], str] = NO_ATTRIBUTES

    def get(self, name: str, namespace: str = "") -> str:
        """The value of an attribute, or an empty string."""
        return self.attributes.get((namespace, name), "")

    @property
    def words(self) -> str:
        """What a reader sees of a text."""
        return words_of(self.raw) if self.kind in ("text", "cdata") else ""


def xml_tokens(text: str) -> list[XmlToken]:
    """
    Returns the tokens of a file.

    Raises:
        ValueError: the file is not well-formed XML, or declares entities.
    """
    bare = text.removeprefix("\ufeff")
    content = bare.encode("utf-8", "surrogatepass")
    marks = _Marks()
    try:
        marks.parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ValueError(f"broken XML, line {error.lineno}: {expat.ErrorString(error.code)}") from error
    mark = [XmlToken("other", "\ufeff")] if bare != text else []
    return [*mark, *_tokens(content, marks.found)]


def words_of(raw: str) -> str:
    """
    Returns what a reader sees of a text, or of a section in which nothing is markup.

    >>> words_of("a &lt; b"), words_of("<![CDATA[a < b]]>")
    ('a < b', 'a < b')
    """
    if raw.startswith("<![CDATA["):
        return raw.removeprefix("<![CDATA[").removesuffix("]]>")
    return unescape(raw)


def ends_of(tokens: list[XmlToken]) -> dict[int, int]:
    """Returns, by the number of every start tag, that of its end tag."""
    ends, open_tags = {}, []
    for number, token in enumerate(tokens):
        if token.kind == "start":
            open_tags.append(number)
        elif token.kind == "end":
            ends[open_tags.pop()] = number
    return ends


def xml_escape(text: str) -> Callable[[str], str]:
    """Makes a function that makes words safe in a file, also in one that declares a character set other than UTF-8."""
    declared = ENCODING.match(text[:4096])
    return escape_for(declared and declared[1])


def with_attribute(tag: str, name: str, value: str) -> str:
    """
    Returns a start tag in which an attribute has this value; it is added if it is missing.

    >>> with_attribute("<a b='1'/>", "b", "2"), with_attribute('<a b="1">', "c", "2")
    ('<a b="2"/>', '<a b="1" c="2">')
    """
    safe = f'"{html.escape(value)}"'
    for attribute in ATTRIBUTE.finditer(tag):
        if attribute[1] == name:
            return tag[: attribute.start(2)] + safe + tag[attribute.end(2) :]
    body = tag.removesuffix(">").removesuffix("/").rstrip()
    return f"{body} {name}={safe}{tag[len(body) :]}"


def tag_name(tag: str) -> str:
    """
    Returns the name in a tag, with its prefix.

    >>> tag_name("<x:a b='1'/>"), tag_name("</x:a>")
    ('x:a', 'x:a')
    """
    return TAG_NAME.match(tag)[1]  # type: ignore[index]  # every tag has a name


# Position in bytes, kind, name and attributes.
Mark = tuple[int, str, str, dict[str, str] | None]


class _Marks:
    """Notes what expat finds and where: position in bytes, kind, name and attributes."""

    def __init__(self) -> None:
        self.found: list[Mark] = []
        self.parser = parser = expat.ParserCreate("utf-8", SEPARATOR)
        parser.StartElementHandler = lambda name, attributes: self.note("start", name, attributes)
        parser.EndElementHandler = lambda name: self.note("end", name)
        parser.CharacterDataHandler = lambda _: self.note("text")
        parser.StartCdataSectionHandler = lambda: self.note("cdata")
        parser.EndCdataSectionHandler = lambda: self.note("cdata end")
        parser.CommentHandler = lambda _: self.note("other")
        parser.ProcessingInstructionHandler = lambda *_: self.note("other")
        parser.StartDoctypeDeclHandler = self.doctype
        # A reference to an entity that only an external declaration, which is not read, could define.
        parser.SkippedEntityHandler = lambda *_: self.note("text")
        parser.DefaultHandler = lambda _: self.note("default")
        self.is_inside = 0

    def note(self, kind: str, name: str = "", attributes: dict[str, str] | None = None) -> None:
        if kind == "default":
            kind = "text" if self.is_inside > 0 else "other"
        self.is_inside += {"start": 1, "end": -1}.get(kind, 0)
        self.found.append((self.parser.CurrentByteIndex, kind, name, attributes or None))

    def doctype(self, name: str, system: str | None, public: str | None, has_internal_subset: int) -> None:
        if has_internal_subset:
            raise ValueError(
                "its document type declaration (DOCTYPE) declares something, such as entities: remove it first"
            )
        self.note("other")


def _tokens(content: bytes, marks: list[Mark]) -> Iterator[XmlToken]:
    """Yields the tokens between the marks; stretches of one kind are one token."""
    marks.append((len(content), "", "", None))
    number, first = 0, 0
    while number < len(marks) - 1:
        _, kind, name, attributes = marks[number]
        after = number + 1
        if kind == "cdata":
            while marks[after][1] != "cdata end":
                after += 1
            after += 1
        elif kind in ("text", "other"):
            while marks[after][1] == kind:
                after += 1
        # Nothing is left out, not even a byte order mark before the first mark.
        raw = content[first : marks[after][0]].decode("utf-8", "surrogatepass")
        first = marks[after][0]
        named = {_split(key): value for key, value in attributes.items()} if attributes else NO_ATTRIBUTES
        yield XmlToken(kind, raw, _split(name), named)
        number = after


@lru_cache(maxsize=256)
def _split(name: str) -> tuple[str, str]:
    namespace, _, local = name.rpartition(SEPARATOR)
    return namespace, local
