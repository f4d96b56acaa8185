"""`gtransformer translate`: files and pipes in, the same out, and an exit status that can be relied on."""

import errno
import io
import json
import logging
import shutil
import sys
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


@pytest.fixture
def expected(checkpoint):
    return pipeline("document-translation", model=checkpoint)(TEXT, splitter="sentencex", confidence=True)


def run(*arguments):
    return main(["translate", *map(str, arguments)])


@pytest.mark.parametrize("piped", [False, True])
def test_a_text_on_standard_output(checkpoint, expected, tmp_path, capfdbinary, monkeypatch, piped):
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    files = [] if piped else [tmp_path / "a.txt"]
    assert run(*files, "--model", checkpoint, "--splitter", "sentencex", "--tgt_lang", "de_DE") == 0
    assert capfdbinary.readouterr().out == expected["translation_text"].encode()
    assert expected["translation_text"].startswith("\ufeff") and expected["translation_text"].endswith("\r\n---")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "auto"])
def test_a_text_in_another_encoding(checkpoint, tmp_path, encoding):
    text = "the old cat: Größe, déjà vu, naïve façade\n" * 3
    (tmp_path / "a.txt").write_bytes(text.encode("cp1252" if encoding == "auto" else encoding))
    options = ["--model", checkpoint, "--encoding", encoding]
    assert run(tmp_path / "a.txt", *options, "--output", tmp_path / "b.txt") == 0
    result = (tmp_path / "b.txt").read_bytes()
    assert result.decode("cp1252" if encoding == "auto" else encoding).count("\n") == 3
    (tmp_path / "a.html").write_text("<p>the cat</p>")
    assert run(tmp_path / "a.html", *options) == 1  # it names its encoding itself


def test_what_fails_is_named_and_the_rest_is_done(checkpoint, tmp_path, capfd):
    (tmp_path / "good.txt").write_text("the cat")
    (tmp_path / "bad.txt").write_bytes(b"the \xff cat")
    (tmp_path / "bad.jsonl").write_text('{"source": 1}\n{"text": 1}\n{"source": "the cat"}\n')
    (tmp_path / "bad.docx").write_text("no archive")
    files = [tmp_path / name for name in ("bad.txt", "none.txt", "bad.jsonl", "bad.docx", "good.txt")]
    assert run(*files, "--model", checkpoint, "--output", tmp_path / "out") == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good.txt"]
    errors = capfd.readouterr().err
    assert "bad.txt: not UTF-8, invalid start byte at byte 5" in errors and "bad.docx: " in errors
    assert f"gtransformer translate: {tmp_path}/none.txt: No such file or directory\n" in errors
    assert "bad.jsonl:1: the column 'source' must hold a text or a list of sentences, not int" in errors
    assert "bad.jsonl:2: no document in the column 'source'" in errors
    assert errors.endswith("gtransformer translate: 5 files, 4 failed, 0 skipped, 0 warnings\n")


def test_a_parser_may_break_anywhere(checkpoint, tmp_path, capfd, monkeypatch):
    def broken(*_):
        raise NotImplementedError("that method")

    monkeypatch.setitem(FILE_FORMATS, "html", FileFormat((".html",), broken))
    (tmp_path / "a.html").write_text("<p>the cat</p>")
    (tmp_path / "b.txt").write_text("the cat")
    arguments = ["--model", checkpoint, "--output", tmp_path / "out"]
    assert run(tmp_path / "a.html", tmp_path / "b.txt", *arguments) == 1
    assert (tmp_path / "out" / "b.txt").exists()
    assert "a.html: NotImplementedError: that method" in capfd.readouterr().err


def test_a_batch_goes_on_where_it_stopped(checkpoint, tmp_path, capfd):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("the cat")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("mine")
    arguments = [tmp_path / "a.txt", tmp_path / "b.txt", "--model", checkpoint, "--output", tmp_path / "out"]
    assert run(*arguments, "--skip_existing") == 0
    assert (tmp_path / "out" / "a.txt").read_text() == "mine"
    done = (tmp_path / "out" / "b.txt").read_text()
    errors = capfd.readouterr().err
    assert "2 files, 0 failed, 1 skipped, 0 warnings" in errors
    assert f"gtransformer translate: {tmp_path}/a.txt: skipped, {tmp_path}/out/a.txt exists\n" in errors
    assert run(*arguments[:4], "--skip_existing", "--output", tmp_path) == 1
    assert f"would overwrite {tmp_path}/a.txt" in capfd.readouterr().err
    assert run(*arguments) == 1
    assert (tmp_path / "out" / "a.txt").read_text() == "mine"
    assert "out/a.txt exists: use --overwrite, or --skip_existing" in capfd.readouterr().err
    assert run(*arguments, "--overwrite") == 0
    assert (tmp_path / "out" / "a.txt").read_text() == done


