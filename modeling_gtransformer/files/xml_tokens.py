"""Splits XML into tokens with expat, without expanding or loading entities. The tokens add up to the file."""

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
# Separates a namespace from a local name; illegal in namespaces.
SEPARATOR = "\n"
ENCODING = re.compile(r"""<\?xml\s[^<>]{0,200}?encoding\s*=\s*["']([\w.:-]+)""")
# An attribute of a well-formed tag.
ATTRIBUTE = re.compile(r"""(?<=\s)([^\s=<>/"']+)\s*=\s*("[^"]*"|'[^']*')""")
TAG_NAME = re.compile(r"</?([^\s/>]+)")


NO_ATTRIBUTES: Mapping[tuple[str, str], str] = MappingProxyType({})


class XmlToken(NamedTuple):
    """
    A tag, text, or other markup, with its characters in the file. The end tag of an empty element such as `<br/>` has
    no characters.
    """

    kind: str  # "start", "end", "text", "cdata", "other"
    raw: str
    name: tuple[str, str] = ("", "")  # namespace and local name
    attributes: Mapping[tuple[str, str], str] = NO_ATTRIBUTES

    def get(self, name: str, namespace: str = "") -> str:
        """Returns the value of an attribute, or an empty string."""
        return self.attributes.get((namespace, name), "")

    @property
    def words(self) -> str:
        """The text of a token, without markup."""
        return words_of(self.raw) if self.kind in ("text", "cdata") else ""


def xml_tokens(text: str) -> list[XmlToken]:
    """
    Returns the tokens of a file.

    Raises:
        ValueError: the file is not well-formed, or declares entities.
    """
    bare = text.removeprefix("\ufeff")
    content = bare.encode("utf-8", "surrogatepass")
    marks = _Marks()
    try:
        marks.parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ValueError(f"broken XML, line {error.lineno}: {expat.ErrorString(error.code)}") from error
    places = [0, *(place for place, *_ in marks.found[1:]), len(content)]
    byte_order_mark = [XmlToken("other", "\ufeff")] if bare != text else []
    return byte_order_mark + [
        XmlToken(kind, content[start:stop].decode("utf-8", "surrogatepass"), _split(name), attributes)
        for (_, kind, name, attributes), (start, stop) in zip(marks.found, pairwise(places), strict=True)
    ]


def words_of(raw: str) -> str:
    """Returns the text of a text token or CDATA section."""
    if raw.startswith("<![CDATA["):
        return raw.removeprefix("<![CDATA[").removesuffix("]]>")
    return unescape(raw)


class XmlTree:
    """Tokens as a tree. Elements are addressed by the numbers of their start tags, and `ends` are their end tags."""

    def __init__(self, tokens: Sequence[XmlToken]):
        self.tokens = tokens
        self.ends: dict[int, int] = {}
        open_tags = []
        for number, token in enumerate(tokens):
            if token.kind == "start":
                open_tags.append(number)
            elif token.kind == "end":
                self.ends[open_tags.pop()] = number

    def raw(self, start: int, stop: int) -> str:
        return "".join(token.raw for token in self.tokens[start:stop])

    def words(self, position: int) -> str:
        return "".join(token.words for token in self.tokens[position : self.ends[position]])

    def children(self, position: int) -> Iterator[int]:
        """Yields the child elements of an element."""
        place = position + 1
        while place < self.ends[position]:
            if self.tokens[place].kind == "start":
                yield place
                place = self.ends[place]
            place += 1


def xml_escape(text: str) -> Callable[[str], str]:
    """Makes a function that escapes text for a file in its declared character set."""
    declared = ENCODING.match(text[:4096])
    return escape_for(declared and declared[1])


def with_attribute(tag: str, name: str, value: str) -> str:
    """
    Sets or adds an attribute of a start tag.

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
    """Collects the places of tokens in bytes, with kind, name and attributes. Adjacent text is one token."""

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
        # External entities are not loaded, so a reference to one is text.
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
                "its document type declaration (DOCTYPE) has an internal subset, such as entities: remove it first"
            )
        self.note("other")


@lru_cache(maxsize=256)
def _split(name: str) -> tuple[str, str]:
    namespace, _, local = name.rpartition(SEPARATOR)
    return namespace, local
