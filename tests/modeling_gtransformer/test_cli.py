"""`gtransformer-translate`: files and pipes in, the same out, and an exit status that can be relied on."""

import csv
import inspect
import io
import json
import xml.etree.ElementTree as ElementTree

import pytest
from json_lines import read_json_lines, write_json_lines
from transformers import pipeline

from modeling_gtransformer.cli import main, parse_arguments
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.files.aligned_pairs import to_tmx, to_tsv
from modeling_gtransformer.generation_gtransformer import SENTENCE_LIMITS


TEXT = "\ufeffThe cat sleeps. It is old.\r\n\r\n- the old cat\r\n---"


@pytest.fixture
def expected(checkpoint):
    return pipeline("document-translation", model=checkpoint)(TEXT, splitter="sentencex", confidence=True)


def run(*arguments):
    return main([*map(str, arguments)])


def test_a_text_on_standard_output(checkpoint, expected, tmp_path, capfdbinary):
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    assert run(tmp_path / "a.txt", "--model", checkpoint, "--splitter", "sentencex") == 0
    assert capfdbinary.readouterr().out == expected["translation_text"].encode()
    assert expected["translation_text"].startswith("\ufeff") and expected["translation_text"].endswith("\r\n---")


def test_in_a_pipe(checkpoint, expected, monkeypatch, capfdbinary):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert run("--model", checkpoint, "--splitter", "sentencex", "--tgt_lang", "de_DE") == 0
    assert capfdbinary.readouterr().out == expected["translation_text"].encode()


def test_what_fails_is_reported_and_the_rest_is_done(checkpoint, tmp_path, capfd):
    (tmp_path / "good.txt").write_text("the cat")
    (tmp_path / "bad.txt").write_bytes(b"the \xff cat")
    (tmp_path / "bad.jsonl").write_text('{"source": ["a"]}\n{"text": 1}\n')
    files = [tmp_path / name for name in ("bad.txt", "none.txt", "bad.jsonl", "good.txt")]
    assert run(*files, "--model", checkpoint, "--output", tmp_path / "out") == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good.txt"]
    errors = capfd.readouterr().err
    assert "bad.txt: not UTF-8, invalid start byte at byte 5" in errors and "none.txt: " in errors
    assert "line 2 has no document in the column 'source'" in errors


def test_the_file_itself_is_never_overwritten(checkpoint, tmp_path, capfd):
    (tmp_path / "a.txt").write_text("the cat")
    assert run(tmp_path / "a.txt", "--model", checkpoint, "--output", tmp_path) == 1
    assert (tmp_path / "a.txt").read_text() == "the cat" and "would overwrite it" in capfd.readouterr().err


FILES = {
    "a.md": "# the *cat*\n\n- it is {name}\n",
    "a.html": "<p>the <b>cat</b></p>\n",
    "a.srt": "1\n00:00:01,000 --> 00:00:02,000\nthe cat\n",
    "a.po": 'msgid ""\nmsgstr ""\n"Language: de\\n"\n\nmsgid "the cat"\nmsgstr ""\n',
    "a.docx": None,
}


@pytest.mark.parametrize("name", FILES)
def test_files(checkpoint, tmp_path, name):
    docx = pytest.importorskip("docx")
    if FILES[name] is None:
        document = docx.Document()
        document.add_paragraph("the cat")
        document.save(tmp_path / name)
    else:
        (tmp_path / name).write_text(FILES[name])
    (tmp_path / "terms.tsv").write_text("cat\tkatze\n")
    arguments = ["--glossary", tmp_path / "terms.tsv", "--output", tmp_path / "out"]
    assert run(tmp_path / name, "--model", checkpoint, *arguments) == 0
    result = tmp_path / "out" / name
    if FILES[name] is None:
        assert "katze" in docx.Document(result).paragraphs[0].text
    else:
        text = result.read_text()
        assert "katze" in text.replace("*", "").replace("<b>", "").replace("</b>", "")
        assert text.count("\n") == FILES[name].count("\n") and text.startswith(FILES[name][:2])


