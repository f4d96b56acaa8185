"""
Word documents (DOCX): the paragraphs of text, tables, headers, footers, notes, comments and text boxes, split into
runs of one format.

Line breaks and tabs end a sentence. Computed fields such as page numbers do not change. A text box stored in two
versions is translated once. Translations omit ruby readings. In a bilingual document, a marked copy for the
translation follows every paragraph.
"""

import re
from collections.abc import Sequence
from itertools import accumulate

from .languages import language_tag
from .office import OPEN_XML, OfficeMarkup, OfficeTree, read_office
from .text_package import TextPackage
from .xml_tokens import XmlToken, tag_name
from .zip_package import ZipPackage


# Parts with paragraphs.
MAIN_PART = re.compile(r"word/document\d*\.xml")
PARTS = re.compile(rf"{MAIN_PART.pattern}|word/(?:header|footer|footnotes|endnotes|comments)\d*\.xml")
# Fields with translatable results. Other fields, such as PAGE and DATE, are computed.
TEXT_FIELDS = frozenset({"HYPERLINK", "INDEX", "REF", "TOC"})
# Elements dropped from copies: targets of references, pictures, list numbers, page breaks.
NOT_COPIED = frozenset({
    "w:bookmarkStart", "w:bookmarkEnd", "w:commentRangeStart", "w:commentRangeEnd", "w:commentReference",
    "w:footnoteReference", "w:endnoteReference", "w:drawing", "w:pict", "w:object", "w:numPr", "w:pBdr",
    "w:pageBreakBefore", "w:lastRenderedPageBreak", "mc:AlternateContent",
})  # fmt: skip
FIELDS = frozenset({"w:fldChar", "w:instrText"})
# Properties that the schema orders before and after all others.
ORDER = (
    "w:pStyle", "w:keepNext", "w:keepLines", "w:framePr", "w:widowControl", "w:numPr", "w:suppressLineNumbers",
    "w:pBdr", "others", "w:lang", "w:eastAsianLayout", "w:specVanish", "w:oMath", "w:rPrChange",
)  # fmt: skip
PLACES = {name: place for place, name in enumerate(ORDER)}
# Properties that a copy gets. `w:` is replaced by the prefix of the document.
ADDED = {
    "w:p": {
        "w:numPr": '<w:numPr><w:numId w:val="0"/></w:numPr>',
        "w:pBdr": '<w:pBdr><w:left w:val="single" w:sz="12" w:space="6" w:color="808080"/></w:pBdr>',
    },
    "w:r": {"w:lang": '<w:lang w:val="{}"/>'},
}
# Attributes that identify a paragraph, which must be unique.
IDENTIFIER = re.compile(r"""\s[^\s=<>"']*\b(?:paraId|textId)\s*=\s*(?:"[^"]*"|'[^']*')""")


def _with_computed_texts(tokens: Sequence[XmlToken]) -> list[XmlToken]:
    """Renames text elements that are results of computed fields to `w:computed`, which is protected."""
    tree, result = OfficeTree(tokens, MARKUP), [*tokens]
    # For every open field, its instruction and whether its result has begun.
    fields: list[tuple[list[str], bool]] = []
    computed = simple_end = 0
    for number, (token, name) in enumerate(zip(tokens, tree.names, strict=True)):
        kind = token.get("fldCharType", token.name[0]) if name == "w:fldChar" else ""
        if name == "w:fldSimple" and _is_computed(token.get("instr", token.name[0])):
            simple_end = max(simple_end, tree.ends[number])
        elif kind == "begin":
            fields.append(([], False))
        elif kind == "separate" and fields and not fields[-1][1]:
            fields[-1] = (fields[-1][0], True)
            computed += _is_computed("".join(fields[-1][0]))
        elif kind == "end" and fields:
            instruction, has_result = fields.pop()
            computed -= has_result and _is_computed("".join(instruction))
        elif name == "w:instrText" and fields and not fields[-1][1]:
            fields[-1][0].append(tree.words(number))
        elif name == "w:t" and (computed or number < simple_end):
            result[number] = token._replace(name=(token.name[0], "computed"))
    return result


def _is_computed(instruction: str) -> bool:
    return TEXT_FIELDS.isdisjoint(instruction.upper().split()[:1])


