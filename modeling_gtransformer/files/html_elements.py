"""Finds the ends of HTML elements: their end tags or, where these are omitted, their implied ends."""

from collections.abc import Sequence

from .html_tokens import Token


# fmt: off
# Elements without content.
VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
})
# Elements that end an open paragraph. Their end tags end all elements inside.
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "center", "details", "dialog", "dir", "div", "dl", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "listing",
    "main", "menu", "nav", "ol", "p", "pre", "search", "section", "summary", "table", "ul", "xmp",
})
ROWS = frozenset({"tbody", "tfoot", "thead", "tr"})
CELLS = ROWS | {"td", "th"}
# Elements with an optional end tag, and the elements that end them.
ENDED_BY = {
    "p": BLOCKS | {"dd", "dt", "li"}, "li": {"li"}, "dt": {"dd", "dt"}, "dd": {"dd", "dt"},
    "option": {"optgroup", "option"}, "optgroup": {"optgroup"},
    **dict.fromkeys(("rb", "rp", "rt"), frozenset({"rb", "rp", "rt", "rtc"})), "rtc": {"rb", "rtc"},
    "head": {"body"}, "caption": CELLS | {"col", "colgroup"}, "colgroup": CELLS, "td": CELLS, "th": CELLS, "tr": ROWS,
    "thead": ROWS - {"tr"}, "tbody": ROWS - {"tr"}, "tfoot": ROWS - {"tr"},
}
# fmt: on
# The inverse: the elements that an element ends.
ENDS = {tag: {ended for ended, by in ENDED_BY.items() if tag in by} for tag in frozenset().union(*ENDED_BY.values())}
# Tags inside one of these do not end elements outside it. Parts of tables and lists are limited to their table or
# list.
SCOPES = frozenset({"button", "caption", "object", "table", "td", "template", "th"})
OWN_SCOPES = dict.fromkeys(CELLS | {"caption", "colgroup"}, frozenset({"table", "template"}))
OWN_SCOPES |= {"li": SCOPES | {"menu", "ol", "ul"}, "dt": SCOPES | {"dl"}, "dd": SCOPES | {"dl"}}
OWN_SCOPES |= {"table": frozenset({"template"}), "template": frozenset()}
# End tags of these also end all elements inside. Other end tags, such as `</b>`, end one element.
STRUCTURE = BLOCKS | SCOPES | ENDED_BY.keys() | {"body", "datalist", "html", "ruby", "select"}


def ends_of_elements(tokens: Sequence[Token]) -> tuple[dict[int, int], dict[int, int]]:
    """
    Returns two maps: the number of a start tag to the number of the token after its element, and the number of an end
    tag to the number of its start tag.
    """
    elements = _OpenElements(tokens)
    for position, token in enumerate(tokens):
        if token.kind == "start":
            elements.start(position)
        elif token.kind == "end":
            elements.end(position)
    elements.close_from(0, len(tokens))
    return elements.ends, elements.starts


class _OpenElements:
    """The stack of open elements, outermost first, and the ends of closed ones."""

    def __init__(self, tokens: Sequence[Token]):
        self.tokens = tokens
        self.ends: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        self.open: list[int] = []  # numbers of start tags
        self.by_tag: dict[str, list[int]] = {}  # places in that list
        self.is_xml = any(map(_declares_xml, tokens[:20]))

    def start(self, position: int) -> None:
        tag = self.tokens[position].tag
        ended = [place for place in map(self._nearest, ENDS.get(tag, ())) if place is not None]
        if ended:
            self.close_from(min(ended), position)
        if tag in VOID or (self.is_xml and self.tokens[position].is_empty):
            self.ends[position] = position + 1
        else:
            self.by_tag.setdefault(tag, []).append(len(self.open))
            self.open.append(position)

    def end(self, position: int) -> None:
        tag = self.tokens[position].tag
        place = self._nearest(tag)
        if place is None:
            return
        self.ends[self.open[place]] = position + 1
        self.starts[position] = self.open[place]
        self.by_tag[tag].pop()
        if tag in STRUCTURE:
            self.close_from(place, position)

    def close_from(self, place: int, position: int) -> None:
        """Ends all elements from a place of the stack on, before a token."""
        while len(self.open) > place:
            start = self.open.pop()
            if start not in self.ends:  # its end tag may have come before those of inner elements
                self.ends[start] = position
                self.by_tag[self.tokens[start].tag].pop()

    def _nearest(self, tag: str) -> int | None:
        """Returns the place of the innermost open element with this tag; `None` if a scope hides it."""
        places = self.by_tag.get(tag)
        if not places:
            return None
        scopes = (self.by_tag.get(scope) for scope in OWN_SCOPES.get(tag, SCOPES) - {tag})
        return None if any(scope and scope[-1] > places[-1] for scope in scopes) else places[-1]


def _declares_xml(token: Token) -> bool:
    return token.raw.startswith("<?xml") or (token.tag == "html" and "xmlns" in token.values)
