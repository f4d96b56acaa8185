"""Markdown: paragraphs, headings, items, cells and footnotes, with emphasis and links as borders between runs."""

import html
import re
from collections.abc import Iterator
from typing import Any

from ..plain_text import ADDRESS
from .template import TextFile


# Nodes of tree-sitter-markdown: blocks of text; parts of a sentence that are not translated; what only marks it.
BLOCKS = frozenset({"inline", "pipe_table_cell"})
KEPT = frozenset({"code_span", "email_autolink", "image", "latex_block", "uri_autolink"})
REFERENCES = frozenset({"collapsed_reference_link", "shortcut_link"})
LINKS = frozenset({"full_reference_link", "inline_link"})
MARKS = {"emphasis_delimiter": "mark", "html_tag": "mark", "hard_line_break": "break"}

# Start and end in bytes, kind ("kept", "mark", "break"), what the model reads of it.
Part = tuple[int, int, str, str]

FOOTNOTE = re.compile(r"\[\^[^\]\s]+\](?::[ \t]*)?")
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
SPECIAL = re.compile(r"([\\`*_~\[\]<>|]|&(?=#?\w+;)|^[-+#](?=\s))")
NUMBER = re.compile(r"^(\d{1,9})([.)])(?=\s|\Z)")
# A formula, and not two prices.
FORMULA = re.compile(r"\$\$.*\$\$|\$[^\s$](?:[^$]*[^\s$])?\$", re.DOTALL)
# What site generators read: {{ name }}, {% tag %}, and the attributes of a heading.
TEMPLATE = re.compile(rb"\{\{.*?\}\}|\{%.*?%\}|\{[#.][^{}\n]*\}")


def read_markdown(text: str) -> TextFile:
    """
    Code, images, formulas, addresses, HTML and the head of a file (`---`) stay as they are.

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
    # The parser wants a line end at the end.
    content = text.encode() + b"\n"
    root = Parser(block_language).parse(content).root_node
    labels = {_label(node.text.decode()) for node in _find(root, frozenset({"link_label"}))}
    file = TextFile(_escape)
    done = 0
    for block in _find(root, BLOCKS):
        # Inline parts are read without the quotation marks or indentation in front of further lines.
        outside = [
            (node.start_byte, node.end_byte, "mark", "")
            for node in block.children
            if node.type == "block_continuation"
        ]
        gaps = [block.start_byte, *(place for span in outside for place in span[:2]), block.end_byte]
        ranges = [Range(Point(0, a), Point(0, b), a, b) for a, b in zip(gaps[::2], gaps[1::2], strict=True)]
        parts = [*_parts(Parser(inline_language, included_ranges=ranges).parse(content).root_node, labels), *outside]
        for template in TEMPLATE.finditer(content, block.start_byte, block.end_byte):
            parts.append((*template.span(), "kept", template[0].decode()))
        file.add(content[done : block.start_byte].decode())
        _add_block(file, content, block.start_byte, block.end_byte, sorted(parts))
        done = block.end_byte
    file.add(content[done:-1].decode())
    return file


def _add_block(file: TextFile, content: bytes, done: int, end: int, parts: list[Part]) -> None:
    """Adds the text of a block, and the parts of it that are no text as what they are."""
    footnote = FOOTNOTE.match(content[done:end].decode())
    if footnote:
        file.add(footnote[0])
        done += len(footnote[0].encode())
    for start, stop, kind, words in [*parts, (end, end, "mark", "")]:
        if start < done:
            continue
        if start > done:
            file.add_text(content[done:start].decode(), _unescape)
        raw = content[start:stop].decode()
        if kind == "kept":
            file.keep(raw, words)
        else:
            file.add(raw)
        if kind == "break":
            file.end_block()
        done = stop
    file.end_block()


def _parts(node: Any, labels: set[str]) -> Iterator[Part]:
    """Parts of an inline text that are not translated."""
    words = node.text.decode()
    if node.type == "latex_block" and not FORMULA.fullmatch(words):
        return
    if node.type in KEPT or (node.type in REFERENCES and _label(words) in labels):
        description = [child.text.decode() for child in node.children if child.type == "image_description"]
        read = "".join(description) if node.type == "image" else words.strip("`$<>[] ")
        yield node.start_byte, node.end_byte, "kept", " ".join(read.split())
    elif node.type in REFERENCES and FOOTNOTE.fullmatch(words):
        yield node.start_byte, node.end_byte, "mark", ""
    elif node.type in LINKS:
        text = next(child for child in node.children if child.type == "link_text")
        yield node.start_byte, text.start_byte, "mark", ""
        yield from _parts(text, labels)
        yield text.end_byte, node.end_byte, "mark", ""
    elif node.type in MARKS:
        yield node.start_byte, node.end_byte, MARKS[node.type], ""
    else:
        for child in node.children:
            yield from _parts(child, labels)


def _find(node: Any, types: frozenset[str]) -> Iterator[Any]:
    if node.type in types:
        yield node
        return
    for child in node.children:
        yield from _find(child, types)


def _label(link: str) -> str:
    """The name by which `[Name]` or `[Name][]` refers to an address."""
    return " ".join(link.removesuffix("[]").strip("[]").casefold().split())


def _unescape(text: str) -> str:
    return html.unescape(ESCAPED.sub(r"\1", text))


def _escape(text: str) -> str:
    """Text that means itself in Markdown, too; addresses are left alone."""
    result, done = "", 0
    for address in ADDRESS.finditer(text):
        result += SPECIAL.sub(r"\\\1", text[done : address.start()]) + address[0]
        done = address.end()
    return NUMBER.sub(r"\1\\\2", result + SPECIAL.sub(r"\\\1", text[done:]))
