"""Word documents in two languages, in which every paragraph is followed by a marked copy for its translation."""

from copy import deepcopy
from typing import Any

from .word_paragraphs import attribute_of, blocks_of, name_of, tags


# What a copy must not have: places that others refer to, pictures, list numbers, page breaks.
NOT_COPIED = (
    "w:bookmarkStart", "w:bookmarkEnd", "w:commentRangeStart", "w:commentRangeEnd", "w:commentReference",
    "w:footnoteReference", "w:endnoteReference", "w:drawing", "w:pict", "w:object", "w:numPr",
    "w:pageBreakBefore", "w:lastRenderedPageBreak", "mc:AlternateContent",
)  # fmt: skip
FIELDS = ("w:fldChar", "w:instrText")
# Properties of a paragraph that come before its number in a list, and before its border.
BEFORE_NUMBER = frozenset({"w:pStyle", "w:keepNext", "w:keepLines", "w:framePr", "w:widowControl"})
BEFORE_BORDER = BEFORE_NUMBER | {"w:numPr", "w:suppressLineNumbers"}
# Properties of a run that come after its language.
BEHIND_LANGUAGE = frozenset({"w:eastAsianLayout", "w:specVanish", "w:oMath", "w:rPrChange"})
BORDER = {"val": "single", "sz": "12", "space": "6", "color": "808080"}


def insert_copies(root: Any, language: str | None) -> list[Any]:
    """Inserts a copy with a line on its left side after every paragraph that has words, and returns the copies."""
    old = {paragraph for fallback in root.iter(*tags("mc:Fallback")) for paragraph in fallback.iter(*tags("w:p"))}
    copies = []
    for paragraph in [*root.iter(*tags("w:p"))]:
        words = "".join(element.text or "" for texts in blocks_of(paragraph) for element in texts)
        if paragraph not in old and any(letter.isalpha() for letter in words):
            copies.append(_copy(paragraph, language))
            for section in [*paragraph.iter(*tags("w:sectPr"))]:
                section.getparent().remove(section)  # the section ends after the copy
            paragraph.addnext(copies[-1])
    return copies


def _copy(paragraph: Any, language: str | None) -> Any:
    copy = deepcopy(paragraph)
    copy.tail = None
    for name in [name for name in copy.attrib if name.endswith(("}paraId", "}textId"))]:
        del copy.attrib[name]
    unwanted = [*copy.iter(*(tag for name in NOT_COPIED for tag in tags(name)))]
    kinds = [attribute_of(mark, "fldCharType") for mark in copy.iter(*tags("w:fldChar"))]
    if kinds.count("begin") != kinds.count("end"):
        # Part of a field that extends over other paragraphs.
        unwanted += copy.iter(*(tag for name in FIELDS for tag in tags(name)))
    for element in unwanted:
        element.getparent().remove(element)
    for line_break in copy.iter(*tags("w:br")):
        line_break.attrib.clear()  # so that no page ends here
    _mark(copy)
    for run in copy.iter(*tags("w:r")) if language else ():
        _set_language(run, str(language))
    return copy


def _mark(paragraph: Any) -> None:
    """Draws a line on the left side of a paragraph, and removes its number in a list."""
    space, properties = _properties(paragraph, "pPr")
    for border in [child for child in properties if name_of(child) == "w:pBdr"]:
        properties.remove(border)
    number = properties.makeelement(f"{space}numPr")
    number.append(number.makeelement(f"{space}numId", {f"{space}val": "0"}))
    properties.insert(sum(name_of(child) in BEFORE_NUMBER for child in properties), number)
    borders = properties.makeelement(f"{space}pBdr")
    borders.append(borders.makeelement(f"{space}left", {f"{space}{name}": value for name, value in BORDER.items()}))
    properties.insert(sum(name_of(child) in BEFORE_BORDER for child in properties), borders)


def _set_language(run: Any, language: str) -> None:
    space, properties = _properties(run, "rPr")
    for old in [child for child in properties if name_of(child) == "w:lang"]:
        properties.remove(old)
    behind = sum(name_of(child) in BEHIND_LANGUAGE for child in properties)
    properties.insert(len(properties) - behind, properties.makeelement(f"{space}lang", {f"{space}val": language}))


def _properties(element: Any, local: str) -> tuple[str, Any]:
    """Returns the namespace of a paragraph or run in braces, and its properties, which are added if it has none."""
    space = element.tag.partition("}")[0] + "}"
    properties = next((child for child in element if name_of(child) == f"w:{local}"), None)
    if properties is None:
        properties = element.makeelement(f"{space}{local}")
        element.insert(0, properties)
    return space, properties
