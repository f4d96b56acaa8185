"""Markdown: paragraphs, headings, items, cells and footnotes, with emphasis and links as boundaries between runs."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from ..plain_text import ADDRESS, TEMPLATE_SYNTAX
from .character_references import unescape
from .markdown_template import MarkdownTemplate


# Nodes of tree-sitter-markdown: blocks of text, parts of a sentence that are not translated, and what only marks it.
BLOCKS = frozenset({"inline", "pipe_table_cell"})
PROTECTED = frozenset({"code_span", "email_autolink", "image", "latex_block", "uri_autolink"})
REFERENCES = frozenset({"collapsed_reference_link", "shortcut_link"})
LINKS = frozenset({"full_reference_link", "inline_link"})
EMPHASIS = frozenset({"emphasis", "strong_emphasis", "strikethrough"})

# Start and end in bytes, kind, and what the model reads. A kind is "protected", "mark", "break", or what begins or
# ends there: "open", "close", "link", "link end", "continuation".
Part = tuple[int, int, str, str]

FOOTNOTE = re.compile(r"\[\^[^\]\s]+\](?::[ \t]*)?")
LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
# A character after a backslash, and a character reference, which needs its semicolon here.
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])|&#?\w{1,32};")
# The marks that may end a heading.
CLOSING = re.compile(rb"(?:^|[ \t])[ \t]*#+[ \t]*\Z")
SPECIAL = re.compile(r"([\\`*_~\[\]<>|]|&(?=#?\w+;)|^[-+](?=\s)|^#(?=#{0,5}(?:\s|\Z))|^:(?=::))")
NUMBER = re.compile(r"^(\d{1,9})([.)])(?=\s|\Z)")
# A formula, and not two prices.
FORMULA = re.compile(r"\$\$.*\$\$|\$[^\s$](?:[^$]*[^\s$])?\$", re.DOTALL)
# Site generators read {{ name }}, {% tag %}, and the attributes of a heading.
TEMPLATE = re.compile((TEMPLATE_SYNTAX + r"|\{[#.][^{}\n]*\}").encode())
# A line that opens or closes a box: `!!! note "Title"` and `=== "Tab"` of MkDocs, `::: warning Title` of Pandoc and
# VitePress, `> [!NOTE] Title` of GitHub and Obsidian. The title is text.
DIRECTIVE = re.compile(
    rb"(?<![^\n])[ \t>]*(?:(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?:[ \t]+(?:inline|end)\b)*|===[!+]?(?=[ \t]+\")"
    rb"|:{3,}[ \t]*[\w-]*(?:[ \t]*\{[^{}\n]*\})?|\[![\w-]+\][+-]?)(?![^\s])[ \t]*(?P<title>[^\r\n]*)"
)
LINE_END = re.compile(rb'"?[ \t]*\r?\n?')
# Marks of quotations and items that are nested more deeply than the parser reads.
NESTED = re.compile(rb"(?:[ \t]*(?:>|[-+*](?=[ \t])))+[ \t]*")
# Emphasis that the parser overlooks, such as that after a digit.
UNDERSCORES = re.compile(rb"(?<![\w\\])(?P<open>_{1,3})(?=[^\s_\x22')\]])|(?<=[^\s_\\])_{1,3}(?!\w)")
# Part of a word in UTF-8.
LETTER = re.compile(rb"[0-9A-Za-z\x80-\xff]")
# A paragraph is parsed in stretches, as the time grows with the square of the marks that open something but do not
# close it.
STRETCH, MAX_MARKS = 20_000, 300
PIECE = re.compile(rb".{1,1000}(?:\s|\Z)|.{1,1000}", re.DOTALL)
MARK = re.compile(rb"[*_~\[]")


def read_markdown(text: str) -> MarkdownTemplate:
    """
    Reads a Markdown file. Code, images, formulas, addresses, HTML and the head of a file (`---`) are protected.

    Raises:
        ImportError: tree-sitter-markdown is not installed.
    """
    try:
        import tree_sitter_markdown
        from tree_sitter import Language, Parser, Point, Range
    except ImportError as error:
        raise ImportError("Markdown needs a parser: pip install tree-sitter tree-sitter-markdown") from error
    block_language, inline_language = (
        Language(language()) for language in (tree_sitter_markdown.language, tree_sitter_markdown.inline_language)
    )
    # The parser needs a line end at the end.
    content = text.encode() + b"\n"
    root = Parser(block_language).parse(content).root_node
    labels = {_label(node.text.decode()) for node in _find(root, frozenset({"link_label"}))}
    file = MarkdownTemplate(_escape, drop_blank_lines=True)
    done = 0
    for block in _find(root, BLOCKS):
        # Inline parts are read without the quotation marks or indentation before further lines.
        outside = [
            (node.start_byte, node.end_byte, "continuation", "")
            for node in block.children
            if node.type == "block_continuation"
        ]
        gaps = [block.start_byte, *(place for span in outside for place in span[:2]), block.end_byte]
        parts: list[Part] = list(outside)
        for stretch in _stretches(content, list(zip(gaps[::2], gaps[1::2], strict=True))):
            ranges = [Range(Point(0, a), Point(0, b), a, b) for a, b in stretch]
            parts += _parts(Parser(inline_language, included_ranges=ranges).parse(content).root_node, content, labels)
        for template in TEMPLATE.finditer(content, block.start_byte, block.end_byte):
            parts.append((*template.span(), "protected", template[0].decode()))
        parts += _directives(content, block.start_byte, block.end_byte)
        file.add(content[done : block.start_byte].decode())
        done = block.end_byte
        if block.parent.type == "atx_heading" and (closing := CLOSING.search(content[block.start_byte : done])):
            done = block.start_byte + closing.start()
        _add_block(file, content, block.start_byte, done, sorted(parts, key=_order))
    file.add(content[done:-1].decode())
    return file


def _stretches(content: bytes, spans: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Yields the spans of a block in groups that a parser takes at once; a long span is cut between two words."""
    group: list[tuple[int, int]] = []
    size = marks = 0
    for start, stop in spans:
        for piece in PIECE.finditer(content, start, stop):
            size += len(piece[0])
            marks += len(MARK.findall(piece[0]))
            if group and (size > STRETCH or marks > MAX_MARKS):
                yield group
                group, size, marks = [], len(piece[0]), len(MARK.findall(piece[0]))
            if group and group[-1][1] == piece.start():
                group[-1] = (group[-1][0], piece.end())
            else:
                group.append(piece.span())
    if group:
        yield group


