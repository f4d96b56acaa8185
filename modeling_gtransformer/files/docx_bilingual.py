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
# Paragraph properties that the schema orders before the list number, and before the border.
BEFORE_NUMBER = frozenset({"w:pStyle", "w:keepNext", "w:keepLines", "w:framePr", "w:widowControl"})
BEFORE_BORDER = BEFORE_NUMBER | {"w:suppressLineNumbers"}
# Run properties that the schema orders after the language.
BEHIND_LANGUAGE = frozenset({"w:eastAsianLayout", "w:specVanish", "w:oMath", "w:rPrChange"})
# `w:` is replaced by the prefix of the document.
NUMBER = '<w:numPr><w:numId w:val="0"/></w:numPr>'
BORDER = '<w:pBdr><w:left w:val="single" w:sz="12" w:space="6" w:color="808080"/></w:pBdr>'
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
        tag = self.tokens[start]
        copy = [tag._replace(raw=IDENTIFIER.sub("", tag.raw))]
        position = start + 1
        if self.names[position] != "w:pPr":
            copy += self._properties(start, "w:pPr")
        while position <= stop:
            token, name = self.tokens[position], self.names[position]
            is_start = token.kind == "start"
            if is_start and name in omitted:
                position = self.ends[position]
            elif is_start and name in ("w:pPr", "w:rPr"):
                copy += self._properties(start, name, position)
                position = self.ends[position]
            elif is_start and name == "w:br":
                copy.append(token._replace(raw=f"<{tag_name(token.raw)}/>"))  # a line break instead of a page break
            else:
                copy.append(token)
            if is_start and name == "w:r" and self.language and self.names[position + 1] != "w:rPr":
                copy += self._properties(start, "w:rPr")
            position += 1
        return copy

    def _properties(self, paragraph: int, name: str, position: int | None = None) -> list[XmlToken]:
        """Returns the properties of a marked paragraph or of a run in the target language."""
        children = [] if position is None else self._copied(position)
        prefix = tag_name(self.tokens[paragraph].raw).removesuffix("p")
        if name == "w:pPr":
            _insert(children, "w:numPr", NUMBER.replace("w:", prefix), BEFORE_NUMBER.__contains__)
            _insert(children, "w:pBdr", BORDER.replace("w:", prefix), (BEFORE_BORDER | {"w:numPr"}).__contains__)
        elif self.language:
            children = [child for child in children if child[0] != "w:lang"]
            _insert(
                children,
                "w:lang",
                f'<{prefix}lang {prefix}val="{self.language}"/>',
                lambda other: other not in BEHIND_LANGUAGE,
            )
        if position is None:
            tag = f"{prefix}{name.removeprefix('w:')}"
            start, end = XmlToken("other", f"<{tag}>"), XmlToken("other", f"</{tag}>")
        else:
            start, end = self.tokens[position], self.tokens[self.ends[position]]
            start = start._replace(raw=start.raw.removesuffix(">").removesuffix("/") + ">")
            end = end._replace(raw=f"</{tag_name(start.raw)}>")
        return [start, *(token for _, tokens in children for token in tokens), end]

    def _copied(self, position: int) -> list[tuple[str, Sequence[XmlToken]]]:
        children = (place for place in self.children(position) if self.names[place] not in NOT_COPIED)
        return [(self.names[place], self.tokens[place : self.ends[place] + 1]) for place in children]


def _insert(
    children: list[tuple[str, Sequence[XmlToken]]], name: str, raw: str, is_before: Callable[[str], bool]
) -> None:
    """Inserts a property after those that the schema orders before it."""
    place = sum(is_before(other) for other, _ in children)
    children.insert(place, (name, [XmlToken("other", raw)]))
