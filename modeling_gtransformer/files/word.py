"""Word documents (DOCX): the text of paragraphs, wherever they are; everything else of the file stays."""

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from .runs import Block, Run


W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
TEXT = f"{W}t"
SPACE = "{http://www.w3.org/XML/1998/namespace}space"
# The parts of a document that have paragraphs.
PARTS = re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes)\.xml")
# What ends a sentence, and what has paragraphs of its own.
BREAKS = frozenset({f"{W}br", f"{W}cr", f"{W}tab"})
NESTED = frozenset({f"{W}p", f"{W}txbxContent"})
# What was moved away or deleted.
GONE = frozenset({f"{W}moveFrom", f"{W}del"})
HYPHEN = f"{W}noBreakHyphen"
FORMULA = "{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath"
# Characters that XML cannot hold.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class WordDocument:
    """
    A DOCX file. `blocks` are the paragraphs of text, tables, headers, footers, notes and text boxes, in runs of one
    format each. A line break or tabulator ends a block.

    Raises:
        ImportError: lxml is not installed.
        ValueError: the file is broken.
    """

    def __init__(self, content: bytes):
        try:
            from lxml import etree
        except ImportError as error:
            raise ImportError("DOCX files need lxml: pip install lxml") from error
        self._to_bytes = etree.tostring
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                self._members = [(member, archive.read(member)) for member in archive.infolist()]
            self._roots = {
                member.filename: etree.fromstring(data, etree.XMLParser(resolve_entities=False))
                for member, data in self._members
                if PARTS.fullmatch(member.filename)
            }
        except (zipfile.BadZipFile, etree.XMLSyntaxError) as error:
            raise ValueError(f"no Word document (.docx): {error}") from error
        if "word/document.xml" not in self._roots:
            raise ValueError("no Word document (.docx): it has no word/document.xml")
        paragraphs = [paragraph for root in self._roots.values() for paragraph in root.iter(f"{W}p")]
        self._texts = [texts for paragraph in paragraphs for texts in _blocks(paragraph)]
        self.blocks: list[Block] = [[_run(element) for element in texts] for texts in self._texts]

    def fill(self, blocks: Sequence[Sequence[str]]) -> bytes:
        """The document with these texts."""
        for texts, runs in zip(self._texts, blocks, strict=True):
            for element, run in zip(texts, runs, strict=True):
                if element.tag == TEXT and element.text != run:
                    element.text = CONTROL.sub("", run)
                    element.set(SPACE, "preserve")
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, data in self._members:
                root = self._roots.get(member.filename)
                if root is not None:
                    data = self._to_bytes(root, xml_declaration=True, encoding="UTF-8", standalone=True)
                archive.writestr(member, data, compress_type=member.compress_type)
        return buffer.getvalue()


def _blocks(paragraph: Any) -> Iterator[list[Any]]:
    """The elements that hold the text of a paragraph, without the paragraphs inside of it."""
    texts: list[Any] = []
    for element in _inside(paragraph):
        if element.tag in (TEXT, HYPHEN, FORMULA):
            texts.append(element)
        elif element.tag in BREAKS and texts:
            yield texts
            texts = []
    if texts:
        yield texts


def _run(element: Any) -> Run:
    """The run of an element; of what has no text of its own, what the model reads."""
    if element.tag == TEXT:
        return Run(element.text or "")
    return Run("-" if element.tag == HYPHEN else "".join(element.itertext()), markup="")


def _inside(element: Any) -> Iterator[Any]:
    for child in element:
        if child.tag not in NESTED | GONE:
            yield child
            if child.tag != FORMULA:
                yield from _inside(child)
