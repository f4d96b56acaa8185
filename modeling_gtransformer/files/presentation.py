"""Presentations (PPTX): the text of slides and of their notes, tables included; everything else of the file stays."""

from .borders import Style
from .template import TextFile
from .text_package import TextPackage, in_member, member_name, member_tokens, read_texts
from .xml_tokens import XmlToken, ends_of, words_of, xml_escape, xml_tokens
from .zip_package import ZipPackage


MAIN_PART = "ppt/presentation.xml"
# Namespaces in the two forms of the format, Transitional and Strict.
DRAWING = frozenset({
    "http://schemas.openxmlformats.org/drawingml/2006/main", "http://purl.oclc.org/ooxml/drawingml/main",
})  # fmt: skip
RELATIONSHIPS = (
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "http://purl.oclc.org/ooxml/officeDocument/relationships",
)
# Properties of a run that do not affect how it looks.
NO_FORMAT = frozenset({"altLang", "bmk", "dirty", "err", "lang", "noProof", "smtClean", "smtId"})


def read_presentation(content: bytes) -> TextPackage:
    """
    Reads a PPTX file. Slides are read in order, each followed by its notes, and all are one document, as a slide has
    few sentences, for which the other slides are context. A line break ends a sentence. Slide numbers, dates and
    formulas stay, as do charts, SmartArt, comments and masters.

    Raises:
        ValueError: the file is broken, encrypted, or larger when unpacked than any presentation.
    """
    try:
        package = ZipPackage(content)
        names = _slides(package)
        texts = read_texts(package, names)
        files = {name: in_member(name, _read_slide, texts[name]) for name in names}
    except ValueError as error:
        raise ValueError(f"not a readable presentation (.pptx): {error}") from error
    return TextPackage(package, texts, files, is_one_document=True)


def _slides(package: ZipPackage) -> list[str]:
    """The names of the slides in order, each followed by its notes."""
    main = member_tokens(package, MAIN_PART)
    [targets] = _relations(package, [MAIN_PART])
    references = [
        next((value for space in RELATIONSHIPS if (value := token.get("id", space))), "")
        for token in main
        if token.kind == "start" and token.name[1] == "sldId"
    ]
    if lacking := [reference for reference in references if reference not in targets]:
        raise ValueError(f"{MAIN_PART} names a slide that does not exist: {lacking[0]!r}")
    slides = [*dict.fromkeys(targets[reference][1] for reference in references)]
    names = []
    for slide, relations in zip(slides, _relations(package, slides), strict=True):
        names += [slide, *(name for kind, name in relations.values() if kind.endswith("/notesSlide"))]
    return [*dict.fromkeys(names)]


def _relations(package: ZipPackage, parts: list[str]) -> list[dict[str, tuple[str, str]]]:
    """Returns, for every part, the types and names of the parts that it refers to, by their identifiers."""
    names = ["/_rels/".join(part.rpartition("/")[::2]) + ".rels" for part in parts]
    texts = read_texts(package, [name for name in names if name in package])
    result = []
    for part, name in zip(parts, names, strict=True):
        tokens = in_member(name, xml_tokens, texts[name]) if name in texts else []
        result.append(
            {
                token.get("Id"): (token.get("Type"), member_name(token.get("Target"), part))
                for token in tokens
                if token.kind == "start" and token.name[1] == "Relationship" and token.get("TargetMode") != "External"
            }
        )
    return result


def _read_slide(text: str) -> TextFile:
    file = TextFile(xml_escape(text))
    tokens = xml_tokens(text)
    ends = ends_of(tokens)
    position = field_end = text_end = 0
    while position < len(tokens):
        token = tokens[position]
        name = token.name[1] if token.name[0] in DRAWING else ""
        if name == "r" and token.kind == "start":
            file.style = ()
        elif name == "rPr" and token.kind == "start":
            file.style = _style(tokens[position : ends[position]])
        elif name == "fld" and token.kind == "start":
            field_end = ends[position]
        elif name == "t" and token.kind == "start":
            text_end = ends[position]
        if token.kind == "start" and token.name[1] == "oMath":
            stop = ends[position] + 1
            raw, words = (
                "".join(getattr(inner, kind) for inner in tokens[position:stop]) for kind in ("raw", "words")
            )
            file.keep(raw, words)
            position = stop
            continue
        if token.kind in ("text", "cdata") and position < text_end:
            if position < field_end:
                file.keep(token.raw, token.words)
            else:
                file.add_line(token.raw, "", words_of)
        else:
            if name in ("p", "br"):
                file.end_block()
            file.add(token.raw)
        position += 1
    return file


def _style(properties: list[XmlToken]) -> Style:
    """Returns the format and the link of a run, which distinguish it from others."""
    first, *inner = properties
    attributes = sorted(item for item in first.attributes.items() if item[0][1] not in NO_FORMAT)
    return (*attributes, *(token.raw for token in inner))