def _directives(content: bytes, start: int, end: int) -> Iterator[Part]:
    """Yields the parts of lines that open or close a box."""
    block = content[start:end]
    for line in DIRECTIVE.finditer(block):
        title, title_end = line.span("title")
        title_end = title + len(line["title"].rstrip())
        if title_end - title > 1 and block[title : title + 1] == block[title_end - 1 : title_end] == b'"':
            title, title_end = title + 1, title_end - 1
        behind = LINE_END.match(block, title_end)
        yield start + line.start(), start + title, "break", ""
        if behind and behind[0]:
            yield start + title_end, start + behind.end(), "break", ""


def _order(part: Part) -> tuple[int, int, bool]:
    """Sorts parts; of two in one place, a protected one comes first."""
    start, stop, kind, _ = part
    return start, stop, kind != "protected"


def _add_block(file: MarkdownTemplate, content: bytes, done: int, end: int, parts: list[Part]) -> None:
    """Adds the text of a block, and its other parts according to their kinds."""
    add = {"continuation": file.add_continuation, "open": file.open_emphasis, "close": file.close_emphasis}
    links: list[int] = []
    if nested := NESTED.match(content, done, end):
        file.add(nested[0].decode())
        done = nested.end()
    footnote = FOOTNOTE.match(content[done:end].decode())
    if footnote:
        file.add(footnote[0])
        done += len(footnote[0].encode())
    for start, stop, kind, words in [*parts, (end, end, "mark", "")]:
        if start < done:
            continue
        _add_text(file, content[done:start])
        raw = content[start:stop].decode()
        if kind == "link":
            links.append(start)
            file.open_link(start)
        if kind == "protected":
            file.add_protected(raw, words)
        else:
            add.get(kind, file.add)(raw)
        if kind == "link end":
            file.close_link(links.pop())
        if kind == "break":
            file.end_block()
        done = stop
    file.end_block()


