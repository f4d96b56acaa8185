"""Where the elements of a page end: at their end tags or, where these are left out, where browsers end them."""

from collections.abc import Mapping, Sequence

from .html_tokens import Token


# fmt: off
# Elements without content.
VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
})
# What ends a paragraph, of the elements that begin.
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "details", "dialog", "div", "dl", "fieldset", "figcaption",
    "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "main", "menu",
    "nav", "ol", "p", "pre", "search", "section", "table", "ul",
})
# fmt: on
# Elements whose end tag may be left out, with those at whose beginning they end.
ENDED_BY = {"p": BLOCKS, "li": {"li"}, "dt": {"dt", "dd"}, "dd": {"dt", "dd"}, "option": {"option", "optgroup"}}
ENDED_BY |= {"td": {"td", "th", "tr", "tbody", "tfoot"}, "th": {"td", "th", "tr", "tbody", "tfoot"}}
ENDED_BY |= {"tr": {"tr", "tbody", "tfoot"}, "thead": {"tbody", "tfoot"}, "tbody": {"tbody", "tfoot"}}


def ends_of_elements(tokens: Sequence[Token]) -> dict[int, int]:
    """For the numbers of start tags that have an end tag, the number of the token behind it."""
    ends = {}
    open_tags: dict[str, list[int]] = {}
    for position, token in enumerate(tokens):
        if token.kind == "start":
            open_tags.setdefault(token.tag, []).append(position)
        elif token.kind == "end" and open_tags.get(token.tag):
            ends[open_tags[token.tag].pop()] = position + 1
    return ends


def end_of_element(tokens: Sequence[Token], start: int, ends: Mapping[int, int]) -> int:
    """The number of the token behind an element, by the number of its start tag and those of [`ends_of_elements`].
    Without an end tag it ends with the element around it, or where another one begins that cannot be inside."""
    tag = tokens[start].tag
    if tag in VOID or tokens[start].raw.endswith("/>"):
        return start + 1
    if start in ends:
        return ends[start]
    position = start + 1
    while position < len(tokens):
        token = tokens[position]
        if token.kind == "end" or (token.kind == "start" and token.tag in ENDED_BY.get(tag, ())):
            break
        position = ends.get(position, position + 1)
    return position
