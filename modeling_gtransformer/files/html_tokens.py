"""Splits HTML into tokens as browsers do, in linear time."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..plain_text import TEMPLATE_SYNTAX
from .character_references import unescape


SPACE = r"\t\n\f\r "
MARKUP = re.compile(rf"(?P<template>{TEMPLATE_SYNTAX})|<(?P<end>/?)(?P<tag>[a-zA-Z][^{SPACE}/>]*)|<[!?/]")
# An attribute with the white space before it, or white space before the end of a tag.
ATTRIBUTE = re.compile(
    rf"[{SPACE}/]*(?:{TEMPLATE_SYNTAX}|(?P<name>[^{SPACE}/>][^{SPACE}/>=]*)"
    rf"(?:[{SPACE}]*=[{SPACE}]*(?:\"(?P<double>[^\"]*)(?:\"|\Z)|'(?P<single>[^']*)(?:'|\Z)"
    rf"|(?P<bare>{TEMPLATE_SYNTAX}|[^{SPACE}>\"'][^{SPACE}>]*))?)?)?"
)
COMMENT_END = re.compile("--!?>")
# Elements whose content has no tags, and whether it has character references.
RAW_TEXT = {"title": True, "textarea": True} | dict.fromkeys(
    ("iframe", "noembed", "noframes", "script", "style", "xmp"), False
)
RAW_TEXT_ENDS = {tag: re.compile(rf"</{tag}(?=[{SPACE}/>])", re.IGNORECASE) for tag in RAW_TEXT}
# Markup that ends at its own mark, if there is one, instead of the next `>`.
LONG_MARKUP = {"<![CDATA[": "]]>", "<?php": "?>", "<?=": "?>"}


@dataclass(frozen=True)
class Attribute:
    """
    The name of an attribute in lower case and the place of its value in the file. Unquoted values have no `quote`.
    """

    name: str
    start: int
    stop: int
    quote: str


@dataclass(frozen=True)
class Token:
    """A tag, text, template or other markup, with its characters in the file."""

    kind: str  # "start", "end", "text", "template", "other"
    raw: str
    start: int
    tag: str = ""
    attributes: list[Attribute] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether the tag ends with a slash outside its attributes, as empty XML elements do."""
        slash = self.start + len(self.raw) - 2
        return self.raw.endswith("/>") and not any(attribute.stop > slash for attribute in self.attributes[-1:])


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
            yield Token("text", text[position:start], position)
        if mark is None:
            return
        if mark["template"]:
            position = mark.end()
            yield Token("template", mark[0], start)
        elif mark["tag"]:
            token = _tag(text, mark)
            yield token
            position = start + len(token.raw)
            if token.kind == "start" and token.tag in RAW_TEXT and not token.is_empty:
                end = RAW_TEXT_ENDS[token.tag].search(text, position)
                stop = end.start() if end else len(text)
                yield from _raw_text(text[position:stop], position, RAW_TEXT[token.tag])
                position = stop
        else:
            position = _markup_end(text, start, last_ends)
            yield Token("other", text[start:position], start)


def _tag(text: str, mark: re.Match[str]) -> Token:
    attributes, position = [], mark.end()
    while (attribute := ATTRIBUTE.match(text, position)) and attribute.end() > position:
        position = attribute.end()
        for kind, quote in (("double", '"'), ("single", "'"), ("bare", "")):
            if attribute[kind] is not None:
                attributes.append(Attribute(attribute["name"].lower(), *attribute.span(kind), quote))
    position = min(position + 1, len(text))  # the `>`
    raw = text[mark.start() : position]
    return Token("end" if mark["end"] else "start", raw, mark.start(), mark["tag"].lower(), attributes)


def _raw_text(raw: str, start: int, has_references: bool) -> Iterator[Token]:
    position = 0
    for template in re.finditer(TEMPLATE_SYNTAX, raw) if has_references else ():
        if template.start() > position:
            yield Token("text", raw[position : template.start()], start + position)
        yield Token("template", template[0], start + template.start())
        position = template.end()
    if position < len(raw):
        yield Token("text" if has_references else "other", raw[position:], start + position)


def _markup_end(text: str, start: int, last_ends: dict[str, int]) -> int:
    if text.startswith("<!--", start):
        end = COMMENT_END.search(text, start + 2)
        return end.end() if end else len(text)
    for opening, closing in LONG_MARKUP.items():
        if text.startswith(opening, start) and last_ends[opening] > start:
            return text.index(closing, start) + len(closing)
    return text.find(">", start) + 1 or len(text)
