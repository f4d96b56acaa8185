"""
E-books (EPUB 2 and 3): first the pages of the spine in order, as HTML, then navigation pages outside the spine, then
the table of contents of EPUB 2 (NCX).

Each is a document. The title is translated; other metadata do not change.
"""

from collections.abc import Callable, Sequence
from functools import partial

from .html import read_html
from .languages import is_same_language, language_tag, text_direction
from .office import OfficeMarkup, OfficeTree, read_part
from .template import TextFile
from .text_package import TextPackage, member_name, prefixed, start_tags
from .xml_tokens import XML, XmlToken, with_attribute
from .zip_package import ZipPackage


CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"
# Titles in the package document, and labels in the table of contents of EPUB 2.
BOOK = OfficeMarkup({DUBLIN_CORE: "dc"}, paragraphs={"dc:title"}, mixed={"dc:title"})
CONTENTS = OfficeMarkup(
    {"http://www.daisy.org/z3986/2005/ncx/": "ncx"},
    paragraphs={"ncx:docTitle", "ncx:navLabel"},
    mixed={"ncx:text"},
    skipped={"ncx:docAuthor", "ncx:navInfo", "ncx:pageList"},
)
PAGE_TYPES = frozenset({"application/xhtml+xml", "text/html"})
CONTENTS_TYPE = "application/x-dtbncx+xml"
# Algorithms that only obfuscate fonts.
FONT_ALGORITHMS = frozenset({"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"})


def read_epub(content: bytes, tgt_lang: str | None = None, bilingual: bool = False) -> TextPackage:
    """Reads an EPUB file. The translated book and its pages declare the target language."""
    with prefixed("not a readable e-book (.epub)"):
        package = ZipPackage(content)
        _check_encryption(package)
        return _read_book(package, tgt_lang, bilingual)


def _check_encryption(package: ZipPackage) -> None:
    """Raises `ValueError` if anything but fonts is encrypted."""
    tags = start_tags(package, ENCRYPTION) if ENCRYPTION in package.members else []
    methods = [token.get("Algorithm") for token in tags if token.name[1] == "EncryptionMethod"]
    encrypted = [token for token in tags if token.name[1] == "EncryptedData"]
    if len(methods) < len(encrypted) or not FONT_ALGORITHMS.issuperset(methods):
        raise ValueError("its pages are encrypted, as with copy protection (DRM): use a book without it")


def _read_book(package: ZipPackage, tgt_lang: str | None, bilingual: bool) -> TextPackage:
    roots = (token for token in start_tags(package, CONTAINER) if token.name[1] == "rootfile")
    book = next((token.get("full-path") for token in roots), None)
    if book is None:
        raise ValueError(f"{CONTAINER} names no package document")
    tags = start_tags(package, book)
    items = {token.get("id"): token for token in tags if token.name[1] == "item"}
    spine = [token.get("idref") for token in tags if token.name[1] == "itemref"]
    if not spine or not items.keys() >= {*spine}:
        raise ValueError(f"{book!r} of the package: its spine names no pages, or some that are not in its manifest")
    navigation = [item for item in items.values() if "nav" in item.get("properties").split()]
    pages = [item for item in (*(items[name] for name in spine), *navigation) if item.get("media-type") in PAGE_TYPES]
    contents = [item for item in items.values() if item.get("media-type") == CONTENTS_TYPE]
    readers: dict[str, Callable[[str], TextFile]] = {book: _label_reader(BOOK, tgt_lang, bilingual)}
    read_page = partial(read_html, tgt_lang=tgt_lang, bilingual=bilingual)
    for own, read in ((pages, read_page), (contents, _label_reader(CONTENTS, tgt_lang, bilingual))):
        readers |= {member_name(item.get("href"), book): read for item in own}
    return TextPackage(package, readers)


def _label_reader(markup: OfficeMarkup, tgt_lang: str | None, bilingual: bool) -> Callable[[str], TextFile]:
    """Makes a reader of XML files with titles or labels. A bilingual book keeps its language."""
    change = partial(_with_copies, markup=markup)
    in_language = partial(_in_language, language=language_tag(tgt_lang))
    return partial(read_part, markup=markup, transform=change if bilingual else in_language)


def _with_copies(tokens: Sequence[XmlToken], markup: OfficeMarkup) -> list[XmlToken]:
    """Adds a slash and a copy to translate after every title or label."""
    result: list[XmlToken] = []
    begun: list[XmlToken] = []
    inside = [""]
    skipped_end = 0
    tree = OfficeTree(tokens, markup)
    for position, (token, name) in enumerate(zip(tokens, tree.names, strict=True)):
        if token.kind in ("text", "cdata") and inside[-1] in markup.mixed and position >= skipped_end:
            begun.append(token)
            token = token._replace(kind="other")
        elif token.kind in ("start", "end"):
            if any(each.words.strip() for each in begun):
                result += [XmlToken("other", " / "), *begun]
            begun.clear()
            if token.kind == "end":
                inside.pop()
            else:
                inside.append(name)
                skipped_end = max(skipped_end, tree.ends[position] if name in markup.skipped else 0)
        result.append(token)
    return result


def _in_language(tokens: list[XmlToken], language: str | None) -> list[XmlToken]:
    """Replaces the language of the book by the target language."""
    if language is None:
        return tokens
    is_named = ((tag.kind, tag.name) == ("start", (DUBLIN_CORE, "language")) for tag in tokens)
    named = next((number for number, found in enumerate(is_named, 1) if found), None)
    root = next(token for token in tokens if token.kind == "start")
    before = root.get("lang", XML) if named is None else tokens[named].raw.strip()
    result = [_tag_in_language(token, before, language) if token.kind == "start" else token for token in tokens]
    if named is not None and before:
        result[named] = tokens[named]._replace(raw=tokens[named].raw.replace(before, language))
    return result


def _tag_in_language(token: XmlToken, before: str, language: str) -> XmlToken:
    raw, named, direction = token.raw, token.get("lang", XML), text_direction(language)
    if named and (not before or is_same_language(named, before)):
        raw = with_attribute(raw, "xml:lang", language)
    if token.name[1] == "spine" and (token.get("page-progression-direction") or direction == "rtl"):
        raw = with_attribute(raw, "page-progression-direction", direction)
    return token._replace(raw=raw)
