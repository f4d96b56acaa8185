"""E-books (EPUB 2 and 3): the pages in reading order, the table of contents and the title, each a document."""

from .html import read_html
from .html_bilingual import read_bilingual_html
from .languages import is_same_language, language_tag, text_direction
from .template import TextFile
from .text_package import TextPackage, in_member, member_name, member_tokens, read_texts
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
    not in it, and the table of contents of EPUB 2 (NCX). The title of the book is translated; other metadata stay.

    Args:
        tgt_lang: language of the translation, which the translated book and its pages name.
        bilingual: whether the text stays, followed by its translation.

    Raises:
        ValueError: the file is broken, encrypted, or larger when unpacked than any book.
    """
    try:
        package = ZipPackage(content)
        if CONTAINER not in package:
            raise ValueError(f"it has no {CONTAINER}")
        _check_encryption(package)
        return _read_book(package, tgt_lang, bilingual)
    except ValueError as error:
        raise ValueError(f"not a readable e-book (.epub): {error}") from error


def _check_encryption(package: ZipPackage) -> None:
    """
    Refuses books with encrypted text; fonts may be encrypted.

    Raises:
        ValueError: more than fonts is encrypted.
    """
    if ENCRYPTION not in package:
        return
    tokens = _starts(member_tokens(package, ENCRYPTION))
    methods = [token.get("Algorithm") for token in tokens if token.name[1] == "EncryptionMethod"]
    encrypted = [token for token in tokens if token.name[1] == "EncryptedData"]
    if len(methods) < len(encrypted) or not FONT_ALGORITHMS.issuperset(methods):
        raise ValueError("its pages are encrypted, as with copy protection (DRM): use a book without it")


def _starts(tokens: list[XmlToken]) -> list[XmlToken]:
    return [token for token in tokens if token.kind == "start"]


def _read_book(package: ZipPackage, tgt_lang: str | None, bilingual: bool) -> TextPackage:
    rootfiles = [
        token.get("full-path") for token in _starts(member_tokens(package, CONTAINER)) if token.name[1] == "rootfile"
    ]
    if not rootfiles:
        raise ValueError(f"{CONTAINER} names no package document")
    book = rootfiles[0]
    starts = _starts(member_tokens(package, book))
    items = {token.get("id"): token for token in starts if token.name[1] == "item"}
    spine = [items.get(token.get("idref")) for token in starts if token.name[1] == "itemref"]
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
    read_page = read_bilingual_html if bilingual else read_html
    files = {book: in_member(book, _read_package_document, texts[book], language, bilingual)}
    files |= {name: read_page(texts[name], tgt_lang) for name in page_names}
    files |= {name: in_member(name, _read_contents, texts[name], language, bilingual) for name in contents_names}
    return TextPackage(package, texts, files)


def _read_package_document(text: str, language: str | None, bilingual: bool) -> TextFile:
    """Reads the document that lists the parts of the book: its titles are text, and it names the language."""
    tokens = xml_tokens(text)
    file = TextFile(xml_escape(text))
    labels = _Labels(file, bilingual)
    before = _language_of_book(tokens)
    inside, is_named = "", False
    for token in tokens:
        raw = token.raw
        if token.kind in ("start", "end"):
            labels.end()
            inside = token.name[1] if token.kind == "start" and token.name[0] == DUBLIN_CORE else ""
        if token.kind == "start" and language:
            raw = _with_language(token, before, language)
            if token.name[1] == "spine" and (
                token.get("page-progression-direction") or text_direction(language) == "rtl"
            ):
                raw = with_attribute(raw, "page-progression-direction", text_direction(language))
        if inside == "title" and token.kind in ("text", "cdata"):
            labels.add(raw)
        elif inside == "language" and token.kind == "text" and language and not is_named and raw.strip():
            file.add(raw.replace(raw.strip(), language))
            is_named = True
        else:
            file.add(raw)
    return file


class _Labels:
    """Adds titles and labels to a file; in a bilingual book, each comes before its translation."""

    def __init__(self, file: TextFile, bilingual: bool):
        self.file, self.bilingual = file, bilingual
        self.begun: list[str] = []

    def add(self, raw: str) -> None:
        """Adds a part of a label."""
        if self.bilingual:
            self.file.add(raw)
            self.begun.append(raw)
        else:
            self.file.add_line(raw, "", words_of)

    def end(self) -> None:
        """Ends the label."""
        if any(words_of(raw).strip() for raw in self.begun):
            self.file.add(" / ")
            for raw in self.begun:
                self.file.add_line(raw, "", words_of)
        self.begun.clear()
        self.file.end_block()


def _language_of_book(tokens: list[XmlToken]) -> str:
    """The first language that a book names, or an empty string."""
    for number, token in enumerate(tokens):
        if token.kind == "start" and token.name == (DUBLIN_CORE, "language"):
            return tokens[number + 1].words.strip()
    return ""


def _with_language(token: XmlToken, before: str, language: str) -> str:
    """Returns a start tag, which names the target language if it named that of the book."""
    named = token.get("lang", XML)
    if not named or (before and not is_same_language(named, before)):
        return token.raw
    return with_attribute(token.raw, "xml:lang", language)


def _read_contents(text: str, language: str | None, bilingual: bool) -> TextFile:
    """Reads the table of contents of EPUB 2: its title and its labels are text, but page numbers are not."""
    tokens = xml_tokens(text)
    file = TextFile(xml_escape(text))
    labels = _Labels(file, bilingual)
    inside: list[str] = []
    root = next(token for token in tokens if token.kind == "start")
    for token in tokens:
        if token.kind == "start":
            inside.append(token.name[1])
        elif token.kind == "end":
            inside.pop()
        is_label = inside[-2:] in (["navLabel", "text"], ["docTitle", "text"]) and "pageList" not in inside[:3]
        if token.kind in ("text", "cdata") and is_label:
            labels.add(token.raw)
            continue
        labels.end()
        file.add(_with_language(token, root.get("lang", XML), language) if language and token is root else token.raw)
    return file
