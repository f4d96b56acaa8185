"""Elements of a Word document by their names, and the text of its paragraphs."""

from collections.abc import Iterator
from typing import Any


# Names in the two forms of the format, Transitional and Strict, by the prefixes that stand for them below.
NAMESPACES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/officeDocument/2006/math": "m",
    "http://purl.oclc.org/ooxml/officeDocument/math": "m",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
}
# Elements that end a sentence, and elements that have paragraphs of their own.
BREAKS = frozenset({"w:br", "w:cr", "w:tab", "w:ptab"})
NESTED = frozenset({"w:p", "w:txbxContent"})
# Elements that hold moved or deleted text, and readings above words.
NOT_READ = frozenset({"w:moveFrom", "w:del", "w:rt"})
READ = frozenset({"w:t", "w:noBreakHyphen", "m:oMath"})


def tags(name: str) -> list[str]:
    """Lists the tags of elements with a name such as `w:p`."""
    prefix, _, local = name.partition(":")
    return [f"{{{uri}}}{local}" for uri, own in NAMESPACES.items() if own == prefix]


def name_of(element: Any) -> str:
    """Returns a name such as `w:p`; an empty string for what is not an element of the format."""
    if not isinstance(element.tag, str):  # a comment
        return ""
    uri, _, local = element.tag[1:].partition("}")
    return f"{NAMESPACES[uri]}:{local}" if uri in NAMESPACES else ""


def attribute_of(element: Any, local: str) -> str:
    """Returns the value of an attribute in the namespace of its element."""
    return element.get(f"{element.tag.partition('}')[0]}}}{local}", "")


def blocks_of(paragraph: Any) -> Iterator[list[Any]]:
    """Yields lists of the elements that hold the text of a paragraph, without the paragraphs inside it."""
    texts: list[Any] = []
    for element, name in _inside(paragraph):
        if name in READ:
            texts.append(element)
        elif name in BREAKS and texts:
            yield texts
            texts = []
    if texts:
        yield texts


def _inside(element: Any) -> Iterator[tuple[Any, str]]:
    for child in element:
        name = name_of(child)
        if name not in NESTED | NOT_READ:
            yield child, name
            if name != "m:oMath":
                yield from _inside(child)
