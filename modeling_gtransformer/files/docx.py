"""
Word documents (DOCX): the paragraphs of text, tables, headers, footers, notes, comments and text boxes, split into
runs of one format.

Line breaks and tabs end a sentence. Computed fields such as page numbers do not change. A text box stored in two
versions is translated once. Translations omit ruby readings.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from .docx_bilingual import with_copies
from .languages import language_tag
from .office import OfficeMarkup, read_office
from .text_package import TextPackage
from .xml_tokens import XmlToken
from .zip_package import ZipPackage


# Parts with paragraphs.
MAIN_PART = re.compile(r"word/document\d*\.xml")
PARTS = re.compile(rf"{MAIN_PART.pattern}|word/(?:header|footer|footnotes|endnotes|comments)\d*\.xml")
# Fields with translatable results. Other fields, such as PAGE and DATE, are computed.
TEXT_FIELDS = frozenset({"HYPERLINK", "INDEX", "REF", "TOC"})


def _computed_texts(tokens: Sequence[XmlToken], ends: Mapping[int, int]) -> Collection[int]:
    """Returns the numbers of the text elements that are results of computed fields."""
    found: set[int] = set()
    # For every open field, its instruction and whether its result has begun.
    fields: list[tuple[list[str], bool]] = []
    computed = simple_end = 0
    for number, token in enumerate(tokens):
        name = MARKUP.name_of(token) if token.kind == "start" else ""
        kind = token.get("fldCharType", token.name[0]) if name == "w:fldChar" else ""
        if name == "w:fldSimple" and _is_computed(token.get("instr", token.name[0])):
            simple_end = max(simple_end, ends[number])
        elif kind == "begin":
            fields.append(([], False))
        elif kind == "separate" and fields and not fields[-1][1]:
            fields[-1] = (fields[-1][0], True)
            computed += _is_computed("".join(fields[-1][0]))
        elif kind == "end" and fields:
            instruction, has_result = fields.pop()
            computed -= has_result and _is_computed("".join(instruction))
        elif name == "w:instrText" and fields and not fields[-1][1]:
            fields[-1][0].extend(inner.words for inner in tokens[number : ends[number]])
        elif name == "w:t" and (computed or number < simple_end):
            found.add(number)
    return found


def _is_computed(instruction: str) -> bool:
    return TEXT_FIELDS.isdisjoint(instruction.upper().split()[:1])


MARKUP = OfficeMarkup(
    namespaces={
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
        "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
        "http://schemas.openxmlformats.org/officeDocument/2006/math": "m",
        "http://purl.oclc.org/ooxml/officeDocument/math": "m",
        "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
    },
    paragraphs={"w:p", "w:txbxContent"},
    texts={"w:t"},
    runs={"w:r"},
    properties={"w:rPr"},
    links={"w:hyperlink"},
    breaks={"w:br", "w:cr", "w:tab", "w:ptab"},
    protected={"w:noBreakHyphen": "-", "m:oMath": None},
    skipped={"w:del", "w:moveFrom", "w:pPr"},
    readings={"w:rt"},
    preserves_space=True,
    computed_texts=_computed_texts,
)


def read_docx(content: bytes, tgt_lang: str | None = None, bilingual: bool = False) -> TextPackage:
    """Reads a DOCX file. Copies of paragraphs in a bilingual document declare the target language."""
    transform = partial(with_copies, name_of=MARKUP.name_of, language=language_tag(tgt_lang)) if bilingual else None
    return read_office(content, "not a Word document (.docx)", _parts, MARKUP, transform)


def _parts(package: ZipPackage) -> list[str]:
    names = [name for name in package.names if PARTS.fullmatch(name)]
    if not any(map(MAIN_PART.fullmatch, names)):
        raise ValueError("it has no word/document.xml")
    return names
