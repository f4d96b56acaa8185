"""The command `gtransformer-translate`: files and pipes in, the same out."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from transformers.utils.logging import disable_progress_bar

from ..atomic_file import atomic_file, write_atomic
from ..files import FILE_FORMATS, Consistency, decode
from ..pipeline_gtransformer import DocumentTranslationPipeline, chunks
from .errors import run
from .json_lines import JsonLines
from .options import PROGRAM, STDIN, Job, parse_arguments, plan
from .report import Report
from .translator_options import translator_of


def main(argv: list[str] | None = None) -> int:
    """Runs the command, and returns its exit status."""
    return run(PROGRAM, lambda: translate_files(parse_arguments(argv)))


def translate_files(args: argparse.Namespace) -> int:
    """Translates the files that the arguments name, and returns the exit status."""
    if not sys.stderr.isatty():
        disable_progress_bar()
    report = Report(PROGRAM)
    jobs = plan(args, report)
    if jobs:
        translate = translator_of(
            args, confidence=args.confidence, progress=True, word_alignment=bool(args.consistency_report)
        ).pipeline
        if args.consistency_report:
            report.consistency = Consistency(translate.processor.src_lang, translate.processor.tgt_lang)
        with report.counting_warnings():
            for job in jobs:
                translate_file(job, args, translate, report)
        if report.consistency is not None:
            write_atomic(args.consistency_report, report.consistency.to_tsv())
    return report.summarize(len(args.files), args.fail_on_warning)


def translate_file(job: Job, args: argparse.Namespace, translate: DocumentTranslationPipeline, report: Report) -> None:
    """Translates a file, and reports if that fails."""
    try:
        with read_input(job.file) as source, write_output(job.target) as target:
            if job.format == "jsonl":
                translate_json_lines(job, source, target, args, translate, report)
            else:
                target.write(translate_document(job, source.read(), args.output_format, translate, report))
    except BrokenPipeError:
        raise
    except Exception as error:  # a broken file can make its parser fail anywhere
        report.fail(job.name, error)


@contextmanager
def read_input(file: str) -> Iterator[BinaryIO]:
    if file == STDIN:
        yield sys.stdin.buffer
    else:
        with Path(file).open("rb") as source:
            yield source


@contextmanager
def write_output(path: Path | None) -> Iterator[BinaryIO]:
    """Opens a file that appears as a whole or not at all, or standard output."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with atomic_file(path) as target:
            yield target


def translate_document(
    job: Job, content: bytes, output_format: str, translate: DocumentTranslationPipeline, report: Report
) -> bytes:
    """Returns the translated content of a file. Line ends stay as they are."""
    binary = job.format != "text" and FILE_FORMATS[job.format].binary
    translated = translate(content if binary else decode(content), format=job.format, name=job.name)
    report.note({job.name: translated["sentences"]}, translate)
    result = translated["translation_text"]
    if output_format != "same":
        result = translate.export_pairs(translated["sentences"], output_format)
    return result.encode("utf-8") if isinstance(result, str) else result


def translate_json_lines(
    job: Job,
    source: Iterable[bytes],
    target: BinaryIO,
    args: argparse.Namespace,
    translate: DocumentTranslationPipeline,
    report: Report,
) -> None:
    """
    Translates the records of a file, many at a time, or those of standard input, one by one. Records that fail are
    reported and left out.

    Raises:
        ValueError: none of them could be translated.
    """
    lines = JsonLines(job.name, args.source_column, args.confidence, args.overwrite, report)
    chunked = chunks(lines.read(source)) if job.file != STDIN else ([document] for document in lines.read(source))
    done = 0
    for chunk in chunked:
        for line in lines.translated(chunk, translate):
            target.write(line)
            done += 1
        if job.target is None:
            target.flush()
    if lines.number and not done:
        raise ValueError("none of its records could be translated")


if __name__ == "__main__":
    sys.exit(main())