def test_files_are_checked_before_the_model_is_loaded(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(TranslateOptions, "translator", None)
    (tmp_path / "a.rst").write_text("the cat")
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("the cat")
    files = [tmp_path / "a.rst", tmp_path / "none.txt", tmp_path / "empty"]
    assert run(tmp_path / "a.txt", "--model", "any", "--free") == 1
    assert run(*files, "--model", "any", "--output", tmp_path / "out") == 1
    errors = capfd.readouterr().err
    assert f"{tmp_path}/a.txt: --free needs a corpus" in errors
    assert "a.rst: cannot infer the format from the extension '.rst'; use --format" in errors
    assert f"{tmp_path}/empty: the folder has no files" in errors
    assert errors.endswith("3 files, 3 failed, 0 skipped, 0 warnings\n") and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "error, status, message",
    [
        (OSError(errno.ENOSPC, "No space left on device"), 1, "a.txt: No space left on device\n"),
        (KeyboardInterrupt(), 130, "gtransformer translate: interrupted\n"),
    ],
)
def test_what_stops_the_command_leaves_nothing_behind(
    checkpoint, tmp_path, capfd, monkeypatch, error, status, message
):
    def fail(*_):
        raise error

    (tmp_path / "a.txt").write_text("the cat")
    monkeypatch.setattr(atomic_file.os, "replace", fail)
    assert run(tmp_path / "a.txt", "--model", checkpoint, "--output", tmp_path / "out") == status
    assert message in capfd.readouterr().err and not any((tmp_path / "out").iterdir())


def test_warnings_name_file_and_record(checkpoint, tmp_path, capfd):
    """The model was surer on the texts of its training."""
    folder = shutil.copytree(checkpoint, tmp_path / "unsure")
    config = json.loads((folder / "processor_config.json").read_text())
    (folder / "processor_config.json").write_text(json.dumps({**config, "typical_confidence": 9.0}))
    (tmp_path / "a.txt").write_text("it is\n\nthe cat\n")
    write_json_lines(tmp_path / "b.jsonl", [{"source": "it is"}, {"source": ["it is", "", "the cat"]}])
    arguments = ["--model", folder, "--output", tmp_path / "out"]
    assert run(tmp_path / "a.txt", tmp_path / "b.jsonl", *arguments) == 0
    errors = capfd.readouterr().err
    assert f"warning: {tmp_path}/a.txt: the translation is doubtful" in errors
    assert f"warning: {tmp_path}/b.jsonl:2 (source): the translation is doubtful" in errors
    assert errors.endswith("2 files, 0 failed, 0 skipped, 3 warnings\n")
    assert run(tmp_path / "a.txt", *arguments, "--overwrite", "--fail_on_warning") == 1


def test_what_cannot_be_used_stops_the_command(tmp_path, capfd):
    (tmp_path / "a.txt").write_text("the cat")
    assert run(tmp_path / "a.txt", "--model", "any", "--glossary", tmp_path / "terms.tsv") == 2
    assert f"The glossary {tmp_path}/terms.tsv cannot be used: {tmp_path}/terms.tsv: No such" in capfd.readouterr().err
    assert run(tmp_path / "a.txt", "--model", "/none/model") == 2
    assert "The model /none/model is a folder that does not exist." in capfd.readouterr().err


def test_warnings_of_loading_a_plain_translator_count(sentence_level_checkpoint, tmp_path, capfd):
    (tmp_path / "a.txt").write_text("the cat sleeps\n\nit is old\n")
    model, languages = sentence_level_checkpoint("m2m_100-nllb"), ["--src_lang", "eng_Latn", "--tgt_lang", "deu_Latn"]
    assert run(tmp_path / "a.txt", "--model", model, *languages, "--fail_on_warning") == 1
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


FILES = {
    "a.md": "# the *cat*\n\n- it is {name}\n",
    "a.html": "<p>the <b>cat</b></p>\n",
    "a.srt": "1\n00:00:01,000 --> 00:00:02,000\nthe cat\n",
    "a.po": 'msgid ""\nmsgstr ""\n"Language: de\\n"\n\nmsgid "the cat"\nmsgstr ""\n',
    "a.docx": word_document("<w:p><w:r><w:t>the cat</w:t></w:r></w:p>"),
}


