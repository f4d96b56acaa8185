"""Bilingual Word documents: a marked copy for the translation follows every paragraph."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from .xml_tokens import XmlToken, XmlTree, tag_name


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


def with_copies(
    tokens: Sequence[XmlToken], name_of: Callable[[XmlToken], str], language: str | None
) -> list[XmlToken]:
    """
    Returns the tokens of a part with a copy after every paragraph that has words. A line marks the copy on its left.
    Only copies are translated: text tokens of originals lose their names.
    """
    copier = _Copier(tokens, name_of, language)
    result: list[XmlToken] = []
    copies: dict[int, list[XmlToken]] = {}
    position = fallback_end = 0
    while position < len(tokens):
        token, name = tokens[position], copier.names[position]
        if token.kind == "start" and name == "mc:Fallback":
            fallback_end = max(fallback_end, copier.ends[position])
        elif token.kind == "start" and name == "w:p" and position >= fallback_end:
            copy = copier.paragraph(position)
            if _has_words(copy, name_of):
                copies[copier.ends[position]] = copy
        elif token.kind == "start" and name == "w:sectPr" and copies:
            position = copier.ends[position] + 1  # the section ends after the copy
            continue
        result.append(token._replace(name=("", "")) if name == "w:t" else token)
        result += copies.pop(position, [])
        position += 1
    return result


def _has_words(copy: Sequence[XmlToken], name_of: Callable[[XmlToken], str]) -> bool:
    words = "".join(token.words for before, token in pairwise(copy) if name_of(before) in ("w:t", "m:t"))
    return any(map(str.isalpha, words))


class _Copier(XmlTree):
    def __init__(self, tokens: Sequence[XmlToken], name_of: Callable[[XmlToken], str], language: str | None):
        super().__init__(tokens)
        self.language = language
        self.names = [name_of(token) for token in tokens]

    def paragraph(self, start: int) -> list[XmlToken]:
        """Returns the tokens of a marked copy."""
        stop = self.ends[start]
        inside = range(start, stop)
        kinds = [self.tokens[number].get("fldCharType", self.tokens[start].name[0]) for number in inside]
        # A field may span several paragraphs.
        omitted = NOT_COPIED if kinds.count("begin") == kinds.count("end") else NOT_COPIED | FIELDS
        copy: list[XmlToken] = []
        position = start
        while position <= stop:
            token, name = self.tokens[position], self.names[position]
            if token.kind == "start" and name in omitted:
                position = self.ends[position]
            elif token.kind == "start" and (name == "w:p" or (name == "w:r" and self.language)):
                properties, position = self._properties(position)
                copy += [token._replace(raw=IDENTIFIER.sub("", token.raw)), *properties]
            elif token.kind == "start" and name == "w:br":
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
