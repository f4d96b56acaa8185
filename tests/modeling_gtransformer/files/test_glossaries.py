"""Glossaries in their formats, and what is wrong with one."""

import csv
import io

import pytest

from modeling_gtransformer.files.consistency import Consistency
from modeling_gtransformer.files.glossaries import read_glossary


@pytest.fixture
def read(tmp_path):
    def read_content(name, content):
        (tmp_path / name).write_bytes(content.encode())
        return read_glossary(tmp_path / name)

    return read_content


TERMS = {"gate": "Tor", 'a, "b"': "c"}


@pytest.mark.parametrize(
    "name, content, terms",
    [
        ("a.tsv", '\ufeffgate\tTor\r\n\r\na, "b"\tc \r\n', TERMS),
        ("a.txt", 'gate\tTor\na, "b"\tc', TERMS),
        ("a.CSV", '\ufeffgate,Tor\n\n"a, ""b""",c \n', TERMS),
        ("a.csv", 'gate;Tor\n"a, ""b""";c\n', TERMS),
        # Quotation marks between tabs belong to the terms, as many as there are.
        ("a.tsv", '"gate"\t"Tor"\n5" pipe\t5"-Rohr\n"open\t"offen\n',
         {'"gate"': '"Tor"', '5" pipe': '5"-Rohr', '"open': '"offen'}),
        # The separator divides all lines: spreadsheets leave a comma between semicolons without quotation marks.
        ("a.csv", "order;Bestellung, die\nhouse;Haus\n", {"order": "Bestellung, die", "house": "Haus"}),
        ("a.csv", "\n \n", {}),
        ("a.tsv", "\n \n", {}),
    ],
)  # fmt: skip
def test_lines(read, name, content, terms):
    assert read(name, content).between("en", "de") == terms


BANK = (
    "<termEntry id='{}'><langSet xml:lang='en'><term>bank</term></langSet>"
    "<langSet xml:lang='de'><term>{}</term></langSet></termEntry>"
)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.tsv", "gate Tor\n", "line 1: expected a term, a tab and its translation"),
        ("a.tsv", "a\tb\na\tc\n", "line 2: 'a' already has another translation"),
        ("a.tsv", "a\tb\nA\tc\n", "line 2: 'A' already has another translation"),
        ("a.csv", "a,b\nc,\n", "line 2: expected a term, a comma and its translation"),
        ("a.csv", "a;b\nc\n", "line 2: expected a term, a semicolon and"),
        ("a.csv", 'a,b\n"c"d,e\n', "line 2: "),
        ("a.csv", "a;b, c\nd;e, f\n", "both commas and semicolons divide all lines in two"),
        ("a.csv", "\ufeffa,\xff\n".encode("utf-16").decode("latin-1"), "NUL"),
        ("a.tbx", "<tbx>\n<text>", "broken XML, line 2"),
        ("a.tbx", "<html/>", "not TBX: it has neither termEntry nor conceptEntry"),
        ("a.tbx", "<a><termEntry/><termEntry id='b'><term>c</term></termEntry></a>",
         r"concept 2 \(b\): a term has no language"),
        ("a.tbx", "<a><termEntry><langSet xml:lang='en'><term/></langSet></termEntry></a>",
         "concept 1: a term is empty"),
        ("a.tbx", f"<a>{BANK.format(1, 'Bank')}{BANK.format(2, 'Ufer')}</a>",
         r"concept 2 \(2\): 'bank' already has another translation"),
    ],
)  # fmt: skip
def test_what_is_no_glossary(read, name, content, message):
    with pytest.raises(ValueError, match=message):
        read(name, content).between("en", "de")


VERSION_2 = """<?xml version="1.0"?>
<!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">
<martif type="TBX-Basic" xml:lang="en"><text><body><termEntry id="c1"><descrip>term</descrip>
<langSet xml:lang="en-US"><tig><term>gate</term></tig>
<ntig><termGrp><term>logic <hi>gate</hi></term></termGrp></ntig></langSet>
<langSet xml:lang="de"><tig><term>Pforte</term>
<termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></tig>
<tig><term>Tor</term></tig><tig><term>Gatter</term>
<termNote type="administrativeStatus">preferredTerm-admn-sts</termNote></tig></langSet>
<langSet xml:lang="fr"><tig><term>porte</term></tig></langSet></termEntry></body></text></martif>"""
VERSION_3 = """<tbx type="TBX-Basic" style="dct" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2"
 xmlns:min="http://www.tbxinfo.net/ns/min"><text><body><conceptEntry id="c1">
<langSec xml:lang="en"><termSec><term>gate</term></termSec><termSec><term>logic gate</term></termSec></langSec>
<langSec xml:lang="de-AT"><termSec><term>Pforte</term></termSec></langSec>
<langSec xml:lang="de"><termSec><term>Tor</term>
<min:administrativeStatus>supersededTerm-admn-sts</min:administrativeStatus>
</termSec><termSec><term>Gatter</term></termSec></langSec>
<langSec xml:lang="fr"><termSec><term>porte</term></termSec></langSec></conceptEntry></body></text></tbx>"""


@pytest.mark.parametrize("content", [VERSION_2, VERSION_3])
def test_tbx(read, content):
    glossary = read("a.tbx", content)
    assert glossary.between("en_XX", "[de]") == {"gate": "Gatter", "logic gate": "Gatter"}
    assert glossary.between("eng_Latn", "fra_Latn") == {"gate": "porte", "logic gate": "porte"}
    with pytest.raises(ValueError, match="no concept has terms in both en and it; its languages are "):
        glossary.between("en", "it")
    with pytest.raises(ValueError, match="choose two with src_lang and tgt_lang"):
        glossary.between(None, "de")


@pytest.mark.parametrize("separator", "\t,;")
def test_a_report_on_consistency_becomes_a_glossary(read, separator):
    """When every sentence has one translation left, as a spreadsheet may save it, too."""
    consistency = Consistency()
    pairs = [("=Open", "Auf"), ("=Open", "Offen"), ('the "cat"', "die Katze"), ('the "cat"', "Mieze")]
    for source, translation in pairs:
        consistency.add("a", [{"source_text": source, "translation_text": translation}])
    rows = [*csv.reader(consistency.to_tsv().splitlines(), dialect="excel-tab")]
    name = "a.tsv" if separator == "\t" else "a.csv"

    def content(rows):
        file = io.StringIO()
        csv.writer(file, delimiter=separator).writerows(rows)
        return file.getvalue()

    assert read(name, content([rows[0], rows[2], rows[3]])).between(None, None) == {
        "=Open": "Offen",
        'the "cat"': "die Katze",
    }
    with pytest.raises(ValueError, match="line 3: '=Open' already has another translation"):
        read(name, content(rows))
