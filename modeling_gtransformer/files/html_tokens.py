"""Splits HTML into tokens as browsers do, in linear time."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..plain_text import TEMPLATE_SYNTAX
from .character_references import unescape


SPACE = r"\t\n\f\r "
TEMPLATE = re.compile(f"({TEMPLATE_SYNTAX})")
MARKUP = re.compile(rf"(?P<template>{TEMPLATE_SYNTAX})|<(?P<end>/?)(?P<tag>[a-zA-Z][^{SPACE}/>]*)|<[!?/]")
# An attribute with the white space before it, or white space before the end of a tag.
ATTRIBUTE = re.compile(
    rf"[{SPACE}/]*(?:{TEMPLATE_SYNTAX}|(?P<name>[^{SPACE}/>][^{SPACE}/>=]*)"
    rf"(?:[{SPACE}]*=[{SPACE}]*(?:\"(?P<double>[^\"]*)(?:\"|\Z)|'(?P<single>[^']*)(?:'|\Z)"
    rf"|(?P<bare>{TEMPLATE_SYNTAX}|[^{SPACE}>\"'][^{SPACE}>]*))?)?)?"
)
COMMENT_END = re.compile("--!?>")
# Elements whose content has no tags, and its kind.
RAW_TEXT = {"title": "text", "textarea": "text"} | dict.fromkeys(
    ("iframe", "noembed", "noframes", "script", "style", "xmp"), "other"
)
RAW_TEXT_ENDS = {tag: re.compile(rf"</{tag}(?=[{SPACE}/>])", re.IGNORECASE) for tag in RAW_TEXT}
# Markup that ends at its own mark, if there is one, instead of the next `>`.
LONG_MARKUP = {"<![CDATA[": "]]>", "<?php": "?>", "<?=": "?>"}


@dataclass(frozen=True)
class Attribute:
    """
    The name of an attribute in lower case and the place of its value in the tag. Unquoted values have no `quote`.
    """

    name: str
    start: int
    stop: int
    quote: str


@dataclass(frozen=True)
class Token:
    """A tag, text, template or other markup, with its characters in the file. Only start tags have attributes."""

    kind: str  # "start", "end", "text", "template", "other"
    raw: str
    tag: str = ""
    attributes: list[Attribute] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether the tag ends with a slash outside its attributes, as empty XML elements do."""
        return self.raw.endswith("/>") and not any(one.stop > len(self.raw) - 2 for one in self.attributes)

    @property
    def values(self) -> dict[str, str]:
        """The values of the attributes; of repeated ones, the first counts."""
        return {one.name: unescape(self.raw[one.start : one.stop]) for one in reversed(self.attributes)}


def words_of(tokens: Iterable[Token]) -> str:
    """Returns the visible text of tokens, on one line."""
    return " ".join("".join(unescape(token.raw) for token in tokens if token.kind == "text").split())


def html_tokens(text: str) -> Iterator[Token]:
    """
    Yields the tokens of a file; their `raw` add up to the file. Unclosed markup extends to the end of the file.
    """
    # The last end of each kind, searched once: a search at every opening would take quadratic time.
    last_ends = {opening: text.rfind(closing) for opening, closing in LONG_MARKUP.items()}
    position = 0
    while position < len(text):
        mark = MARKUP.search(text, position)
        start = mark.start() if mark else len(text)
        if start > position:
            yield Token("text", text[position:start])
        if mark is None:
            return
        if mark["template"]:
            position = mark.end()
            yield Token("template", mark[0])
        elif mark["tag"]:
            token = _tag(text, mark)
            yield token
            position = start + len(token.raw)
            if token.kind == "start" and token.tag in RAW_TEXT and not token.is_empty:
                end = RAW_TEXT_ENDS[token.tag].search(text, position)
                stop = end.start() if end else len(text)
                yield from _raw_text(text[position:stop], RAW_TEXT[token.tag])
                position = stop
        else:
            position = _markup_end(text, start, last_ends)
            yield Token("other", text[start:position])


def _tag(text: str, mark: re.Match[str]) -> Token:
    attributes, begin, position = [], mark.start(), mark.end()
    while (attribute := ATTRIBUTE.match(text, position)) and attribute.end() > position:
        position = attribute.end()
        for kind, quote in (("double", '"'), ("single", "'"), ("bare", "")):
            if attribute[kind] is not None:
                start, stop = attribute.span(kind)
                attributes.append(Attribute(attribute["name"].lower(), start - begin, stop - begin, quote))
    raw, tag = text[begin : position + 1], mark["tag"].lower()  # the last character is the `>`
    return Token("end", raw, tag) if mark["end"] else Token("start", raw, tag, attributes)


def _raw_text(raw: str, kind: str) -> Iterator[Token]:
    """Yields the content of an element without tags."""
    parts = TEMPLATE.split(raw) if kind == "text" else [raw]
    for number, part in enumerate(parts):
        if part:
            yield Token("template" if number % 2 else kind, part)


def _markup_end(text: str, start: int, last_ends: dict[str, int]) -> int:
    if text.startswith("<!--", start):
        end = COMMENT_END.search(text, start + 2)
        return end.end() if end else len(text)
    for opening, closing in LONG_MARKUP.items():
        if text.startswith(opening, start) and last_ends[opening] > start:
            return text.index(closing, start) + len(closing)
    return text.find(">", start) + 1 or len(text)
