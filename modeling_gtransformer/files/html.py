"""HTML: text in blocks, with inline tags as borders between runs; everything else stays byte for byte."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import accumulate, pairwise

from .template import TextFile


# fmt: off
INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "button", "cite", "data", "del", "dfn", "em", "font", "i", "img",
    "input", "ins", "label", "mark", "q", "s", "small", "span", "strike", "strong", "sub", "sup", "time", "u", "wbr",
})
# fmt: on
# Parts of a sentence that are not translated.
KEPT = frozenset({"code", "kbd", "math", "samp", "svg", "tt", "var"})
# What is not text, or not meant for translation.
SKIPPED = frozenset({"pre", "script", "style", "template", "textarea"})


def read_html(text: str) -> TextFile:
    """
    Text, but not attributes, is translated. A block ends at every tag that is not inline, `<br>` too. `<code>` and the
    like, and what is marked with `translate="no"`, stay as they are.
    """
    file = TextFile(escape=lambda words: html.escape(words, quote=False))
    tokens = _Tokens(text)
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.kind == "text":
            file.add_text(token.raw, html.unescape)
        elif token.kind == "start" and not token.translated:
            stop = tokens.ends.get(position, position + 1)
            raw = "".join(inner.raw for inner in tokens[position:stop])
            words = "".join(html.unescape(inner.raw) for inner in tokens[position:stop] if inner.kind == "text")
            if token.tag in INLINE | KEPT:
                file.keep(raw, " ".join(words.split()))
            else:
                file.end_block()
                file.add(raw)
            position = stop
            continue
        else:
            if token.kind != "other" and token.tag not in INLINE:
                file.end_block()
            file.add(token.raw)
        position += 1
    return file


@dataclass
class _Token:
    """A tag, a stretch of text, or anything else, and its characters in the file."""

    kind: str  # "start", "end", "text", "other"
    tag: str = ""
    translated: bool = True
    raw: str = ""


class _Tokens(HTMLParser, Sequence[_Token]):
    """The whole file as tokens, in order."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=False)
        self._lines = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        self._tokens: list[_Token] = []
        self._starts: list[int] = []
        try:
            self.feed(text)
            self.close()
        except AssertionError as error:
            raise ValueError(f"no HTML: {error}") from error
        if self._starts[:1] != [0]:
            self._tokens.insert(0, _Token("other"))
            self._starts.insert(0, 0)
        # Where the element of a start tag ends: behind its end tag, if it has one.
        self.ends: dict[int, int] = {}
        open_tags: dict[str, list[int]] = {}
        for position, token in enumerate(self._tokens):
            if token.kind == "start":
                open_tags.setdefault(token.tag, []).append(position)
            elif token.kind == "end" and open_tags.get(token.tag):
                self.ends[open_tags[token.tag].pop()] = position + 1
        for token, span in zip(self._tokens, pairwise([*self._starts, len(text)]), strict=True):
            token.raw = text[slice(*span)]

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index):
        return self._tokens[index]

    def _add(self, kind: str, tag: str = "", translated: bool = True) -> None:
        if kind == "text" and self._tokens and self._tokens[-1].kind == "text":
            return  # a character reference within text
        line, column = self.getpos()
        self._tokens.append(_Token(kind, tag, translated))
        self._starts.append(self._lines[line - 1] + column)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        marked = attributes.get("translate") == "no" or "notranslate" in (attributes.get("class") or "").split()
        self._add("start", tag, not marked and tag not in SKIPPED | KEPT)

    def handle_startendtag(self, tag, attrs):
        self._add("start", tag)

    def handle_endtag(self, tag):
        self._add("end", tag)

    def handle_data(self, data):
        self._add("text")

    def handle_entityref(self, name):
        self._add("text")

    def handle_charref(self, name):
        self._add("text")

    def handle_comment(self, data):
        self._add("other")

    def handle_decl(self, decl):
        self._add("other")

    def handle_pi(self, data):
        self._add("other")

    def unknown_decl(self, data):
        self._add("other")
