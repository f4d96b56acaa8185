"""E-books (EPUB 2 and 3): the pages in reading order, the table of contents and the title, each a document."""

from itertools import pairwise

from .html import read_html
from .languages import is_same_language, language_tag, text_direction
from .template import TextFile
from .text_package import TextPackage, in_member, member_name, read_texts, reading, start_tags
from .xml_tokens import XML, XmlToken, with_attribute, words_of, xml_escape, xml_tokens
from .zip_package import ZipPackage


CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"
PAGE_TYPES = frozenset({"application/xhtml+xml", "text/html"})
CONTENTS_TYPE = "application/x-dtbncx+xml"
# Algorithms that only scramble fonts.
FONT_ALGORITHMS = frozenset({"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"})


def read_epub(content: bytes, tgt_lang: str | None = None, bilingual: bool = False) -> TextPackage:
    """
    Reads an EPUB file. Pages are read as HTML in the order of the spine; then come the pages of navigation that are
    not in it, and the table of contents of EPUB 2 (NCX). The title of the book is translated; other metadata are not.

    Args:
        tgt_lang: language of the translation, which the translated book and its pages name.
        bilingual: whether the text is kept, followed by its translation.

    Raises:
        ValueError: the file is broken, encrypted, or larger when unpacked than any book.
    """
    with reading("not a readable e-book (.epub)"):
        package = ZipPackage(content)
        if CONTAINER not in package:
            raise ValueError(f"it has no {CONTAINER}")
        _check_encryption(package)
        return _read_book(package, tgt_lang, bilingual)


def _check_encryption(package: ZipPackage) -> None:
    """
    Refuses books with encrypted text; fonts may be encrypted.

    Raises:
        ValueError: more than fonts is encrypted.
    """
    tags = start_tags(package, [ENCRYPTION])[ENCRYPTION] if ENCRYPTION in package else []
    methods = [token.get("Algorithm") for token in tags if token.name[1] == "EncryptionMethod"]
    encrypted = [token for token in tags if token.name[1] == "EncryptedData"]
    if len(methods) < len(encrypted) or not FONT_ALGORITHMS.issuperset(methods):
        raise ValueError("its pages are encrypted, as with copy protection (DRM): use a book without it")


def _read_book(package: ZipPackage, tgt_lang: str | None, bilingual: bool) -> TextPackage:
    container = start_tags(package, [CONTAINER])[CONTAINER]
    book = next((token.get("full-path") for token in container if token.name[1] == "rootfile"), None)
    if book is None:
        raise ValueError(f"{CONTAINER} names no package document")
    tags = start_tags(package, [book])[book]
    items = {token.get("id"): token for token in tags if token.name[1] == "item"}
    spine = [items.get(token.get("idref")) for token in tags if token.name[1] == "itemref"]
    if not spine or None in spine:
        raise ValueError(f"{book!r} of the package: its spine names no pages, or some that are not in its manifest")
    navigation = [item for item in items.values() if "nav" in item.get("properties").split()]
    pages = [item for item in (*spine, *navigation) if item and item.get("media-type") in PAGE_TYPES]
    contents = [item for item in items.values() if item.get("media-type") == CONTENTS_TYPE]
    # Each page once, in this order.
    page_names, contents_names = (
        [*dict.fromkeys(member_name(item.get("href"), book) for item in kind)] for kind in (pages, contents)
    )
    texts = read_texts(package, [book, *page_names, *contents_names])
    # A bilingual book is also in its own language.
    language = None if bilingual else language_tag(tgt_lang)
    files = {book: in_member(book, _read_package_document, texts[book], language, bilingual)}
    files |= {name: read_html(texts[name], tgt_lang, bilingual) for name in page_names}
    files |= {name: in_member(name, _read_contents, texts[name], language, bilingual) for name in contents_names}
    return TextPackage(package, texts, files)


def _read_package_document(text: str, language: str | None, bilingual: bool) -> TextFile:
    """Reads the document that lists the parts of the book: its titles are text, and it names the language."""
    labels = _Labels(text, bilingual)
    pairs = pairwise(labels.tokens)
    # The first language that the book names.
    named = (after.words for tag, after in pairs if tag.kind == "start" and tag.name == (DUBLIN_CORE, "language"))
    before = next(named, "").strip()
    inside, is_named = ("", ""), False
    for token in labels.tokens:
        raw = token.raw
        if token.kind in ("start", "end"):
            inside = token.name if token.kind == "start" else ("", "")
        if token.kind == "start" and language:
            raw = _with_language(token, before, language)
            direction = text_direction(language)
            if token.name[1] == "spine" and (token.get("page-progression-direction") or direction == "rtl"):
                raw = with_attribute(raw, "page-progression-direction", direction)
        is_language = inside == (DUBLIN_CORE, "language") and token.kind == "text" and bool(raw.strip())
        if is_language and language and not is_named:
            raw, is_named = raw.replace(raw.strip(), language), True
        labels.add(token, raw, inside == (DUBLIN_CORE, "title"))
    return labels.file


def _read_contents(text: str, language: str | None, bilingual: bool) -> TextFile:
    """Reads the table of contents of EPUB 2: its title and its labels are text, but page numbers are not."""
    labels = _Labels(text, bilingual)
    inside: list[str] = []
    root = next(token for token in labels.tokens if token.kind == "start")
    for token in labels.tokens:
        if token.kind == "start":
            inside.append(token.name[1])
        elif token.kind == "end":
            inside.pop()
        raw = _with_language(token, root.get("lang", XML), language) if language and token is root else token.raw
        is_label = inside[-2:] in (["navLabel", "text"], ["docTitle", "text"]) and "pageList" not in inside[:3]
        labels.add(token, raw, is_label)
    return labels.file


class _Labels:
    """Adds the parts of an XML file with titles and labels; in a bilingual book, translations follow them."""

    def __init__(self, text: str, bilingual: bool):
        self.tokens, self.file, self.bilingual = xml_tokens(text), TextFile(xml_escape(text)), bilingual
        self.begun: list[str] = []

    def add(self, token: XmlToken, raw: str, is_label: bool) -> None:
        """Adds a part, which belongs to a title or label or not."""
        if token.kind in ("start", "end"):
            self._end()
        if not is_label or token.kind not in ("text", "cdata"):
            self.file.add(raw)
        elif self.bilingual:
            self.file.add(raw)
            self.begun.append(raw)
        else:
            self.file.add_line(raw, "", words_of)

    def _end(self) -> None:
        if any(words_of(raw).strip() for raw in self.begun):
            self.file.add(" / ")
            for raw in self.begun:
                self.file.add_line(raw, "", words_of)
        self.begun.clear()
        self.file.end_block()


def _with_language(token: XmlToken, before: str, language: str) -> str:
    """Returns a start tag, which names the target language if it named that of the book."""
    named = token.get("lang", XML)
    if not named or (before and not is_same_language(named, before)):
        return token.raw
    return with_attribute(token.raw, "xml:lang", language)