MARKUP = OfficeMarkup(
    namespaces={
        **OPEN_XML,
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
        "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    },
    paragraphs={"w:p", "w:txbxContent"},
    texts={"w:t"},
    runs={"w:r"},
    properties={"w:rPr"},
    links={"w:hyperlink"},
    breaks={"w:br", "w:cr", "w:tab", "w:ptab"},
    protected={"w:noBreakHyphen": "-", "m:oMath": None, "w:computed": None},
    skipped={"w:del", "w:moveFrom", "w:pPr"},
    readings={"w:rt"},
    preserves_space=True,
)


def read_docx(content: bytes, tgt_lang: str | None = None, bilingual: bool = False) -> TextPackage:
    """Reads a DOCX file. Copies of paragraphs in a bilingual document declare the target language."""

    def transform(tokens: list[XmlToken]) -> list[XmlToken]:
        if bilingual:
            tokens = _with_copies(tokens, language_tag(tgt_lang))
        return _with_computed_texts(tokens)

    return read_office(content, "not a Word document (.docx)", _parts, MARKUP, transform)


def _parts(package: ZipPackage) -> list[str]:
    names = [*filter(PARTS.fullmatch, package.members)]
    if not any(map(MAIN_PART.fullmatch, names)):
        raise ValueError("it has no word/document.xml")
    return names


def _with_copies(tokens: Sequence[XmlToken], language: str | None) -> list[XmlToken]:
    """
    Returns the tokens of a part with a copy after every paragraph that has words. A line marks the copy on its left.
    Only copies are translated: text tokens of originals lose their names.
    """
    copier = _Copier(tokens, language)
    result: list[XmlToken] = []
    copies: dict[int, list[XmlToken]] = {}
    position = fallback_end = 0
    while position < len(tokens):
        token, name = tokens[position], copier.names[position]
        if name == "mc:Fallback":
            fallback_end = max(fallback_end, copier.ends[position])
        elif name == "w:p" and position >= fallback_end:
            copy = copier.paragraph(position)
            if _has_words(copy):
                copies[copier.ends[position]] = copy
        elif name == "w:sectPr" and copies:
            position = copier.ends[position] + 1  # the section ends after the copy
            continue
        result.append(token._replace(name=("", "")) if name == "w:t" else token)
        result += copies.pop(position, [])
        position += 1
    return result


def _has_words(copy: Sequence[XmlToken]) -> bool:
    tree = OfficeTree(copy, MARKUP)
    words = (tree.words(number) for number, name in enumerate(tree.names) if name in ("w:t", "m:t"))
    return any(map(str.isalpha, "".join(words)))


class _Copier(OfficeTree):
    def __init__(self, tokens: Sequence[XmlToken], language: str | None):
        super().__init__(tokens, MARKUP)
        self.language = language
        kinds = (token.get("fldCharType", token.name[0]) for token in tokens)
        # Number of open fields before each token.
        self.open_fields = [0, *accumulate({"begin": 1, "end": -1}.get(kind, 0) for kind in kinds)]

    def paragraph(self, start: int) -> list[XmlToken]:
        """Returns the tokens of a marked copy. A paragraph inside, as of a text box, gets its own copy."""
        stop = self.ends[start]
        # A field may span several paragraphs.
        omitted = NOT_COPIED if self.open_fields[start] == self.open_fields[stop] else NOT_COPIED | FIELDS
        copy: list[XmlToken] = []
        position = start
        while position <= stop:
            token, name = self.tokens[position], self.names[position]
            if name in omitted or (name == "w:p" and position > start):
                position = self.ends[position]
            elif name == "w:p" or (name == "w:r" and self.language):
                properties, position = self._properties(position)
                copy += [token._replace(raw=IDENTIFIER.sub("", token.raw)), *properties]
            elif name == "w:br":
                copy.append(token._replace(raw=f"<{tag_name(token.raw)}/>"))  # a line break instead of a page break
            else:
                copy.append(token)
            position += 1
        return copy

    def _properties(self, owner: int) -> tuple[list[XmlToken], int]:
        """
        Returns the properties of a copied paragraph or run, and the number of the last token of the original ones, or
        of the start tag.
        """
        first = next(self.children(owner), None)
        if first is None:
            return [], owner
        tag, name = self.tokens[owner], self.names[owner]
        prefix = tag_name(tag.raw)[:-1]
        added = {key: raw.replace("w:", prefix).format(self.language) for key, raw in ADDED[name].items()}
        properties = [(key, [XmlToken("other", raw)]) for key, raw in added.items()]
        start, last = f"<{prefix}{tag.name[1]}Pr>", owner
        if self.names[first] == f"{name}Pr":
            # The start tag may declare namespaces.
            start, last = self.tokens[first].raw.removesuffix(">").removesuffix("/") + ">", self.ends[first]
            for child in self.children(first):
                if self.names[child] not in {*added, *NOT_COPIED}:
                    properties.append((self.names[child], [*self.tokens[child : self.ends[child] + 1]]))
        properties.sort(key=lambda item: PLACES.get(item[0], PLACES["others"]))
        end = f"</{tag_name(start)}>"
        inside = (token for _, tokens in properties for token in tokens)
        return [XmlToken("other", start), *inside, XmlToken("other", end)], last
