"""
OpenDocument texts and presentations (ODT, ODP): the paragraphs of text, tables, notes, comments, text boxes, slides,
headers and footers.

Line breaks and tabs end a sentence. Page numbers, dates and other fields, formulas, charts, deleted text and slide
masters do not change. Translations omit ruby readings.
"""

from functools import partial

from .office import OfficeMarkup, read_office
from .text_package import read_text
from .zip_package import ZipPackage


NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
# Fields with computed text.
COMPUTED = (
    "author-initials", "author-name", "chapter", "conditional-text", "creation-date", "creation-time", "date",
    "editing-duration", "expression", "file-name", "initial-creator", "modification-date", "modification-time",
    "page-count", "page-number", "page-variable-get", "print-date", "print-time", "sequence",
    "sequence-ref", "sheet-name", "template-name", "time", "variable-get", "variable-set", "word-count",
)  # fmt: skip
MARKUP = OfficeMarkup(
    namespaces={NAMESPACE.format(name): name for name in ("text", "office")},
    paragraphs={"text:p", "text:h"},
    mixed={"text:p", "text:h", "text:span", "text:a", "text:meta", "text:ruby-base", "text:bookmark-ref"},
    spans={"text:span", "text:a"},
    breaks={"text:line-break", "text:tab"},
    protected={"text:s": " "} | {f"text:{name}": None for name in COMPUTED},
    skipped={"text:tracked-changes", "office:scripts", "office:styles", "text:note-citation"},
    readings={"text:ruby-text"},
)


def _parts(package: ZipPackage) -> list[str]:
    """Returns the parts with paragraphs; the styles of a text contain its headers and footers."""
    kind = read_text(package, "mimetype").strip()
    is_text = kind.startswith("application/vnd.oasis.opendocument.text")
    return ["content.xml", *(["styles.xml"] if is_text and "styles.xml" in package.members else [])]


read_odf = partial(
    read_office, problem="not a readable OpenDocument file (.odt, .odp)", parts_of=_parts, markup=MARKUP
)
