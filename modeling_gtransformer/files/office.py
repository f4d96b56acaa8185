"""Reads paragraphs from the XML parts of DOCX, PPTX, ODT, ODP and EPUB packages, by element names."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from .runs import Style
from .template import TextFile
from .text_package import TextPackage, prefixed
from .xml_tokens import XmlToken, XmlTree, tag_name, with_attribute, words_of, xml_escape, xml_tokens
from .zip_package import ZipPackage


# Properties of a run that do not affect its appearance.
NO_FORMAT = frozenset({"altLang", "bmk", "dirty", "err", "lang", "noProof", "smtClean", "smtId"})
# Namespaces that DOCX and PPTX share. Transitional and Strict Open XML have the same elements.
OPEN_XML = {
    "http://schemas.openxmlformats.org/officeDocument/2006/math": "m",
    "http://purl.oclc.org/ooxml/officeDocument/math": "m",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
}
Names = Collection[str]
Transform = Callable[[list[XmlToken]], list[XmlToken]]


@dataclass(frozen=True)
class OfficeMarkup:
    """
    Names of elements such as `w:p`, with the prefixes of `namespaces`.

    Attributes:
        namespaces: prefixes by namespaces; Transitional and Strict Open XML share one prefix.
        paragraphs: elements that contain a paragraph; they may be nested.
        texts: elements that contain only text.
        mixed: elements with text between their children.
        runs, properties: elements around text of one format, and their child that describes it.
        links: elements around runs that also distinguish a format.
        spans: elements in mixed text that begin and end a format.
        breaks: elements that end a sentence.
        protected: preserved elements, with the text for the model; `None` for their own text.
        skipped: elements without translatable text.
        readings: elements with ruby readings.
        preserves_space: whether white space needs the attribute `xml:space`.
    """

    namespaces: Mapping[str, str]
    paragraphs: Names
    texts: Names = ()
    mixed: Names = ()
    runs: Names = ()
    properties: Names = ()
    links: Names = ()
    spans: Names = ()
    breaks: Names = ()
    protected: Mapping[str, str | None] = field(default_factory=dict)
    skipped: Names = ()
    readings: Names = ()
    preserves_space: bool = False

    def name_of(self, token: XmlToken) -> str:
        """Returns a name such as `w:p`; an empty string for tokens that are not tags of the format."""
        prefix = self.namespaces.get(token.name[0], "")
        return f"{prefix}:{token.name[1]}" if prefix else ""


class OfficeTree(XmlTree):
    """Tokens as a tree. `names` has a name such as `w:p` for each start tag of the format, otherwise empty strings."""

    def __init__(self, tokens: Sequence[XmlToken], markup: OfficeMarkup):
        super().__init__(tokens)
        self.names = [markup.name_of(token) if token.kind == "start" else "" for token in tokens]


def read_office(
    content: bytes,
    problem: str,
    parts_of: Callable[[ZipPackage], Sequence[str]],
    markup: OfficeMarkup,
    transform: Transform | None = None,
) -> TextPackage:
    """
    Reads an office document as one document.

    Args:
        problem: prefix of error messages, such as "not a Word document".
        parts_of: returns the names of the parts with paragraphs.
        transform: changes the tokens of a part before reading, for example to add paragraphs.

    Raises:
        ValueError: the file is broken, encrypted, or too large when unpacked.
    """
    with prefixed(problem):
        package = ZipPackage(content)
        read = partial(read_part, markup=markup, transform=transform)
        return TextPackage(package, dict.fromkeys(parts_of(package), read), is_one_document=True)


def read_part(text: str, markup: OfficeMarkup, transform: Transform | None = None) -> TextFile:
    tokens = xml_tokens(text)
    return _PartReader(transform(tokens) if transform else tokens, markup, TextFile(xml_escape(text))).read()


class _PartReader(OfficeTree):
    def __init__(self, tokens: list[XmlToken], markup: OfficeMarkup, file: TextFile):
        super().__init__(tokens, markup)
        self.markup, self.file = markup, file
        self.originals = self._alternatives()
        self.parts: dict[int, int] = {}  # part numbers by text elements
        self.links: list[int] = []  # open ones; the innermost identifies a format
        self.inside = [""]
        self.readings_end = 0

    def read(self) -> TextFile:
        position = 0
        while position < len(self.tokens):
            token = self.tokens[position]
            if token.kind == "start":
                position = self._start(position)
                continue
            if token.kind == "end":
                self._end(token)
            elif token.kind == "other" or self.inside[-1] not in self.markup.mixed:
                is_reading = position < self.readings_end and token.kind != "other"
                (self.file.add_reading if is_reading else self.file.add)(token.raw)
            else:
                self.file.add_text(token.raw, words_of)
            position += 1
        return self.file

    def _start(self, position: int) -> int:
        """Reads a start tag or its whole element. Returns the number of the next token."""
        file, markup, stop = self.file, self.markup, self.ends[position] + 1
        name, raw = self.names[position], self.tokens[position].raw
        if name in markup.protected:
            words = markup.protected[name]
            file.add_protected(self.raw(position, stop), self.words(position) if words is None else words, False)
            return stop
        if name in markup.skipped:
            file.add(self.raw(position, stop))
            return stop
        if name in markup.texts and position >= self.readings_end:
            self._add_text(position, stop)
            return stop
        if name in markup.readings:
            self.readings_end = max(self.readings_end, stop)
        elif name in markup.paragraphs:
            file.open_paragraph()
        elif name in markup.breaks:
            file.end_block()
        elif name in markup.links:
            self.links.append(position)
        elif name in markup.runs:
            file.style = (*self.links[-1:],)
        elif name in markup.properties:
            file.style = (*self.links[-1:], *_style(self.tokens[position:stop]))
        elif name in markup.spans:
            file.open_style(position)
            self.links.append(position)
        file.add(raw)
        self.inside.append(name)
        return position + 1

    def _end(self, token: XmlToken) -> None:
        name = self.inside.pop()
        if name in self.markup.paragraphs:
            self.file.close_paragraph()
        self.file.add(token.raw)
        if name in self.markup.spans:
            self.file.close_style(self.links.pop())
        elif name in self.markup.links:
            self.links.pop()

    def _add_text(self, position: int, stop: int) -> None:
        raw, words = self.raw(position, stop), self.words(position)
        original = self.parts.get(self.originals.get(position, -1))
        if original is not None:
            self.file.add_copy(original, raw)
            return
        tag = self.tokens[position].raw
        opening = with_attribute(tag, "xml:space", "preserve") if self.markup.preserves_space else tag
        opening, closing = f"{opening.removesuffix('>').removesuffix('/')}>", f"</{tag_name(tag)}>"
        escape = self.file.escape
        self.parts[position] = self.file.add_element(raw, words, lambda text: f"{opening}{escape(text)}{closing}")

    def _alternatives(self) -> dict[int, int]:
        """Maps texts of alternatives for old programs to equal texts of the alternative for new ones."""
        originals: dict[int, int] = {}
        for start in (number for number, name in enumerate(self.names) if name == "mc:AlternateContent"):
            first: list[int] = []
            for child in self.children(start):
                texts = [other for other in range(child, self.ends[child]) if self.names[other] in self.markup.texts]
                if first and [*map(self.words, texts)] == [*map(self.words, first)]:
                    originals |= zip(texts, first, strict=True)
                first = first or texts
        return originals


def _style(properties: Sequence[XmlToken]) -> Style:
    """Returns an identifier of the format of a run."""
    elements = [
        (token.name[1], *sorted(item for item in token.attributes.items() if item[0][1] not in NO_FORMAT))
        for token in properties
        if token.kind == "start" and token.name[1] not in NO_FORMAT
    ]
    return (*(element for number, element in enumerate(elements) if number or len(element) > 1),)
