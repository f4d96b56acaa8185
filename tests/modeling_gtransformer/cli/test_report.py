"""What a run says of failures and warnings, and its summary."""

import logging

import pytest

from modeling_gtransformer.cli.report import Report


@pytest.fixture
def report():
    return Report()


def test_places_are_named_once(report, capsys):
    report.fail("a.txt", FileNotFoundError(2, "No such file or directory", "a.txt"))
    report.fail("b.jsonl", ValueError("broken"), line=7)
    report.skip("c.txt", "out/c.txt exists")
    assert capsys.readouterr().err.splitlines() == [
        "gtransformer translate: a.txt: No such file or directory",
        "gtransformer translate: b.jsonl, line 7: broken",
        "gtransformer translate: c.txt: skipped, out/c.txt exists",
    ]


def test_warnings_of_the_package_count_while_files_are_translated(report, capsys):
    logger = logging.getLogger("modeling_gtransformer.some.module")
    with report.counting_warnings():
        logger.warning("a.txt, sentence 3: odd")
        logger.info("not this")
        logging.getLogger("other").warning("nor this")
    logger.warning("nor this")
    assert (
        report.warnings == 1 and "gtransformer translate: warning: a.txt, sentence 3: odd\n" in capsys.readouterr().err
    )


@pytest.mark.parametrize("failed, warnings, strict, status", [(0, 0, True, 0), (0, 1, False, 0), (0, 1, True, 1)])
def test_summary_and_status(report, capsys, failed, warnings, strict, status):
    report.files, report.warnings = 3, warnings
    assert report.summarize(strict) == status
    plural = "" if warnings == 1 else "s"
    assert (
        capsys.readouterr().err
        == f"gtransformer translate: 3 files, 0 failed, 0 skipped, {warnings} warning{plural}\n"
    )


def test_a_file_fails_once_however_many_records_do(report, capsys):
    report.files = 1
    for line in (1, 2):
        report.fail("a.jsonl", ValueError("broken"), line)
    assert report.summarize(False) == 1
    assert capsys.readouterr().err.endswith("gtransformer translate: 1 file, 1 failed, 0 skipped, 0 warnings\n")
