"""Splits XML into tokens that add up to the text: expat finds where each begins, and expands and fetches nothing."""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
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
    # Nothing is left out, not even a byte order mark before the first mark.
    places = [0, *(place for place, *_ in marks.found[1:]), len(content)]
    byte_order_mark = [XmlToken("other", "\ufeff")] if bare != text else []
    return byte_order_mark + [
        XmlToken(kind, content[start:stop].decode("utf-8", "surrogatepass"), _split(name), attributes)
        for (_, kind, name, attributes), (start, stop) in zip(marks.found, pairwise(places), strict=True)
    ]


def words_of(raw: str) -> str:
    """Returns what a reader sees of a text, or of a section in which nothing is markup."""
    if raw.startswith("<![CDATA["):
        return raw.removeprefix("<![CDATA[").removesuffix("]]>")
    return unescape(raw)


def ends_of(tokens: Sequence[XmlToken]) -> dict[int, int]:
    """Returns the numbers of the end tags by those of their start tags."""
    ends, open_tags = {}, []
    for number, token in enumerate(tokens):
        if token.kind == "start":
            open_tags.append(number)
        elif token.kind == "end":
            ends[open_tags.pop()] = number
    return ends


class XmlTree:
    """Tokens with the places of their elements, by the numbers of start tags."""

    def __init__(self, tokens: Sequence[XmlToken]):
        self.tokens, self.ends = tokens, ends_of(tokens)

    def raw(self, start: int, stop: int) -> str:
        return "".join(token.raw for token in self.tokens[start:stop])

    def words(self, position: int) -> str:
        """Returns the text inside an element."""
        return "".join(token.words for token in self.tokens[position : self.ends[position]])

    def children(self, position: int) -> Iterator[int]:
        """Yields the numbers of the start tags of the elements directly inside an element."""
        place = position + 1
        while place < self.ends[position]:
            if self.tokens[place].kind == "start":
                yield place
                place = self.ends[place]
            place += 1


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
    """Returns the name in a tag, with its prefix."""
    return TAG_NAME.match(tag)[1]  # type: ignore[index]  # every tag has a name


class _Marks:
    """Collects what expat finds: position in bytes, kind, name and attributes; stretches of one kind are one mark."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str, str, Mapping[tuple[str, str], str]]] = []
        self.depth, self.is_cdata = 0, False
        self.parser = parser = expat.ParserCreate("utf-8", SEPARATOR)
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = lambda _: self.note("text")
        parser.StartCdataSectionHandler = lambda: self.cdata(True)
        parser.EndCdataSectionHandler = lambda: self.cdata(False)
        parser.CommentHandler = lambda _: self.note("other")
        parser.ProcessingInstructionHandler = lambda *_: self.note("other")
        parser.StartDoctypeDeclHandler = self.doctype
        # A reference to an entity that only an external declaration, which is not read, could define.
        parser.SkippedEntityHandler = lambda *_: self.note("text")
        parser.DefaultHandler = lambda _: self.note("text" if self.depth else "other")

    def note(self, kind: str, name: str = "", attributes: Mapping[tuple[str, str], str] = NO_ATTRIBUTES) -> None:
        is_more = self.found and kind in ("text", "other") and self.found[-1][1] == kind
        if not is_more and not self.is_cdata:
            self.found.append((self.parser.CurrentByteIndex, kind, name, attributes))

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self.depth += 1
        named = {_split(key): value for key, value in attributes.items()}
        self.note("start", name, named or NO_ATTRIBUTES)

    def end(self, name: str) -> None:
        self.depth -= 1
        self.note("end", name)

    def cdata(self, begins: bool) -> None:
        if begins:
            self.note("cdata")
        self.is_cdata = begins

    def doctype(self, name: str, system: str | None, public: str | None, has_internal_subset: int) -> None:
        if has_internal_subset:
            raise ValueError(
                "its document type declaration (DOCTYPE) declares something, such as entities: remove it first"
            )
        self.note("other")


@lru_cache(maxsize=256)
def _split(name: str) -> tuple[str, str]:
    namespace, _, local = name.rpartition(SEPARATOR)
    return namespace, local
