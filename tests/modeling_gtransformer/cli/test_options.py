"""Options of the command: what is wrong with them is said before anything is loaded."""

import inspect
import os
from pathlib import Path

import pytest

from modeling_gtransformer.cli.options import parse_arguments, plan
from modeling_gtransformer.cli.report import Report
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.generation_gtransformer import SENTENCE_LIMITS


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["a.txt", "b.txt", "--model", "m"], "several files need --output"),
        (["a.txt", "--model", "m", "--splitter", "nltk"], "invalid choice"),
        (["a/x.md", "b/x.md", "--model", "m", "--output", "out"], "several files would become out/x.md"),
        (["a.md", "a.srt", "--model", "m", "--output", "out", "--output_format", "tsv"], "would become out/a.tsv"),
        (["a.txt", "--model", "m", "--num_beams", "0"], "--num_beams must be between 1 and 100, not 0"),
        (["a.txt", "--model", "m", "--num_beams", "100000"], "--num_beams must be between 1 and 100, not 100000"),
        (["a.txt", "--model", "m", "--segment_tokens", "-5"], "--segment_tokens must be at least 1, not -5"),
        (["a.txt", "--model", "m", "--max_tokens", "-1"], "--max_tokens must be at least 1, not -1"),
        (["a.txt", "--model", "m", "--segment_sentences", "0"], "--segment_sentences must be at least 1, not 0"),
        (["a.txt", "--model", "m", "--carried_sentences", "-1"], "--carried_sentences must be at least 0, not -1"),
        (["a.txt", "--model", "m", "--skip_existing"], "--skip_existing needs --output"),
        (["a.txt", "--model", "m", "--skip_existing", "--overwrite"], "not allowed with argument"),
        (["a.txt", "--model", "m", "--output", __file__], "is not a folder"),
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
    known |= {"format", "glossary", "mark_fuzzy", "bilingual"}
    own = {"files", "model", "src_lang", "tgt_lang", "output", "output_format", "source_column"}
    own |= {"overwrite", "skip_existing", "fail_on_warning", "precision", "consistency_report"}
    assert options - own <= known


def test_results_go_nowhere_near_the_inputs(tmp_path):
    """Not through a second name of an input, and not onto a folder."""
    for name in ("a.md", "sub.md"):
        (tmp_path / name).write_text("the cat")
    os.link(tmp_path / "a.md", tmp_path / "a.jsonl")
    (tmp_path / "sub.jsonl").mkdir()
    files = [str(tmp_path / name) for name in ("a.md", "sub.md")]
    options = ["--model", "m", "--output", str(tmp_path), "--output_format", "jsonl", "--overwrite"]
    report = Report("program")
    assert plan(parse_arguments([*files, *options]), report) == [] and report.failed == set(files)


@pytest.mark.parametrize("name", ["a.txt", "link.tsv", "out/a.txt", "out/../out/a.txt"])
def test_a_report_takes_the_place_of_no_text(tmp_path, capsys, name):
    (tmp_path / "a.txt").write_text("the cat")
    os.link(tmp_path / "a.txt", tmp_path / "link.tsv")
    (tmp_path / "out").mkdir()
    options = ["--model", "m", "--output", str(tmp_path / "out"), "--overwrite", "--consistency_report"]
    with pytest.raises(SystemExit) as exit:
        parse_arguments([str(tmp_path / "a.txt"), *options, str(tmp_path / name)])
    assert exit.value.code == 2 and "is also an input or a result" in capsys.readouterr().err
    assert parse_arguments([str(tmp_path / "a.txt"), *options, str(tmp_path / "report.tsv")])


def test_results_that_lack_records_are_not_done(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    for name in ("all.jsonl", "some.jsonl"):
        (tmp_path / name).write_text('{"source": "a"}\n\n{"source": "b"}\n')
        (tmp_path / "out" / name).write_text('{"source": "a", "translation": "A"}\n' * (2 if name[0] == "a" else 1))
    files = [str(tmp_path / name) for name in ("all.jsonl", "some.jsonl")]
    report = Report("program")
    options = ["--model", "m", "--output", str(tmp_path / "out"), "--skip_existing"]
    assert plan(parse_arguments([*files, *options]), report) == []
    assert report.skipped == 1 and report.failed == {files[1]}
    assert "some.jsonl has 1 of 2 records: fix those that failed, and use --overwrite" in capsys.readouterr().err


def test_formats_of_files(tmp_path):
    files = [str(tmp_path / name) for name in ("a.MD", "b.JSONL", "c.txt")]
    for file in files:
        Path(file).write_text("x")
    args = parse_arguments([*files, "--model", "m", "--output", str(tmp_path / "out")])
    assert [job.format for job in plan(args, Report("program"))] == ["markdown", "jsonl", "text"]
    args = parse_arguments([files[1], "--model", "m", "--output_format", "tsv"])
    report = Report("program")
    assert plan(args, report) == [] and report.failed == {files[1]}
    # Scores have a place beside pairs of sentences, and in records.
    for options, done in (([], [files[1]]), (["--output_format", "tsv"], [files[0], files[2]])):
        args = parse_arguments([*files, "--output", str(tmp_path / "out"), "--confidence", *options])
        assert [job.file for job in plan(args, Report("program"))] == done


@pytest.mark.parametrize(
    "options, name", [([], "stdin.txt"), (["--format", "po"], "stdin.po"), (["--format", "jsonl"], "stdin.jsonl")]
)
def test_what_is_piped_in_gets_the_name_of_its_format(tmp_path, options, name):
    args = parse_arguments(["--output", str(tmp_path), *options])
    assert [job.target.name for job in plan(args, Report("program"))] == [name]
