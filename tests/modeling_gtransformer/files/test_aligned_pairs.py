"""Pairs come back from what reads their format, whatever is in them."""

import csv
import io
import json
import xml.etree.ElementTree as ElementTree

import pytest

from modeling_gtransformer import __version__
from modeling_gtransformer.files.aligned_pairs import to_jsonl, to_tmx, to_tsv


DIFFICULT = [
    {
        "source_text": 'a\tb "c" <d> & \x01e\uffff',
        "translation_text": "ein 'Wort' ]]> \u2028 猫 😀",
        "confidence": -0.25,
    },
    {"source_text": "two\nlines\r\n", "translation_text": "", "confidence": None},
]


def test_json_lines_have_a_pair_each():
    lines = to_jsonl(DIFFICULT, "en", "de").split("\n")
    assert [json.loads(line) for line in lines[:-1]] == DIFFICULT and lines[-1] == ""
    assert "猫" in lines[0]  # readable, not escaped


def test_tab_separated_values_are_quoted_where_they_must():
    text = to_tsv(DIFFICULT, "en", "de")
    rows = list(csv.DictReader(io.StringIO(text, newline=""), dialect="excel-tab"))
    expected = [{name: "" if value is None else str(value) for name, value in pair.items()} for pair in DIFFICULT]
    assert rows == expected
    plain = [{"source_text": "a b, c", "translation_text": "d"}]
    assert to_tsv(plain, "en", "de") == "source_text\ttranslation_text\na b, c\td\n"
    assert to_tsv([], "en", "de") == "source_text\ttranslation_text\n"


@pytest.mark.parametrize("formula", ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\t=1", "\r=1"])
def test_a_cell_is_no_formula(formula):
    pair = {"source_text": formula, "translation_text": formula, "confidence": -0.5}
    [row] = csv.DictReader(io.StringIO(to_tsv([pair], "en", "de"), newline=""), dialect="excel-tab")
    assert row == {"source_text": f"'{formula}", "translation_text": f"'{formula}", "confidence": "-0.5"}
    assert json.loads(to_jsonl([pair], "en", "de"))["source_text"] == formula


def read_tmx(text):
    """Header, and for every unit its properties and its segments by language, as any reader of XML gives them."""
    root = ElementTree.fromstring(text.encode())
    assert (root.tag, root.get("version")) == ("tmx", "1.4")
    units = []
    for unit in root.findall("body/tu"):
        properties = {prop.get("type"): prop.text for prop in unit.findall("prop")}
        variants = {next(iter(tuv.attrib.values())): tuv.find("seg").text or "" for tuv in unit.findall("tuv")}
        units.append((properties, variants))
    return root.find("header").attrib, units


def test_a_translation_memory_keeps_all_that_xml_can_hold():
    header, units = read_tmx(to_tmx(DIFFICULT, "en", "de"))
    assert (header["srclang"], header["segtype"], header["creationtoolversion"]) == ("en", "sentence", __version__)
    first, second = units
    # What XML cannot hold is gone; a reader of XML makes every line end the same.
    assert first[1] == {"en": 'a\tb "c" <d> & e', "de": "ein 'Wort' ]]> \u2028 猫 😀"}
    assert first[0] == {"x-confidence": "-0.2500"} and second[0] == {}
    assert second[1]["en"].splitlines() == ["two", "lines"] and second[1]["de"] == ""


@pytest.mark.parametrize("given, written", [("en_XX", "en-XX"), ("[en]", "en"), ("pt-BR", "pt-BR"), (None, "und")])
def test_language_codes_are_those_of_xml(given, written):
    header, [(_, variants)] = read_tmx(to_tmx([{"source_text": "a", "translation_text": "b"}], given, "de_DE"))
    assert header["srclang"] == written and variants == {written: "a", "de-DE": "b"}
