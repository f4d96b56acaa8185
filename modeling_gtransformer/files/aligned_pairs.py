"""Exports of sentence pairs: JSON lines, tab-separated values, TMX."""

import csv
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from ..hub import __version__
from .character_references import without_control


XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"

# Spreadsheets evaluate a cell that begins with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

Pairs = Sequence[dict[str, Any]]


def to_jsonl(pairs: Pairs, src_lang: str | None, tgt_lang: str | None) -> str:
    """Returns a line per sentence: `source_text`, `translation_text` and, if requested, `confidence`."""
    return "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs)


def to_tsv(pairs: Pairs, src_lang: str | None, tgt_lang: str | None) -> str:
    """
    Returns a header and a line per sentence. Texts with a tab or a quotation mark are quoted. A text that a
    spreadsheet would evaluate as a formula gets a leading apostrophe, which marks a cell as text.
    """
    columns = ["source_text", "translation_text", *(["confidence"] if pairs and "confidence" in pairs[0] else [])]
    return tab_separated(columns, pairs)


def tab_separated(columns: list[str], rows: Iterable[dict[str, Any]]) -> str:
    """Returns rows as tab-separated values with a header."""
    lines: list[str] = []
    writer = csv.DictWriter(SimpleNamespace(write=lines.append), columns, dialect="excel-tab")
    writer.writeheader()
    writer.writerows({name: _no_formula(value) for name, value in row.items()} for row in rows)
    # The writer quotes cells with characters of its line end, so this is `\r\n`.
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


def _no_formula(value: Any) -> Any:
    """Marks a value as text if a spreadsheet would evaluate it as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def from_cell(text: str) -> str:
    """Removes the apostrophe that marks a cell as text."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_STARTS) else text


def to_tmx(pairs: Pairs, src_lang: str | None, tgt_lang: str | None) -> str:
    """
    Returns a translation memory (TMX 1.4b): one unit per sentence, with the confidence as a property. An unknown
    language is "und".
    """
    src_lang, tgt_lang = ((language or "und").strip("[]").replace("_", "-") for language in (src_lang, tgt_lang))
    tmx = ElementTree.Element("tmx", version="1.4")
    header = {"segtype": "sentence", "o-tmf": "none", "adminlang": "en", "srclang": src_lang, "datatype": "plaintext"}
    tool = {"creationtool": "gtransformer-translate", "creationtoolversion": __version__}
    ElementTree.SubElement(tmx, "header", tool | header)
    body = ElementTree.SubElement(tmx, "body")
    for pair in pairs:
        unit = ElementTree.SubElement(body, "tu")
        if pair.get("confidence") is not None:
            ElementTree.SubElement(unit, "prop", type="x-confidence").text = f"{pair['confidence']:.4f}"
        for language, name in ((src_lang, "source_text"), (tgt_lang, "translation_text")):
            variant = ElementTree.SubElement(unit, "tuv", {XML_LANG: language})
            ElementTree.SubElement(variant, "seg").text = without_control(pair[name])
    ElementTree.indent(tmx)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(tmx, encoding="unicode") + "\n"


ALIGNED_FORMATS: dict[str, Callable[[Pairs, str | None, str | None], str]] = {
    "jsonl": to_jsonl,
    "tsv": to_tsv,
    "tmx": to_tmx,
}
