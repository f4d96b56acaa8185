"""`gtransformer translate`: files and pipes in, the same out, and an exit status that can be relied on."""

import io
import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from json_lines import read_json_lines, write_json_lines
from packages import unpacked, word_document
from transformers import pipeline

from modeling_gtransformer import DocumentTranslationPipeline
from modeling_gtransformer.cli.main import main
from modeling_gtransformer.cli.report import Report
from modeling_gtransformer.cli.translate_options import TranslateOptions
from modeling_gtransformer.files.aligned_pairs import to_jsonl, to_tmx, to_tsv
from modeling_gtransformer.files.formats import FILE_FORMATS, FileFormat
from modeling_gtransformer.runtime import atomic_file


TEXT = "\ufeffThe cat sleeps. It is old.\r\n\r\n- the old cat\r\n---"


@pytest.fixture(autouse=True)
def folder(checkpoint, tmp_path, monkeypatch):
    """The working folder, with a text and the model."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("the cat\n")


@pytest.fixture
def expected(checkpoint):
    return pipeline("document-translation", model=checkpoint)(TEXT, splitter="sentencex", confidence=True)


def run(options):
    return main(["translate", *options.split()])


@pytest.mark.parametrize("file", ["", "b.txt"])
def test_a_text_on_standard_output(expected, capfdbinary, monkeypatch, file):
    Path("b.txt").write_bytes(TEXT.encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert run(f"{file} --model model --splitter sentencex --tgt_lang de_DE") == 0
    assert capfdbinary.readouterr().out == expected["translation_text"].encode()
    assert expected["translation_text"].startswith("\ufeff") and expected["translation_text"].endswith("\r\n---")


@pytest.mark.parametrize("option, encoding", [("cp1252", "cp1252"), ("utf-16", "utf-16"), ("auto", "cp1252")])
def test_a_text_in_another_encoding(option, encoding):
    Path("a.txt").write_bytes(("the old cat: Größe, déjà vu, naïve façade\n" * 3).encode(encoding))
    assert run(f"a.txt --model model --encoding {option} --output b.txt") == 0
    assert Path("b.txt").read_bytes().decode(encoding).count("\n") == 3
    Path("a.html").write_text("<p>the cat</p>")
    assert run(f"a.html --model model --encoding {option}") == 1  # it names its encoding itself


def test_what_fails_is_named_and_the_rest_is_done(capfd, monkeypatch):
    def broken(*_):
        raise NotImplementedError("that method")  # a parser may break anywhere

    monkeypatch.setitem(FILE_FORMATS, "html", FileFormat((".html",), broken))
    Path("bad.txt").write_bytes(b"the \xff cat")
    Path("bad.jsonl").write_text('{"source": 1}\n{"text": 1}\n{"source": "the cat"}\n')
    Path("bad.docx").write_text("no archive")
    Path("bad.html").write_text("<p>the cat</p>")
    assert run("bad.txt none.txt bad.jsonl bad.docx bad.html a.txt --model model --output out") == 1
    assert [path.name for path in Path("out").iterdir()] == ["a.txt"]
    errors = capfd.readouterr().err
    assert "bad.txt: not UTF-8, invalid start byte at byte 5" in errors and "bad.docx: " in errors
    assert "gtransformer translate: none.txt: No such file or directory\n" in errors
    assert "bad.jsonl:1: the column 'source' must hold a text or a list of sentences, not int" in errors
    assert "bad.jsonl:2: no document in the column 'source'" in errors
    assert "bad.html: NotImplementedError: that method" in errors
    assert errors.endswith("gtransformer translate: 6 files, 5 failed, 0 skipped, 0 warnings\n")


def test_a_batch_goes_on_where_it_stopped(capfd):
    Path("b.txt").write_text("the cat\n")
    Path("out").mkdir()
    Path("out/a.txt").write_text("mine")
    assert run("a.txt b.txt --model model --output out --skip_existing") == 0
    assert Path("out/a.txt").read_text() == "mine"
    done = Path("out/b.txt").read_text()
    errors = capfd.readouterr().err
    assert "2 files, 0 failed, 1 skipped, 0 warnings" in errors
    assert "gtransformer translate: a.txt: skipped, out/a.txt exists\n" in errors
    assert run("a.txt b.txt --model model --output . --skip_existing") == 1
    assert "would overwrite a.txt" in capfd.readouterr().err
    assert run("a.txt b.txt --model model --output out") == 1
    assert Path("out/a.txt").read_text() == "mine"
    assert "out/a.txt exists: use --overwrite, or --skip_existing" in capfd.readouterr().err
    assert run("a.txt b.txt --model model --output out --overwrite") == 0
    assert Path("out/a.txt").read_text() == done


def test_files_are_checked_before_the_model_is_loaded(capfd, monkeypatch):
    monkeypatch.setattr(TranslateOptions, "translator", None)
    Path("a.rst").write_text("the cat")
    Path("empty").mkdir()
    assert run("a.txt --model any --free") == 1
    assert run("a.rst none.txt empty --model any --output out") == 1
    errors = capfd.readouterr().err
    assert "a.txt: --free needs a corpus" in errors
    assert "a.rst: cannot infer the format from the extension '.rst'; use --format" in errors
    assert "empty: the folder has no files" in errors
    assert errors.endswith("3 files, 3 failed, 0 skipped, 0 warnings\n") and not Path("out").exists()


def test_what_stops_the_command_leaves_nothing_behind(capfd, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic_file.os, "replace", interrupt)
    assert run("a.txt --model model --output out") == 130
    assert "gtransformer translate: interrupted\n" in capfd.readouterr().err and not any(Path("out").iterdir())


def test_warnings_name_file_and_record(checkpoint, capfd):
    """The model was surer on the texts of its training."""
    config = Path(checkpoint, "processor_config.json")
    config.write_text(json.dumps({**json.loads(config.read_text()), "typical_confidence": 9.0}))
    Path("a.txt").write_text("it is\n\nthe cat\n")
    write_json_lines("b.jsonl", [{"source": "it is"}, {"source": ["it is", "", "the cat"]}])
    assert run("a.txt b.jsonl --model model --output out") == 0
    errors = capfd.readouterr().err
    assert "warning: a.txt: the translation is doubtful" in errors
    assert "warning: b.jsonl:2 (source): the translation is doubtful" in errors
    assert errors.endswith("2 files, 0 failed, 0 skipped, 3 warnings\n")
    assert run("a.txt --model model --output out --overwrite --fail_on_warning") == 1


def test_what_cannot_be_used_stops_the_command(capfd):
    assert run("a.txt --model any --glossary terms.tsv") == 2
    assert "The glossary terms.tsv cannot be used: terms.tsv: No such" in capfd.readouterr().err
    assert run("a.txt --model /none/model") == 2
    assert "The model /none/model is a folder that does not exist." in capfd.readouterr().err


def test_warnings_of_loading_a_plain_translator_count(sentence_level_checkpoint, capfd):
    Path("a.txt").write_text("the cat sleeps\n\nit is old\n")
    model = sentence_level_checkpoint("m2m_100-nllb")
    assert run(f"a.txt --model {model} --src_lang eng_Latn --tgt_lang deu_Latn --fail_on_warning") == 1
    output, errors = capfd.readouterr()
    assert output.endswith("die katze schläft\n\nsie ist alt\n")
    assert "gtransformer translate: warning: " in errors and errors.endswith("0 skipped, 1 warning\n")


def test_only_warnings_of_the_package_count_while_files_are_translated(capsys):
    report, logger = Report(), logging.getLogger("modeling_gtransformer.some.module")
    with report.counting_warnings():
        logger.warning("a.txt, sentence 3: odd")
        logger.info("not this")
        logging.getLogger("other").warning("nor this")
    logger.warning("nor this")
    assert report.warnings == 1
    assert "gtransformer translate: warning: a.txt, sentence 3: odd\n" in capsys.readouterr().err


def test_files_with_markup():
    Path("a.md").write_text("# the *cat*\n\n- it is {name}\n")
    Path("a.docx").write_bytes(word_document("<w:p><w:r><w:t>the cat</w:t></w:r></w:p>"))
    Path("terms.tsv").write_text("cat\tkatze\n")
    assert run("a.md a.docx --model model --glossary terms.tsv --output out") == 0
    text = Path("out/a.md").read_text()
    assert "katze" in text.replace("*", "") and text.count("\n") == 3 and text.startswith("# ")
    assert "katze" in unpacked(Path("out/a.docx").read_bytes())["word/document.xml"]


def test_a_format_that_is_given(capfd):
    Path("a.rst").write_text("the\ncat\n")
    assert run("a.rst --model model --format wrapped --output_format jsonl") == 0
    assert json.loads(capfd.readouterr().out)["source_text"] == "the cat"


def test_json_lines(capfdbinary):
    records = [{"id": 1, "en": ["the cat", "", "it is"]}, {"id": 2, "en": "the cat\n\nit is\n"}]
    write_json_lines("a.jsonl", records)
    options = "a.jsonl --model model --source_column en --confidence"
    assert run(f"{options} --output out") == run(options) == 0
    assert capfdbinary.readouterr().out.endswith(Path("out/a.jsonl").read_bytes())
    by_list, by_text = read_json_lines("out/a.jsonl")
    assert by_list["segments"] == [2]
    assert by_list["id"] == 1 and by_list["en"] == records[0]["en"]
    first, blank, last = by_list["translation"]
    assert blank == "" and by_text["translation"] == f"{first}\n\n{last}\n"
    assert by_list["confidence"][1] is None and len(by_text["confidence"]) == 2


def test_a_line_of_a_pipe_that_fails_is_named_and_left_out(capfdbinary, monkeypatch):
    translate_all = DocumentTranslationPipeline.translate_all

    def fail(self, documents, **options):
        if any(document.document == "it is" for document in documents):
            raise RuntimeError("no luck")
        return translate_all(self, documents, **options)

    monkeypatch.setattr(DocumentTranslationPipeline, "translate_all", fail)
    lines = ['\ufeff{"id": 1, "source": "the cat"}', "", '{"source": 5}', '{"source": "it is"}']
    lines += ['{"source": "a", "x": 1, "x": 2}', '{"source": "a", "segments": 1}', '{"id": 2, "source": []}']
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\r\n".join(lines).encode())))
    assert run("--format jsonl --model model") == 1
    output = capfdbinary.readouterr()
    assert [json.loads(line)["id"] for line in output.out.splitlines()] == [1, 2]
    for words in (
        "line 3: the column 'source' must hold a text or a list of sentences, not int",
        "line 4: RuntimeError: no luck",
        "line 5: the field 'x' appears twice in an object",
        "line 6: the document already has a field 'segments': --overwrite replaces it",
        "1 file, 1 failed",
    ):
        assert words in output.err.decode()


def test_records_of_a_pipe_come_out_as_they_are_done(monkeypatch):
    """Whoever writes them may wait for each."""
    written = io.BytesIO()
    output = io.BufferedWriter(written)

    def lines():
        for number in range(3):
            yield b'{"source": "the cat"}\n'
            assert written.getvalue().count(b"\n") == number + 1

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=lines()))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=output))
    assert run("--format jsonl --model model") == 0


@pytest.mark.parametrize("kind, write", [("jsonl", to_jsonl), ("tsv", to_tsv), ("tmx", to_tmx)])
def test_aligned_pairs(expected, kind, write):
    Path("a.txt").write_bytes(TEXT.encode())
    assert run(f"a.txt --model model --splitter sentencex --confidence --output out --output_format {kind}") == 0
    assert "confidence" in expected["sentences"][0]
    assert Path(f"out/a.{kind}").read_bytes().decode() == write(expected["sentences"], "en_XX", "de_DE")


def test_files_in_two_languages(capfd):
    Path("b.md").write_text("the cat\n")
    Path("c.jsonl").write_text('{"source": "the cat"}\n')
    assert run("a.txt b.md c.jsonl --model model --bilingual --output out") == 1
    assert Path("out/a.txt").read_text().startswith("the cat\n→ ")
    errors = capfd.readouterr().err
    for name, format in (("b.md", "markdown"), ("c.jsonl", "documents")):
        assert f"{name}: the format '{format}' cannot hold source and translation in parallel" in errors
    assert run("a.txt --model model --bilingual --output out --output_format tmx") == 2
    assert "--bilingual needs --output_format same" in capfd.readouterr().err


def test_a_report_on_consistency(capfd, monkeypatch):
    """Of files and of JSON lines; it replaces nothing without --overwrite."""
    Path("a.txt").write_text("the cat\nit is\n")
    write_json_lines("b.jsonl", [{"source": "the cat"}])
    translate = DocumentTranslationPipeline.postprocess
    monkeypatch.setattr(
        DocumentTranslationPipeline, "postprocess", lambda *outputs, **shown: unlike(translate(*outputs, **shown))
    )
    options = "a.txt b.jsonl --model model --output out --consistency_report reports/c.tsv"
    assert run(options) == 0
    header, *rows = Path("reports/c.tsv").read_text().splitlines()
    assert header == "source_text\ttranslation_text\tkind\ttimes\tplaces" and len(rows) == 2
    assert [row.split("\t")[::4] for row in rows] == [
        ["the cat", "a.txt, sentence 1"], ["the cat", "b.jsonl:1, sentence 1"],
    ]  # fmt: skip
    capfd.readouterr()
    assert run(options) == 2
    assert "--consistency_report reports/c.tsv exists: use --overwrite" in capfd.readouterr().err
    Path("b2.jsonl.partial").mkdir()
    assert run("b.jsonl --model model --output b2.jsonl --consistency_report b2.tsv") == 0
    assert "lacks the chunks of the interrupted translation" in capfd.readouterr().err
    assert run("a.txt --model model --output . --output_format tsv --consistency_report c.tsv") == 0
    assert Path("a.tsv").read_text().splitlines()[0] == "source_text\ttranslation_text"


def test_a_report_on_words():
    """By the attention of the model that comes with the package."""
    Path("a.txt").write_text("How many people?\nFour people.\nFor five people, please.\n")
    assert run("a.txt --output . --overwrite --consistency_report c.tsv") == 1
    assert not Path("c.tsv").exists()  # nothing was translated
    assert run("a.txt --output out --consistency_report c.tsv") == 0
    translations = Path("out/a.txt").read_text().splitlines()
    rows = [row.split("\t") for row in Path("c.tsv").read_text().splitlines()[1:]]
    assert {row[0] for row in rows} == {"people"} and sum(int(row[3]) for row in rows) == len(translations)
    for _, word, kind, times, places in rows:
        found = [f"a.txt, sentence {n}" for n, line in enumerate(translations, 1) if word in line]
        assert (kind, int(times), places) == ("word", len(found), "; ".join(found))


def test_a_missing_library_is_told_before_the_model_is_loaded(capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "stop_words", None)
    assert run("a.txt --model nowhere --consistency_report c.tsv") == 2
    assert "Comparing words needs stop_words: pip install 'gtransformer-hf[files]'" in capfd.readouterr().err


def unlike(output):
    """What the pipeline gives, with translations that say how many sentences there are."""
    for pair in output["sentences"]:
        pair["translation_text"] += f" of {len(output['sentences'])}"
    return output