@pytest.mark.parametrize("name", FILES)
def test_files(checkpoint, tmp_path, name):
    content = FILES[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "terms.tsv").write_text("cat\tkatze\n")
    arguments = ["--glossary", tmp_path / "terms.tsv", "--output", tmp_path / "out"]
    assert run(tmp_path / name, "--model", checkpoint, *arguments) == 0
    result = tmp_path / "out" / name
    if isinstance(content, bytes):
        assert "katze" in unpacked(result.read_bytes())["word/document.xml"]
    else:
        text = result.read_text()
        assert "katze" in text.replace("*", "").replace("<b>", "").replace("</b>", "")
        assert text.count("\n") == content.count("\n") and text.startswith(content[:2])


def test_a_format_that_is_given(checkpoint, tmp_path, capfd):
    (tmp_path / "a.rst").write_text("the\ncat\n")
    arguments = ["--format", "wrapped", "--output_format", "jsonl"]
    assert run(tmp_path / "a.rst", "--model", checkpoint, *arguments) == 0
    assert json.loads(capfd.readouterr().out)["source_text"] == "the cat"


def test_json_lines(checkpoint, tmp_path, capfdbinary):
    records = [{"id": 1, "en": ["the cat", "", "it is"]}, {"id": 2, "en": "the cat\n\nit is\n"}]
    write_json_lines(tmp_path / "a.jsonl", records)
    arguments = [tmp_path / "a.jsonl", "--model", checkpoint, "--source_column", "en", "--confidence"]
    assert run(*arguments, "--output", tmp_path / "out") == run(*arguments) == 0
    assert capfdbinary.readouterr().out.endswith((tmp_path / "out" / "a.jsonl").read_bytes())
    by_list, by_text = read_json_lines(tmp_path / "out" / "a.jsonl")
    assert by_list["segments"] == [2]
    assert by_list["id"] == 1 and by_list["en"] == records[0]["en"]
    first, blank, last = by_list["translation"]
    assert blank == "" and by_text["translation"] == f"{first}\n\n{last}\n"
    assert by_list["confidence"][1] is None and len(by_text["confidence"]) == 2


def test_a_line_of_a_pipe_that_fails_is_named_and_left_out(checkpoint, capfdbinary, monkeypatch):
    translate_all = DocumentTranslationPipeline.translate_all

    def fail(self, documents, **options):
        if any(document.document == "it is" for document in documents):
            raise RuntimeError("no luck")
        return translate_all(self, documents, **options)

    monkeypatch.setattr(DocumentTranslationPipeline, "translate_all", fail)
    lines = ['\ufeff{"id": 1, "source": "the cat"}', "", '{"source": 5}', '{"source": "it is"}']
    lines += ['{"source": "a", "x": 1, "x": 2}', '{"source": "a", "segments": 1}', '{"id": 2, "source": []}']
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\r\n".join(lines).encode())))
    assert run("--format", "jsonl", "--model", checkpoint) == 1
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


def test_records_of_a_pipe_come_out_as_they_are_done(checkpoint, monkeypatch):
    """Whoever writes them may wait for each."""
    written = io.BytesIO()
    output = io.BufferedWriter(written)

    def lines():
        for number in range(3):
            yield b'{"source": "the cat"}\n'
            assert written.getvalue().count(b"\n") == number + 1

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=lines()))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=output))
    assert run("--model", checkpoint, "--format", "jsonl") == 0


@pytest.mark.parametrize("kind, write", [("jsonl", to_jsonl), ("tsv", to_tsv), ("tmx", to_tmx)])
def test_aligned_pairs(checkpoint, expected, tmp_path, kind, write):
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    arguments = ["--splitter", "sentencex", "--confidence", "--output", tmp_path / "out", "--output_format", kind]
    assert run(tmp_path / "a.txt", "--model", checkpoint, *arguments) == 0
    assert "confidence" in expected["sentences"][0]
    assert (tmp_path / "out" / f"a.{kind}").read_bytes().decode() == write(expected["sentences"], "en_XX", "de_DE")