def test_the_format_is_known_or_given(checkpoint, tmp_path, capfd):
    (tmp_path / "a.rst").write_text("the\ncat\n")
    assert run(tmp_path / "a.rst", "--model", checkpoint, "--output", tmp_path / "out") == 1
    assert "the ending '.rst' says nothing about its format; give --format" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()
    arguments = ["--format", "wrapped", "--output_format", "jsonl"]
    assert run(tmp_path / "a.rst", "--model", checkpoint, *arguments) == 0
    assert json.loads(capfd.readouterr().out)["source_text"] == "the cat"


def test_json_lines(checkpoint, tmp_path):
    records = [{"id": 1, "en": ["the cat", "", "it is"]}, {"id": 2, "en": "the cat\n\nit is\n"}]
    write_json_lines(tmp_path / "a.jsonl", records)
    arguments = ["--source_column", "en", "--output", tmp_path / "out", "--confidence"]
    assert run(tmp_path / "a.jsonl", "--model", checkpoint, *arguments) == 0
    by_list, by_text = read_json_lines(tmp_path / "out" / "a.jsonl")
    assert by_list["id"] == 1 and by_list["en"] == records[0]["en"]
    first, blank, last = by_list["translation"]
    assert blank == "" and by_text["translation"] == f"{first}\n\n{last}\n"
    assert by_list["confidence"][1] is None and len(by_text["confidence"]) == 2


@pytest.mark.parametrize("kind", ["jsonl", "tsv", "tmx"])
def test_aligned_pairs(checkpoint, expected, tmp_path, kind):
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    arguments = ["--splitter", "sentencex", "--confidence", "--output", tmp_path / "out", "--output_format", kind]
    assert run(tmp_path / "a.txt", "--model", checkpoint, *arguments) == 0
    text = (tmp_path / "out" / f"a.{kind}").read_text(encoding="utf-8")
    pairs = [(pair["source_text"], pair["translation_text"]) for pair in expected["sentences"]]
    if kind == "jsonl":
        assert [json.loads(line) for line in text.splitlines()] == expected["sentences"]
    elif kind == "tsv":
        rows = list(csv.DictReader(io.StringIO(text), dialect="excel-tab"))
        assert [(row["source_text"], row["translation_text"]) for row in rows] == pairs
        assert float(rows[0]["confidence"]) == pytest.approx(expected["sentences"][0]["confidence"])
    else:
        units = ElementTree.fromstring(text.encode()).findall("body/tu")
        assert [tuple(seg.text for seg in unit.iter("seg")) for unit in units] == pairs
        languages = [tuple(tuv.attrib.values()) for tuv in units[0].findall("tuv")]
        assert languages == [("en-XX",), ("de-DE",)] and float(units[0].find("prop").text) < 0


def test_pairs_of_difficult_text():
    pairs = [{"source_text": 'a\tb "c" <d> & \x01e', "translation_text": "x"}]
    [row] = csv.DictReader(io.StringIO(to_tsv(pairs, "en", "de")), dialect="excel-tab")
    assert row["source_text"] == pairs[0]["source_text"]
    root = ElementTree.fromstring(to_tmx(pairs, "[en]", "[de]").encode())
    assert root.find("header").get("srclang") == "en"
    assert root.find("body/tu/tuv/seg").text == 'a\tb "c" <d> & e'


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["a.txt"], "--model"),
        (["a.txt", "b.txt", "--model", "m"], "several files need --output"),
        (["a.txt", "--model", "m", "--splitter", "nltk"], "invalid choice"),
        (["a/x.md", "b/x.md", "--model", "m", "--output", "out"], "several files would become out/x.md"),
        (["a.md", "a.srt", "--model", "m", "--output", "out", "--output_format", "tsv"], "would become out/a.tsv"),
    ],
)
def test_wrong_usage(arguments, message, capsys):
    with pytest.raises(SystemExit) as exit:
        parse_arguments(arguments)
    assert exit.value.code == 2 and message in capsys.readouterr().err


def test_help_has_examples_and_the_names_of_the_pipeline(capsys):
    with pytest.raises(SystemExit):
        parse_arguments(["--help"])
    assert "man ls | col -bx | gtransformer-translate" in capsys.readouterr().out
    options = set(vars(parse_arguments(["--model", "m"])))
    known = {*inspect.signature(translate_documents).parameters, *SENTENCE_LIMITS, "num_beams", "splitter"}
    known |= {"format", "glossary", "mark_fuzzy"}
    own = {"files", "model", "src_lang", "tgt_lang", "output", "output_format", "source_column"}
    assert options - own <= known