def _add_text(file: MarkdownTemplate, raw: bytes) -> None:
    """Adds text, with pairs of underscores around emphasis in it."""
    done = 0
    marks = {place: mark for pair in _pairs(UNDERSCORES.finditer(raw)) for mark in pair for place in [mark.start()]}
    for place, mark in sorted(marks.items()):
        file.add_text(raw[done:place].decode(), _unescape)
        (file.open_emphasis if mark["open"] else file.close_emphasis)(mark[0].decode())
        done = mark.end()
    file.add_text(raw[done:].decode(), _unescape)


def _pairs(marks: Iterable[re.Match[bytes]]) -> Iterator[tuple[re.Match[bytes], re.Match[bytes]]]:
    """Yields the marks that open and those that close an emphasis; others are text, as in `__get`."""
    opened: list[re.Match[bytes]] = []
    for mark in marks:
        if mark["open"]:
            opened.append(mark)
        elif opened and opened[-1][0] == mark[0]:
            yield opened.pop(), mark


def _parts(root: Any, content: bytes, labels: set[str]) -> Iterator[Part]:
    """Yields the parts of an inline text that are not translated."""
    nodes = [root]
    while nodes:
        node = nodes.pop()
        start, end = node.start_byte, node.end_byte
        if node.type in PROTECTED or node.type in REFERENCES:
            words = node.text.decode()
            if node.type in REFERENCES and FOOTNOTE.fullmatch(words):
                yield start, end, "mark", ""
            elif node.type in REFERENCES and _label(words) not in labels:
                nodes += reversed(node.children)
            elif node.type != "latex_block" or FORMULA.fullmatch(words):
                description = [child.text.decode() for child in node.children if child.type == "image_description"]
                bare = words.strip("`$<>[] ") or words.strip("` ") or words
                read = "".join(description) if node.type == "image" else bare
                yield start, end, "protected", " ".join(read.split())
        elif node.type in LINKS:
            text = next((child for child in node.children if child.type == "link_text"), None)
            if text is None:  # an anchor, which shows nothing
                yield start, end, "mark", ""
            else:
                yield start, text.start_byte, "link", ""
                yield text.end_byte, end, "link end", ""
                nodes.append(text)
        elif node.type in EMPHASIS:
            marks = [child for child in node.children if child.type == "emphasis_delimiter"]
            marks = marks if _is_emphasis(content, start, end) else []
            for number, mark in enumerate(marks):
                yield mark.start_byte, mark.end_byte, "open" if number < len(marks) / 2 else "close", ""
            nodes += [child for child in reversed(node.children) if child.type != "emphasis_delimiter"]
        elif node.type in ("html_tag", "hard_line_break"):
            is_break = node.type == "hard_line_break" or LINE_BREAK.fullmatch(node.text.decode())
            yield start, end, "break" if is_break else "mark", ""
        else:
            nodes += reversed(node.children)


def _is_emphasis(content: bytes, start: int, end: int) -> bool:
    """Returns whether an emphasis is one; the parser also finds some in `a_3_b` and `__get & __set`."""
    inside = content[start:end].strip(b"_")
    is_in_word = LETTER.match(content[max(start - 1, 0) : start]) or LETTER.match(content, end)
    return content[start : start + 1] != b"_" or not (is_in_word or inside != inside.strip())


def _find(root: Any, types: frozenset[str]) -> Iterator[Any]:
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if node.type in types:
            yield node
        else:
            nodes += reversed(node.children)


def _label(link: str) -> str:
    """Returns the name by which `[Name]` or `[Name][]` refers to an address."""
    return " ".join(link.removesuffix("[]").strip("[]").casefold().split())


def _unescape(text: str) -> str:
    return ESCAPED.sub(lambda found: found[1] or unescape(found[0]), text)


def _escape(text: str) -> str:
    """Returns text that stands for itself in Markdown; addresses are left alone."""
    addresses = [*ADDRESS.finditer(text)]
    ends = [0, *(place for address in addresses for place in address.span()), len(text)]
    pieces = [text[start:stop] for start, stop in pairwise(ends)]
    pieces[::2] = [SPECIAL.sub(r"\\\1", piece) for piece in pieces[::2]]
    return NUMBER.sub(r"\1\\\2", "".join(pieces))
