"""HTML: text in blocks, with inline tags as boundaries between runs. All other bytes are preserved."""

import re
from collections.abc import Callable, Iterator

from .character_references import escape_for, unescape
from .html_elements import ends_of_elements
from .html_tokens import TEMPLATE, Attribute, Token, html_tokens, words_of
from .languages import language_tag, text_direction
from .template import TextFile


# fmt: off
INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "button", "cite", "data", "del", "dfn", "em", "font", "i", "img",
    "input", "ins", "label", "mark", "nobr", "output", "picture", "q", "rb", "ruby", "s", "small", "source", "span",
    "strike", "strong", "sub", "sup", "time", "u", "wbr",
})
# fmt: on
# Parts of a sentence that are preserved.
PROTECTED = frozenset({"code", "kbd", "math", "samp", "svg", "tt", "var"})
READINGS = frozenset({"rp", "rt", "rtc"})
# Inline elements that a bilingual page repeats in the translation; pictures and form fields appear once.
COPIED = INLINE - {"button", "img", "input", "label", "wbr"}
# Elements that allow only text, and lists of links.
WITHOUT_MARKUP = frozenset({"nav", "option", "title"})
# Attributes that must be unique in a page.
IDENTIFIER = re.compile(r"""\s(?:id|name)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
STYLE = "opacity: 0.7"
# Elements without translatable text.
SKIPPED = frozenset({"pre", "script", "style", "template", "textarea"})
# Attributes shown or read to users. DESCRIPTIONS are the names of translated `<meta>` elements, BUTTONS the types of
# `<input>` elements with a translated value, LABELLED the elements with a translated label.
TRANSLATED_ATTRIBUTES = frozenset({"alt", "aria-label", "placeholder", "title"})
DESCRIPTIONS = frozenset({"description", "og:description", "og:title", "twitter:description", "twitter:title"})
BUTTONS = frozenset({"button", "reset", "submit"})
LABELLED = frozenset({"optgroup", "option", "track"})
# Elements that declare the language and direction of the page.
PAGE = frozenset({"body", "html"})
LANGUAGE_ATTRIBUTES = frozenset({"lang", "xml:lang"})
CHARSET = re.compile(
    r"""<(?:meta\s[^<>]{0,200}?charset|\?xml\s[^<>]{0,200}?encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.I
)


def read_html(text: str, tgt_lang: str | None = None, bilingual: bool = False) -> TextFile:
    """
    Reads a page. Text, titles, labels, and descriptions of images and of the page are translated. Every tag that is
    not inline ends a block, as does `<br>`. `<code>` and similar elements, elements with `translate="no"`, and
    template syntax such as `{{ name }}` and `{% tag %}` do not change. Translations omit ruby readings.

    Args:
        tgt_lang: language of the translation, set as `lang` and `dir` of the page.
        bilingual: whether to keep the text and add its translation: after a paragraph, heading, item or cell on a new
            line in `<span class="translation">`, in titles and navigation after a slash. Attributes are not
            translated.
    """
    reader = _Reader(text, tgt_lang, bilingual)
    reader.read(bilingual)
    return reader.file


class _Reader:
    def __init__(self, text: str, tgt_lang: str | None, bilingual: bool):
        self.tokens = list(html_tokens(text))
        self.ends, self.starts = ends_of_elements(self.tokens)
        self.paired = {start: end for end, start in self.starts.items()}
        self.page = _Page(self.tokens, None if bilingual else language_tag(tgt_lang))
        self.annotations = self._ruby_annotations()
        declared = CHARSET.search(text[:4096])
        self.file = TextFile(escape_for(declared and declared[1]))
        language = language_tag(tgt_lang)
        attributes = f' lang="{language}" dir="{text_direction(language)}"' if language else ""
        self.opening = f'<br/><span class="translation"{attributes} style="{STYLE}">'

    def read(self, bilingual: bool) -> None:
        slash_until = 0
        for start, stop, is_inline in self._sections():
            token = self.tokens[start]
            if is_inline and bilingual:
                self._add_with_copy(start, stop, start < slash_until)
            elif is_inline:
                self._add_inline(start, stop)
            else:
                self.file.end_block()
                if bilingual or _is_protected(token):
                    self.file.add(self._raw(start, stop))
                else:
                    self.page.add_markup(self.file, token)
                if token.kind == "start" and token.tag in WITHOUT_MARKUP:
                    slash_until = max(slash_until, self.ends[start])
        self.file.end_block()

    def _sections(self) -> Iterator[tuple[int, int, bool]]:
        """Yields the ranges of tags that end a block and of protected blocks, and of the inline content between."""
        begun = position = 0
        while position < len(self.tokens):
            token, is_annotation = self.tokens[position], position in self.annotations
            is_protected = not is_annotation and _is_protected(token)
            stop = self.ends[position] if is_protected else position + 1
            is_inline = token.tag in INLINE or (is_protected and token.tag in PROTECTED)
            if token.kind in ("start", "end") and not is_inline and not is_annotation:
                if begun < position:
                    yield begun, position, True
                yield position, stop, False
                begun = stop
            position = stop
        if begun < position:
            yield begun, position, True

    def _add_with_copy(self, start: int, stop: int, has_slash: bool) -> None:
        """Adds a block with, if it has words, a copy to translate."""
        last = self._last_words(start, stop)
        if last is None:
            self.file.add(self._raw(start, stop))
        elif has_slash:
            self.file.add(self._raw(start, last + 1) + " / ")
            self._add_inline(start, last + 1, frozenset())
            self.file.add(self._raw(last + 1, stop))
        else:
            self.file.add(self._raw(start, stop) + self.opening)
            self._add_inline(start, stop, COPIED)
            self.file.add("</span>")

    def _last_words(self, start: int, stop: int) -> int | None:
        """Returns the number of the last text with words to translate; `None` without any."""
        last, position = None, start
        while position < stop:
            token = self.tokens[position]
            if position in self.annotations:
                last = None if last is None else position
            elif token.kind == "text" and any(letter.isalpha() for letter in unescape(token.raw)):
                last = position
            position = self.ends[position] if _is_protected(token) else position + 1
        return last

    def _add_inline(self, start: int, stop: int, copied: frozenset[str] | None = None) -> None:
        """
        Adds inline content to translate.

        Args:
            copied: for a copy of a block, the elements to copy if they begin and end in the block.
        """
        position, is_copy = start, copied is not None
        pairs = ((self.starts[end], end) for end in range(start, stop) if self.starts.get(end, -1) >= start)
        kept = {tag for pair in pairs if self.tokens[pair[0]].tag in (copied or ()) for tag in pair}
        if is_copy:
            self.file.style = ()
        while position < stop:
            token, behind = self.tokens[position], position + 1
            if position in self.annotations:
                if not is_copy:
                    self.file.add_reading(token.raw)
            elif token.kind == "text":
                self.file.add_text(token.raw, unescape)
            elif token.kind == "template":
                self.file.add_protected(token.raw, token.raw)
            elif _is_protected(token):
                behind = self.ends[position]
                inside = self.tokens[position:behind]
                raws = [IDENTIFIER.sub("", one.raw) if is_copy and one.kind == "start" else one.raw for one in inside]
                self.file.add_protected("".join(raws), words_of(inside))
            elif position in kept or not is_copy:
                self._add_tag(position, is_copy)
            position = behind

    def _add_tag(self, position: int, is_copy: bool) -> None:
        """Adds an inline tag, or other markup, as the boundary of a format."""
        token, file = self.tokens[position], self.file
        if position in self.paired:
            (file.open_link if token.tag == "a" else file.open_style)(position)
        if is_copy:
            file.add(IDENTIFIER.sub("", token.raw))
        else:
            self.page.add_markup(file, token)
        if position in self.starts:
            (file.close_link if token.tag == "a" else file.close_style)(self.starts[position])

    def _raw(self, start: int, stop: int) -> str:
        return "".join(token.raw for token in self.tokens[start:stop])

    def _ruby_annotations(self) -> frozenset[int]:
        """
        Returns the numbers of the tokens of ruby readings, such as furigana, and of the tags around their base words.
        A `<ruby>` without an end tag, or with `translate="no"`, has no readings.
        """
        found: set[int] = set()
        behind = 0  # number of the token after the current `<ruby>`
        for position, token in enumerate(self.tokens):
            if token.kind == "start" and token.tag == "ruby" and not _is_protected(token):
                behind = max(behind, self.paired.get(position, -1) + 1)
            if position in found or position >= behind:
                continue
            if token.kind in ("start", "end") and token.tag in ("rb", "ruby"):
                found.add(position)
            elif token.kind == "start" and token.tag in READINGS:
                found.update(range(position, min(self.ends[position], behind - 1)))
        return frozenset(found)


class _Page:
    """Translates the attributes of tags that users read, and sets those that declare the language of the page."""

    def __init__(self, tokens: list[Token], language: str | None):
        self.language, self.root = language, None
        if language is not None:
            self.root = next((token for token in tokens if token.kind == "start" and token.tag == "html"), None)
        pages = [token.values for token in tokens if token.tag in PAGE]
        languages = [values.get(name, "").lower() for values in pages for name in LANGUAGE_ATTRIBUTES]
        self.source_languages = frozenset(languages) - {""}

    def add_markup(self, file: TextFile, token: Token) -> None:
        """Adds markup. Each attribute that users read becomes a block."""
        done, values = 0, token.values
        for attribute in token.attributes:
            raw = token.raw[attribute.start : attribute.stop]
            file.add(token.raw[done : attribute.start])
            if _is_for_readers(token.tag, attribute.name, values) and not TEMPLATE.search(raw):
                file.add_aside(raw, " ".join(unescape(raw).split()), _escape_attribute(attribute, file.escape))
            else:
                file.add(self._target_value(token, attribute, raw))
            done = attribute.stop
        rest = token.raw[done:]
        if token is self.root:
            # After the tag name or the last attribute.
            place = len(token.attributes[-1].quote) if token.attributes else len("<html")
            rest = rest[:place] + self._missing_attributes(values) + rest[place:]
        file.add(rest)

    def _target_value(self, token: Token, attribute: Attribute, raw: str) -> str:
        """Returns the value of an attribute, with the language of the page replaced by the target language."""
        if self.language is None or TEMPLATE.search(raw):
            return raw
        is_page = token.tag in PAGE
        if attribute.name in LANGUAGE_ATTRIBUTES and (is_page or raw.lower() in self.source_languages):
            return self.language
        return text_direction(self.language) if is_page and attribute.name == "dir" else raw

    def _missing_attributes(self, values: dict[str, str]) -> str:
        """Returns missing attributes of the page: its language and, for right-to-left scripts, its direction."""
        language = self.language or ""
        # XHTML 1.1 allows only `xml:lang`.
        name = "xml:lang" if "xmlns" in values else "lang"
        missing = "" if values.keys() & LANGUAGE_ATTRIBUTES else f' {name}="{language}"'
        return missing + (' dir="rtl"' if text_direction(language) == "rtl" and "dir" not in values else "")


def _is_protected(token: Token) -> bool:
    """Returns whether an element begins that is preserved."""
    if token.kind != "start":
        return False
    if token.tag in SKIPPED | PROTECTED:
        return not token.is_empty  # in XHTML, `<script/>` is a complete element
    values = token.values
    return values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").split()


def _is_for_readers(tag: str, name: str, values: dict[str, str]) -> bool:
    if tag == "meta":
        return name == "content" and (values.get("name") or values.get("property") or "").lower() in DESCRIPTIONS
    is_button = tag == "input" and values.get("type", "").lower() in BUTTONS
    is_label = name == "label" and tag in LABELLED
    return name in TRANSLATED_ATTRIBUTES or (name == "value" and is_button) or is_label


def _escape_attribute(attribute: Attribute, escape: Callable[[str], str]) -> Callable[[str], str]:
    """Makes a function that escapes the value of an attribute. An unquoted value gets quotation marks."""
    mark = attribute.quote or '"'
    reference = {'"': "&quot;", "'": "&#x27;"}[mark]
    around = "" if attribute.quote else mark
    return lambda words: f"{around}{escape(words).replace(mark, reference)}{around}"
