"""Inputs and results of the command: what is wrong with them is said before anything is loaded."""

import os
from pathlib import Path

import pytest

from modeling_gtransformer.cli.jobs import plan
from modeling_gtransformer.cli.report import Report
from modeling_gtransformer.cli.translate_options import TranslateOptions
from modeling_gtransformer.runtime.usage_error import UsageError


def planned(*files, **options):
    """The jobs, and the report."""
    report = Report()
    return plan(TranslateOptions(files=[*map(str, files)] or None, **options), report), report


def write(folder, *names, text="the cat"):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return [folder / name for name in names]


@pytest.mark.parametrize(
    "names, options, message",
    [
        (["a.txt", "b.txt"], {}, "Several files need --output"),
        (["a.md", "a.srt"], {"output": "out", "output_format": "tsv"}, "several files would become out/a.tsv"),
        (["a.txt"], {"output": __file__}, "is not a folder"),
        (["a.docx"], {"output": "b.md"}, r"--output b.md: pass a folder, or .* \*.docx."),
        (["a.jsonl"], {"output": "b.parquet"}, r"--output b.parquet: pass a folder, or .* \*.jsonl."),
        (["a.txt"], {"output": "b.jsonl"}, r"--output b.jsonl: .* for a single result \*.txt."),
        (["a.jsonl", "b.jsonl"], {"output": "c.jsonl"}, "--output c.jsonl: pass a folder"),
        (["a.txt", "a.txt"], {"output": "/proc/none"}, "--output /proc/none: "),
        (["a.txt"], {"output": "out", "consistency_report": Path("/proc/none/c.tsv")}, "--consistency_report /proc/"),
    ],
)
def test_results_have_a_place(names, options, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        planned(*write(tmp_path, *names), **options)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"output": "-"}, "omit it for standard output"),
        ({"skip_existing": True}, "skip_existing needs --output"),
        ({"skip_existing": True, "output": "out", "overwrite": True}, "excludes --overwrite"),
        ({"bilingual": True, "output_format": "tmx"}, "bilingual needs --output_format same"),
        ({"free": True, "confidence": True}, "free excludes confidence"),
        ({"free": True, "consistency_report": "c.tsv"}, "consistency_report needs aligned sentences"),
        ({"engine": "ray"}, "engine ray needs one input"),
        ({"engine": "ray", "files": ["a"], "output": "b", "format": "html"}, "engine ray translates corpora"),
        ({"engine": "ray", "files": ["a"], "output": "b", "skip_existing": True}, "engine ray excludes"),
        ({"model": ""}, "model is empty"),
        ({"encoding": "nonsense"}, "Unknown encoding nonsense"),
        ({"actors": 0}, "actors must be at least 1, not 0"),
        ({"chunk_documents": 0}, "chunk_documents must be at least 1, not 0"),
    ],
)
def test_options_that_contradict_each_other(options, message):
    with pytest.raises(ValueError, match=message):
        TranslateOptions(**options)


def test_a_single_result_may_be_named(tmp_path):
    targets = {
        ("a.txt", "b.txt"): "b.txt",
        ("a.txt", "out"): "out/a.txt",
        ("a.jsonl", "b.jsonl.xz"): "b.jsonl.xz",
        ("a.jsonl.gz", "out/"): "out/a.jsonl.gz",
        ("a.ndjson", "b.jsonl"): "b.jsonl",
        ("a.parquet", "b.parquet"): "b.parquet",
    }
    for (name, output), expected in targets.items():
        [[job], _] = planned(*write(tmp_path, name), output=f"{tmp_path}/{output}")
        assert job.target == tmp_path / expected


def test_inputs_of_the_same_name_keep_their_folders(tmp_path):
    jobs, _ = planned(*write(tmp_path, "x/a.md", "x/y/a.md", "b.md"), output=str(tmp_path / "out"))
    assert [str(job.target.relative_to(tmp_path / "out")) for job in jobs] == ["x/a.md", "x/y/a.md", "b.md"]


def test_a_folder_stands_for_the_corpora_in_it_and_a_dataset_for_itself(tmp_path):
    write(tmp_path, "corpus/b.parquet", "corpus/a.jsonl", "corpus/readme.md", "dataset/state.json")
    jobs, report = planned(tmp_path / "corpus", tmp_path / "dataset", output=str(tmp_path / "out"))
    assert [(job.target.name, job.format) for job in jobs] == [
        ("a.jsonl", "documents"), ("b.parquet", "documents"), ("dataset", "documents"),
    ]  # fmt: skip
    assert report.files == 3
    (tmp_path / "corpus" / ".unfinished").touch()
    with pytest.raises(UsageError, match="is unfinished: run its command again"):
        planned(tmp_path / "corpus", output=str(tmp_path / "out"))


def test_results_go_nowhere_near_the_inputs(tmp_path):
    """Not onto an input, not through a second name of it, and not onto a folder."""
    files = write(tmp_path, "a.md", "sub.md")
    os.link(tmp_path / "a.md", tmp_path / "a.jsonl")
    (tmp_path / "sub.jsonl").mkdir()
    for format in ("same", "jsonl"):
        jobs, report = planned(*files, output=str(tmp_path), output_format=format, overwrite=True)
        assert jobs == [] and report.failed == {*map(str, files)}


@pytest.mark.parametrize("name", ["a.txt", "link.tsv", "out/a.txt", "out/../out/a.txt"])
def test_a_report_takes_the_place_of_no_text(tmp_path, name):
    [file] = write(tmp_path, "a.txt")
    os.link(file, tmp_path / "link.tsv")
    (tmp_path / "out").mkdir()
    options = {"output": str(tmp_path / "out"), "overwrite": True}
    with pytest.raises(UsageError, match="is also an input or a result"):
        planned(file, consistency_report=tmp_path / name, **options)
    assert planned(file, consistency_report=tmp_path / "report.tsv", **options)[0]


def test_formats_of_files(tmp_path):
    files = write(tmp_path, "a.MD", "b.JSONL", "c.txt")
    out = {"output": str(tmp_path / "out")}
    assert [job.format for job in planned(*files, **out)[0]] == ["markdown", "documents", "text"]
    jobs, report = planned(files[1], output_format="tsv")
    assert jobs == [] and report.failed == {str(files[1])}
    assert planned("-", format="documents")[1].failed == {"-"}
    # Scores have a place beside pairs of sentences, and in records.
    for options, done in (({}, [files[1]]), ({"output_format": "tsv"}, [files[0], files[2]])):
        assert [job.file for job in planned(*files, **out, confidence=True, **options)[0]] == [*map(str, done)]
    assert planned(files[2], format="jsonl")[1].failed == {str(files[2])}
    [[job], _] = planned(files[2], format="documents", **out)
    assert job.target.name == "c.jsonl"


@pytest.mark.parametrize("format, name", [(None, "stdin.txt"), ("po", "stdin.po"), ("jsonl", "stdin.jsonl")])
def test_what_is_piped_in_gets_the_name_of_its_format(tmp_path, format, name):
    [[job], _] = planned(output=str(tmp_path), format=format)
    assert job.target.name == name
