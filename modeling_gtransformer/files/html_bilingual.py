"""HTML in two languages, in which the text of every paragraph is followed by its translation, marked as such."""

import re

from .character_references import unescape
from .html import INLINE, KEPT, Page, escape_in
from .html_elements import ends_of_elements, ends_of_tags
from .html_ruby import ruby_annotations
from .html_tokens import Token, html_tokens, words_of
from .languages import language_tag, text_direction
from .template import TextFile


# Inline elements that are repeated in a translation; pictures and fields of forms appear only once.
COPIED = INLINE - {"button", "img", "input", "label", "wbr"}
# Elements that may contain only text, and lists of links.
WITHOUT_MARKUP = frozenset({"nav", "option", "title"})
# Attributes that a page must not have twice.
IDENTIFIER = re.compile(r"""\s(?:id|name)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
STYLE = "opacity: 0.7"


def read_bilingual_html(text: str, tgt_lang: str | None = None) -> TextFile:
    """
    Reads a page of which everything stays. The text of a paragraph, heading, item or cell is followed by a line with
    its translation, a `<span class="translation">` with its language; in titles and navigation it follows a slash.
    """
    return _Reader(text, language_tag(tgt_lang)).file


class _Reader:
    def __init__(self, text: str, language: str | None):
        self.tokens = list(html_tokens(text))
        self.ends, self.elements = ends_of_tags(self.tokens), ends_of_elements(self.tokens)
        self.page = Page(text, self.tokens, None)
        self.annotations = ruby_annotations(self.tokens, self.ends, self.elements, self.page.is_translated)
        self.file = TextFile(escape_in(text))
        attributes = f' lang="{language}" dir="{text_direction(language)}"' if language else ""
        self.opening = f'<br/><span class="translation"{attributes} style="{STYLE}">'
        self._read()

    def raw(self, start: int, stop: int) -> str:
        return "".join(token.raw for token in self.tokens[start:stop])

    def is_kept(self, token: Token) -> bool:
        return token.kind == "start" and not self.page.is_translated(token)

    def _read(self) -> None:
        position = done = plain_until = 0
        while position < len(self.tokens):
            token = self.tokens[position]
            stop = self.elements[position] if self.is_kept(token) else position + 1
            is_kept_inline = self.is_kept(token) and token.tag in KEPT
            is_inline = token.tag in INLINE or is_kept_inline or position in self.annotations
            if token.kind in ("start", "end") and not is_inline:
                self._add_paragraph(done, position, done < plain_until)
                self.file.add(self.raw(position, stop))
                done = stop
                if token.kind == "start" and token.tag in WITHOUT_MARKUP:
                    plain_until = max(plain_until, self.elements[position])
            position = stop
        self._add_paragraph(done, len(self.tokens), False)

    def _add_paragraph(self, start: int, stop: int, is_sentence_level: bool) -> None:
        """Adds the content of a block and, if it has words, its translation."""
        last = self._last_words(start, stop)
        if last is None:
            self.file.add(self.raw(start, stop))
        elif is_sentence_level:
            self.file.add(self.raw(start, last + 1) + " / ")
            self._add_translation(start, last + 1, frozenset())
            self.file.add(self.raw(last + 1, stop))
        else:
            self.file.add(self.raw(start, stop) + self.opening)
            self._add_translation(start, stop, COPIED)
            self.file.add("</span>")

    def _last_words(self, start: int, stop: int) -> int | None:
        """The number of the last text in a block that has words to translate, if there is one."""
        last, position = None, start
        while position < stop:
            token = self.tokens[position]
            if position in self.annotations:
                last = None if last is None else position
            elif token.kind == "text" and any(letter.isalpha() for letter in unescape(token.raw)):
                last = position
            position = self.elements[position] if self.is_kept(token) else position + 1
        return last

    def _add_translation(self, start: int, stop: int, copied: frozenset[str]) -> None:
        """Adds the text of a block again, to be translated, with those tags that are opened and closed in it."""
        self.file.style = ()
        position, opened = start, dict[int, int]()
        while position < stop:
            token = self.tokens[position]
            end = self.ends.get(position, stop + 1)
            behind = position + 1
            if position in self.annotations:
                pass
            elif token.kind == "text":
                self.file.add_text(token.raw, unescape)
            elif token.kind == "template":
                self.file.keep(token.raw, token.raw)
            elif self.is_kept(token):
                behind = min(self.elements[position], stop)
                inside = self.tokens[position:behind]
                self.file.keep("".join(map(_without_identifier, inside)), words_of(inside))
            elif token.tag in copied and token.kind == "start" and end <= stop:
                opened[end - 1] = position
                self.file.open_style(position)
                self.file.add(_without_identifier(token))
            elif position in opened:
                self.file.add(token.raw)
                self.file.close_style(opened[position])
            position = behind
        self.file.end_block()


def _without_identifier(token: Token) -> str:
    return IDENTIFIER.sub("", token.raw) if token.kind == "start" else token.raw