def test_files_in_two_languages(checkpoint, tmp_path, capfd):
    (tmp_path / "a.txt").write_text("the cat\n")
    (tmp_path / "b.md").write_text("the cat\n")
    (tmp_path / "c.jsonl").write_text('{"source": "the cat"}\n')
    arguments = ["--model", checkpoint, "--bilingual", "--output", tmp_path / "out"]
    assert run(*(tmp_path / name for name in ("a.txt", "b.md", "c.jsonl")), *arguments) == 1
    assert (tmp_path / "out" / "a.txt").read_text().startswith("the cat\n→ ")
    errors = capfd.readouterr().err
    for name, format in (("b.md", "markdown"), ("c.jsonl", "documents")):
        assert f"{name}: the format '{format}' cannot hold source and translation in parallel" in errors
    assert run(tmp_path / "a.txt", *arguments, "--output_format", "tmx") == 2
    assert "--bilingual needs --output_format same" in capfd.readouterr().err


def test_a_report_on_consistency(checkpoint, tmp_path, capfd, monkeypatch):
    """Of files and of JSON lines; it replaces nothing without --overwrite."""
    (tmp_path / "a.txt").write_text("the cat\nit is\n")
    write_json_lines(tmp_path / "b.jsonl", [{"source": "the cat"}])
    translate = DocumentTranslationPipeline.postprocess
    monkeypatch.setattr(
        DocumentTranslationPipeline, "postprocess", lambda *outputs, **shown: unlike(translate(*outputs, **shown))
    )
    report = tmp_path / "reports" / "c.tsv"
    arguments = [tmp_path / "a.txt", tmp_path / "b.jsonl", "--model", checkpoint, "--output", tmp_path / "out"]
    arguments += ["--consistency_report", report]
    assert run(*arguments) == 0
    header, *rows = report.read_text().splitlines()
    assert header == "source_text\ttranslation_text\tkind\ttimes\tplaces" and len(rows) == 2
    assert [row.split("\t")[::4] for row in rows] == [
        ["the cat", f"{tmp_path}/a.txt, sentence 1"], ["the cat", f"{tmp_path}/b.jsonl:1, sentence 1"],
    ]  # fmt: skip
    capfd.readouterr()
    assert run(*arguments) == 2
    assert f"--consistency_report {report} exists: use --overwrite" in capfd.readouterr().err
    (tmp_path / "b2.jsonl.partial").mkdir()
    corpus = [tmp_path / "b.jsonl", "--model", checkpoint, "--output", tmp_path / "b2.jsonl"]
    assert run(*corpus, "--consistency_report", tmp_path / "b2.tsv") == 0
    assert "lacks the chunks of the interrupted translation" in capfd.readouterr().err
    aligned = [tmp_path / "a.txt", "--model", checkpoint, "--output", tmp_path, "--output_format", "tsv"]
    assert run(*aligned, "--consistency_report", tmp_path / "c.tsv") == 0
    assert (tmp_path / "a.tsv").read_text().splitlines()[0] == "source_text\ttranslation_text"


def test_a_report_on_words(tmp_path):
    """By the attention of the model that comes with the package."""
    (tmp_path / "a.txt").write_text("How many people?\nFour people.\nFor five people, please.\n")
    assert (
        run(tmp_path / "a.txt", "--output", tmp_path, "--overwrite", "--consistency_report", tmp_path / "c.tsv") == 1
    )
    assert not (tmp_path / "c.tsv").exists()  # nothing was translated
    arguments = ["--output", tmp_path / "out", "--consistency_report", tmp_path / "c.tsv"]
    assert run(tmp_path / "a.txt", *arguments) == 0
    translations = (tmp_path / "out" / "a.txt").read_text().splitlines()
    rows = [row.split("\t") for row in (tmp_path / "c.tsv").read_text().splitlines()[1:]]
    assert {row[0] for row in rows} == {"people"} and sum(int(row[3]) for row in rows) == len(translations)
    for _, word, kind, times, places in rows:
        found = [f"{tmp_path}/a.txt, sentence {n}" for n, line in enumerate(translations, 1) if word in line]
        assert (kind, int(times), places) == ("word", len(found), "; ".join(found))


def test_a_missing_library_is_told_before_the_model_is_loaded(tmp_path, capfd, monkeypatch):
    (tmp_path / "a.txt").write_text("the cat\n")
    monkeypatch.setitem(sys.modules, "stop_words", None)
    assert run(tmp_path / "a.txt", "--model", "nowhere", "--consistency_report", tmp_path / "c.tsv") == 2
    assert "Comparing words needs stop_words: pip install 'gtransformer-hf[files]'" in capfd.readouterr().err


def unlike(output):
    """What the pipeline gives, with translations that say how many sentences there are."""
    for pair in output["sentences"]:
        pair["translation_text"] += f" of {len(output['sentences'])}"
    return output
