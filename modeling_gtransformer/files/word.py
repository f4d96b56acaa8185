"""Word documents (DOCX): the text of paragraphs, wherever they are; everything else of the file stays."""

import re
from collections.abc import Sequence
from typing import Any

from .borders import Style
from .character_references import without_control
from .languages import language_tag
from .runs import Block, Run
from .word_bilingual import insert_copies
from .word_paragraphs import attribute_of, blocks_of, name_of, tags
from .zip_package import ZipPackage


SPACE = "{http://www.w3.org/XML/1998/namespace}space"
# The parts of a document that have paragraphs.
MAIN_PART = re.compile(r"word/document\d*\.xml")
PARTS = re.compile(rf"{MAIN_PART.pattern}|word/(?:header|footer|footnotes|endnotes|comments)\d*\.xml")
# Fields whose result is text of the document. The result of others, such as PAGE and DATE, is computed and stays.
TEXT_FIELDS = frozenset({"HYPERLINK", "INDEX", "REF", "TOC"})
# Properties of a run that do not affect how it looks.
NO_FORMAT = frozenset({"w:lang", "w:noProof"})


class WordDocument:
    """
    A DOCX file. `blocks` are the paragraphs of text, tables, headers, footers, notes, comments and text boxes, in runs
    of one format each. A line break or tab ends a block. The result of a field such as a page number stays, and a text
    box that is stored twice, for new and for old programs, is translated once.

    Args:
        tgt_lang: language of the translation, which copies of paragraphs name.
        bilingual: whether the paragraphs stay, each followed by a marked copy that is translated.

    Raises:
        ImportError: lxml is not installed.
        ValueError: the file is broken, or larger when unpacked than any document.
    """

    def __init__(self, content: bytes, tgt_lang: str | None = None, bilingual: bool = False):
        try:
            from lxml import etree
        except ImportError as error:
            raise ImportError("DOCX files need lxml: pip install lxml") from error
        self._to_bytes = etree.tostring
        try:
            self._package = ZipPackage(content)
            parts = self._package.read([name for name in self._package.names if PARTS.fullmatch(name)])
            self._roots = {
                name: etree.fromstring(part, etree.XMLParser(resolve_entities=False, no_network=True))
                for name, part in parts.items()
            }
        except (ValueError, etree.XMLSyntaxError) as error:
            raise ValueError(f"not a Word document (.docx): {error}") from error
        if not any(MAIN_PART.fullmatch(name) for name in self._roots):
            raise ValueError("not a Word document (.docx): it has no word/document.xml")
        if any(root.getroottree().docinfo.doctype for root in self._roots.values()):
            raise ValueError("not a Word document (.docx): it has a document type declaration (DOCTYPE)")
        self._texts: list[list[Any]] = []
        self.blocks: list[Block] = []
        self.document_starts = [0]
        # Pairs of elements that must have the same text.
        self._copies: list[tuple[Any, Any]] = []
        # Names of the parts that hold the texts, and of those that have changed whatever the texts become.
        self._names: list[str] = []
        self._has_copies: set[str] = set()
        for name, root in self._roots.items():
            copies = insert_copies(root, language_tag(tgt_lang)) if bilingual else None
            self._has_copies |= {name} if copies else set()
            self._add_part(name, root, copies)

    def _add_part(self, name: str, root: Any, paragraphs: list[Any] | None) -> None:
        """Adds the text of a part or, if paragraphs are given, only of these."""
        kept = _field_results(root)
        copied = set()
        for alternatives in root.iter(*tags("mc:AlternateContent")):
            pairs = _copies(alternatives)
            self._copies += pairs
            copied |= {copy for _, copy in pairs}
        for paragraph in root.iter(*tags("w:p")) if paragraphs is None else paragraphs:
            for texts in blocks_of(paragraph):
                if not copied.issuperset(texts):
                    self._texts.append(texts)
                    self._names.append(name)
                    self.blocks.append([_run(element, element in kept) for element in texts])

    def fill(self, blocks: Sequence[Sequence[str]]) -> bytes:
        """Returns the document with these texts. Parts that do not change are copied as they are packed."""
        changed, rubies = set(self._has_copies), set()
        for name, texts, block, runs in zip(self._names, self._texts, self.blocks, blocks, strict=True):
            for element, old, run in zip(texts, block, runs, strict=True):
                if old.markup is None and old.text != run:
                    changed.add(name)
                if old.markup is None and element.text != run:
                    element.text = without_control(run)
                    element.set(SPACE, "preserve")
                    rubies.update(element.iterancestors(*tags("w:ruby")))
        for reading in (each for ruby in rubies for each in ruby.iter(*tags("w:rt"))):
            for text in reading.iter(*tags("w:t")):
                text.text = ""
        for element, copy in self._copies:
            if copy.text != element.text:
                copy.text = element.text
                copy.set(SPACE, "preserve")
        return self._package.replaced(
            {
                name: self._to_bytes(root, xml_declaration=True, encoding="UTF-8", standalone=True)
                for name, root in self._roots.items()
                if name in changed
            }
        )


def _run(element: Any, is_kept: bool) -> Run:
    """Returns the run of an element; if the element has no text of its own, with what the model reads."""
    if name_of(element) == "w:t":
        return Run(element.text or "", markup="" if is_kept else None, style=_style(element))
    return Run("-" if name_of(element) == "w:noBreakHyphen" else "".join(element.itertext()), markup="")


def _style(element: Any) -> Style:
    """Returns the properties of a text and its link, which distinguish its format from that of others."""
    run = element.getparent()
    children = [child for each in run.iter(*tags("w:rPr")) for child in each if name_of(child) not in NO_FORMAT]
    properties = [(child.tag, *sorted(child.attrib.items())) for child in children]
    return (*properties, *(link for link in run.iterancestors(*tags("w:hyperlink"))))


def _field_results(root: Any) -> set[Any]:
    """Returns the elements with the text of computed fields."""
    kept: set[Any] = set()
    for field in root.iter(*tags("w:fldSimple")):
        if _is_computed(attribute_of(field, "instr")):
            kept.update(field.iter(*tags("w:t")))
    # For every open field: its instruction, and whether its result has begun.
    fields: list[tuple[list[str], bool]] = []
    computed = 0
    for element in root.iter(*tags("w:fldChar"), *tags("w:instrText"), *tags("w:t")):
        name = name_of(element)
        kind = attribute_of(element, "fldCharType") if name == "w:fldChar" else ""
        if kind == "begin":
            fields.append(([], False))
        elif kind == "separate" and fields and not fields[-1][1]:
            fields[-1] = (fields[-1][0], True)
            computed += _is_computed("".join(fields[-1][0]))
        elif kind == "end" and fields:
            instruction, has_result = fields.pop()
            computed -= has_result and _is_computed("".join(instruction))
        elif name == "w:instrText" and fields and not fields[-1][1]:
            fields[-1][0].append(element.text or "")
        elif name == "w:t" and computed:
            kept.add(element)
    return kept


def _is_computed(instruction: str) -> bool:
    """Tells whether the result of a field is computed, and so not text of the document."""
    return instruction.split(maxsplit=1)[:1] == [] or instruction.split(maxsplit=1)[0].upper() not in TEXT_FIELDS


def _copies(alternatives: Any) -> list[tuple[Any, Any]]:
    """Lists, in pairs, the texts that are the same in the first of several alternatives and in another."""
    first, *others = [list(alternative.iter(*tags("w:t"))) for alternative in alternatives] or [[]]
    words = [element.text for element in first]
    return [
        pair
        for other in others
        if [element.text for element in other] == words
        for pair in zip(first, other, strict=True)
    ]
