"""HTML: text in blocks, with inline tags as borders between runs; everything else stays byte for byte."""

import re
from collections.abc import Callable

from ..plain_text import TEMPLATE_SYNTAX
from .character_references import escape_for, unescape
from .html_elements import ends_of_elements, ends_of_tags
from .html_ruby import ruby_annotations
from .html_tokens import Attribute, Token, html_tokens, words_of
from .languages import language_tag, text_direction
from .template import TextFile


# fmt: off
INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "button", "cite", "data", "del", "dfn", "em", "font", "i", "img",
    "input", "ins", "label", "mark", "nobr", "output", "picture", "q", "rb", "ruby", "s", "small", "source", "span",
    "strike", "strong", "sub", "sup", "time", "u", "wbr",
})
# fmt: on
# Parts of a sentence that are not translated.
KEPT = frozenset({"code", "kbd", "math", "samp", "svg", "tt", "var"})
# Elements without text, or whose text is not meant to be translated.
SKIPPED = frozenset({"pre", "script", "style", "template", "textarea"})
# Attributes that readers see or hear; in `<meta>` the content of these names, in buttons the value.
TRANSLATED_ATTRIBUTES = frozenset({"alt", "aria-label", "placeholder", "title"})
DESCRIPTIONS = frozenset({"description", "og:description", "og:title", "twitter:description", "twitter:title"})
BUTTONS = frozenset({"button", "reset", "submit"})
# Elements whose language and direction are those of the page.
PAGE = frozenset({"body", "html"})
LANGUAGE_ATTRIBUTES = frozenset({"lang", "xml:lang"})
TEMPLATE = re.compile(TEMPLATE_SYNTAX)
CHARSET = re.compile(
    r"""<(?:meta\s[^<>]{0,200}?charset|\?xml\s[^<>]{0,200}?encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.I
)


def read_html(text: str, tgt_lang: str | None = None) -> TextFile:
    """
    Reads a page. Text, titles, descriptions of images and pages, and labels are translated. A block ends at every tag
    that is not inline, and at `<br>`. `<code>` and the like, what is marked with `translate="no"`, and the syntax of
    templates such as `{{ name }}` and `{% tag %}` stay as they are. Translations leave out readings of ruby
    annotations.

    Args:
        tgt_lang: language of the translation, which `lang` and `dir` of the translated page name.
    """
    file = TextFile(escape_in(text))
    tokens = list(html_tokens(text))
    ends, elements = ends_of_tags(tokens), ends_of_elements(tokens)
    page = Page(text, tokens, tgt_lang)
    annotations = ruby_annotations(tokens, ends, elements, page.is_translated)
    opened: dict[int, int] = {}  # from the number of an inline end tag to that of its start tag
    position = 0
    while position < len(tokens):
        token = tokens[position]
        stop = position + 1
        if position in annotations:
            file.add_reading(token.raw)
        elif token.kind == "text":
            file.add_text(token.raw, unescape)
        elif token.kind == "template":
            file.keep(token.raw, token.raw)
        elif token.kind == "start" and not page.is_translated(token):
            stop = elements[position]
            raw = "".join(inner.raw for inner in tokens[position:stop])
            if token.tag in INLINE | KEPT:
                file.keep(raw, words_of(tokens[position:stop]))
            else:
                file.end_block()
                file.add(raw)
        else:
            if token.kind in ("start", "end") and token.tag not in INLINE:
                file.end_block()
            if token.tag in INLINE and position in ends:
                file.open_style(position)
                opened[ends[position] - 1] = position
            page.add_markup(file, token)
            if position in opened:
                file.close_style(opened[position])
        position = stop
    file.end_block()
    return file


def escape_in(page: str) -> Callable[[str], str]:
    """Makes a function that makes text safe in a page, also in a declared character set other than UTF-8."""
    declared = CHARSET.search(page[:4096])
    return escape_for(declared and declared[1])


class Page:
    """Translates in the tags of a page the attributes for readers, and those that name its language."""

    def __init__(self, text: str, tokens: list[Token], tgt_lang: str | None):
        self.text, self.language, self.root = text, language_tag(tgt_lang), None
        if self.language is not None:
            self.root = next((token for token in tokens if token.kind == "start" and token.tag == "html"), None)
        pages = [self.values(token) for token in tokens if token.kind == "start" and token.tag in PAGE]
        languages = [values.get(name, "").lower() for values in pages for name in LANGUAGE_ATTRIBUTES]
        self.source_languages = frozenset(languages) - {""}

    def values(self, token: Token) -> dict[str, str]:
        return {one.name: unescape(self.text[one.start : one.stop]) for one in reversed(token.attributes)}

    def is_translated(self, token: Token) -> bool:
        if token.tag in SKIPPED | KEPT:
            # In XHTML, `<script/>` and the like are complete elements.
            return token.is_empty
        values = self.values(token)
        return values.get("translate", "").lower() != "no" and "notranslate" not in values.get("class", "").split()

    def add_markup(self, file: TextFile, token: Token) -> None:
        """Adds a tag or anything else that is not text; what readers see of it is a block of its own."""
        done = token.start
        values = self.values(token) if token.kind == "start" else {}
        for attribute in token.attributes if token.kind == "start" else ():
            raw = self.text[attribute.start : attribute.stop]
            file.add(self.text[done : attribute.start])
            if _is_for_readers(token.tag, attribute.name, values) and not TEMPLATE.search(raw):
                file.add_aside(raw, " ".join(unescape(raw).split()), _escape_attribute(attribute, file.escape))
            else:
                file.add(self._target_value(token, attribute, raw))
            done = attribute.stop
        rest = self.text[done : token.start + len(token.raw)]
        if token is self.root:
            # After the name of the tag or its last attribute.
            place = len("<html") if done == token.start else len(token.attributes[-1].quote)
            rest = rest[:place] + self._missing_attributes(values) + rest[place:]
        file.add(rest)

    def _target_value(self, token: Token, attribute: Attribute, raw: str) -> str:
        """The value of an attribute, which names the target language if it named that of the page."""
        if self.language is None or TEMPLATE.search(raw):
            return raw
        is_page = token.tag in PAGE
        if attribute.name in LANGUAGE_ATTRIBUTES and (is_page or raw.lower() in self.source_languages):
            return self.language
        return text_direction(self.language) if is_page and attribute.name == "dir" else raw

    def _missing_attributes(self, values: dict[str, str]) -> str:
        """Attributes that the page lacks: its language and, if it is written from right to left, its direction."""
        language = self.language or ""
        # XHTML 1.1 knows only this name.
        name = "xml:lang" if "xmlns" in values else "lang"
        missing = "" if values.keys() & LANGUAGE_ATTRIBUTES else f' {name}="{language}"'
        return missing + (' dir="rtl"' if text_direction(language) == "rtl" and "dir" not in values else "")


def _is_for_readers(tag: str, name: str, values: dict[str, str]) -> bool:
    """Tells whether the value of an attribute is text for readers."""
    if tag == "meta":
        return name == "content" and (values.get("name") or values.get("property") or "").lower() in DESCRIPTIONS
    is_button = tag == "input" and values.get("type", "").lower() in BUTTONS
    return name in TRANSLATED_ATTRIBUTES or (name == "value" and is_button)


def _escape_attribute(attribute: Attribute, escape: Callable[[str], str]) -> Callable[[str], str]:
    """Makes a function that makes text safe as the value of an attribute; a bare value gets quotation marks."""
    mark = attribute.quote or '"'
    reference = {'"': "&quot;", "'": "&#x27;"}[mark]
    around = "" if attribute.quote else mark
    return lambda words: f"{around}{escape(words).replace(mark, reference)}{around}"
