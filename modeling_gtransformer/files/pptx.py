"""
Presentations (PPTX): the slides in order, each followed by its notes.

They are one document, because the few sentences of a slide need the other slides as context. A line break ends a
sentence. Slide numbers, dates, formulas, charts, SmartArt, comments and masters do not change.
"""

from functools import partial

from .office import OPEN_XML, OfficeMarkup, read_office
from .text_package import member_name, start_tags
from .zip_package import ZipPackage


MAIN_PART = "ppt/presentation.xml"
RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT_RELATIONSHIPS = "http://purl.oclc.org/ooxml/officeDocument/relationships"
MARKUP = OfficeMarkup(
    namespaces={
        **OPEN_XML,
        "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
        "http://purl.oclc.org/ooxml/drawingml/main": "a",
    },
    paragraphs={"a:p"},
    texts={"a:t"},
    runs={"a:r"},
    properties={"a:rPr"},
    breaks={"a:br"},
    protected={"a:fld": None, "m:oMath": None},
)


def _slides(package: ZipPackage) -> list[str]:
    """Returns the names of the slides in order, each followed by its notes."""
    main, targets = start_tags(package, MAIN_PART), _relations(package, MAIN_PART)
    ids = [
        token.get("id", RELATIONSHIPS) or token.get("id", STRICT_RELATIONSHIPS)
        for token in main
        if token.name[1] == "sldId"
    ]
    if lacking := [own for own in ids if own not in targets]:
        raise ValueError(f"{MAIN_PART} refers to a missing slide: {lacking[0]!r}")
    names: list[str] = []
    for slide in dict.fromkeys(targets[own][1] for own in ids):
        relations = _relations(package, slide).values()
        names += [slide, *(name for kind, name in relations if kind.endswith("/notesSlide"))]
    return [*dict.fromkeys(names)]


def _relations(package: ZipPackage, part: str) -> dict[str, tuple[str, str]]:
    """Returns the types and names of the references of a part by their identifiers."""
    name = "/_rels/".join(part.rpartition("/")[::2]) + ".rels"
    return {
        token.get("Id"): (token.get("Type"), member_name(token.get("Target"), part))
        for token in (start_tags(package, name) if name in package.members else ())
        if token.name[1] == "Relationship" and token.get("TargetMode") != "External"
    }


read_pptx = partial(read_office, problem="not a readable presentation (.pptx)", parts_of=_slides, markup=MARKUP)
