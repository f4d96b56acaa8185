"""What independent parsers find in a file: its structure, and its text without case, white space and brackets."""

import io
import zipfile
from collections.abc import Callable
from typing import Any

import babel.messages.pofile
import docx
import html5lib
import lxml.etree
import odfdo
import pptx
import pysubs2
from ebooklib import epub
from markdown_it import MarkdownIt


BRACKETS = str.maketrans("", "", "⟦⟧")
# Attributes with which a program marks what it has translated.
MARKS = ("state", "subState", "target-language", "trgLang")
XML = (".xml", ".xhtml", ".html", ".ncx", ".opf", ".rels")
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def structure(format: str, name: str, content: bytes) -> list[Any]:
    """Returns what a parser finds, and what the library of the format finds, or the kind of its error."""
    return [opened(parse, name, content) for parse in PARSERS[format]]


class Unread(str):
    """The kind of error with which a parser refuses a file."""


def opened(parse: Callable[[str, bytes], Any], name: str, content: bytes) -> Any:
    try:
        return parse(name, content)
    except Exception as error:
        return Unread(f"{parse.__name__}: {type(error).__name__}")


def text_of(*texts: str | None) -> str:
    # Twice, as capital letters of several letters differ.
    return "".join("".join(text or "" for text in texts).translate(BRACKETS).upper().casefold().split())


def tree(root: Any) -> Any:
    """The elements of a tree, with the names of their parents and their attributes, and its text."""
    elements, to_do = [], [(root, "")]
    while to_do:
        element, parent = to_do.pop()
        attributes = sorted((str(name), text_of(value)) for name, value in element.attrib.items())
        kept = [own for own in attributes if own[0] not in MARKS and not own[0].endswith("}space")]
        elements.append((str(element.tag), parent, kept))
        to_do += [(child, str(element.tag)) for child in reversed(element)]
    return elements, text_of(*root.itertext())


def parse_html(name: str, content: bytes) -> Any:
    return tree(html5lib.parse(content.decode(), namespaceHTMLElements=False))


def parse_markdown(name: str, content: bytes) -> Any:
    parts = [part for token in MARKDOWN.parse(content.decode()) for part in (token.children or [token])]
    kinds = [(part.type, part.level, text_of(str(part.attrs))) for part in parts]
    return [kind for kind in kinds if kind[0] not in ("text", "softbreak")], text_of(*(part.content for part in parts))


def parse_subtitles(name: str, content: bytes) -> Any:
    text = content.decode("utf-8-sig")
    events = pysubs2.SSAFile.from_string(text, "vtt" if text.startswith("WEBVTT") else name.rpartition(".")[2].lower())
    times = [(event.start, event.end, event.style, event.type, event.text.count("\\N")) for event in events]
    return times, text_of(*(event.plaintext for event in events))


def parse_po(name: str, content: bytes) -> Any:
    """The messages, and the lines that are neither translations nor flags nor the header."""
    messages = babel.messages.pofile.read_po(io.BytesIO(content))
    fields = [(each.id, each.context, sorted(each.flags - {"fuzzy"}), each.locations) for each in messages if each.id]
    lines = [line for line in content.splitlines() if line not in (b"", b'msgid ""')]
    return fields, [line for line in lines if not line.startswith((b"msgstr", b'"', b"#,", b"#|"))]


def parse_xliff(name: str, content: bytes) -> Any:
    """The elements except targets, which are new."""
    root = lxml.etree.fromstring(content)
    for target in [*root.iter("{*}target")]:
        target.getparent().remove(target)
    return tree(root)


def parse_package(name: str, content: bytes) -> Any:
    """The members of a package: the trees of those that are XML, and the bytes of the others."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return [(name, tree_or_bytes(own) if name.endswith(XML) else own) for name, own in members.items()]


def tree_or_bytes(content: bytes) -> Any:
    try:
        return tree(lxml.etree.fromstring(content))
    except lxml.etree.XMLSyntaxError:
        return content


def parse_docx(name: str, content: bytes) -> Any:
    paragraphs = docx.Document(io.BytesIO(content)).paragraphs
    return [each.style.name for each in paragraphs], text_of(*(each.text for each in paragraphs))


def parse_pptx(name: str, content: bytes) -> Any:
    shapes = [shape for slide in pptx.Presentation(io.BytesIO(content)).slides for shape in slide.shapes]
    texts = [shape.text_frame.text for shape in shapes if shape.has_text_frame]
    return [(shape.shape_type, shape.name) for shape in shapes], text_of(*texts)


def parse_odf(name: str, content: bytes) -> Any:
    paragraphs = odfdo.Document(io.BytesIO(content)).body.paragraphs
    return [each.style for each in paragraphs], text_of(*(each.inner_text for each in paragraphs))


def parse_epub(name: str, content: bytes) -> Any:
    book = epub.read_epub(io.BytesIO(content))
    return sorted((item.get_type(), item.file_name) for item in book.get_items()), book.spine


PARSERS: dict[str, list[Callable[[str, bytes], Any]]] = {
    "html": [parse_html],
    "markdown": [parse_markdown],
    "subtitles": [parse_subtitles],
    "ass": [parse_subtitles],
    "po": [parse_po],
    "xliff": [parse_xliff],
    "docx": [parse_package, parse_docx],
    "pptx": [parse_package, parse_pptx],
    "odf": [parse_package, parse_odf],
    "epub": [parse_package, parse_epub],
}
