"""Translates corpora and pipes for `gtransformer translate`."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..corpora.chunk_translation import ChunkTranslator, TranslatedRecord, examine, problems_of_source, read_chunks
from ..corpora.corpus import Document, decode_line, parse_record
from ..corpora.corpus_translation import translate_corpus
from ..corpora.ray_translation import translate_with_ray
from ..runtime.json_line import json_line
from ..runtime.translator import Translator
from .jobs import Job
from .report import Report
from .translate_options import STDIN, TranslateOptions


def translate_documents(job: Job, options: TranslateOptions, translator: Translator, report: Report) -> None:
    """Translates a corpus to a file, or a corpus or standard input to JSON lines."""
    watch = partial(note, report=report)
    if job.file == STDIN:
        translate_pipe(job, options, translator, report)
    elif job.target is not None:
        if report.consistency is not None and Path(f"{job.target}.partial").exists():
            report.warn(f"{job.name}: the consistency report lacks the chunks of the interrupted translation.")
        translate_corpus(translator, job.file, str(job.target), options, options.overwrite, watch)
    else:
        examine(job.file, options, options.overwrite)
        translate = ChunkTranslator(translator, options)
        with job.open_target() as target:
            for _, group in read_chunks([job.file], options):
                translated = translate(group)
                target.writelines(json_line(each.record) for each in translated)
                watch(translated)


def translate_pipe(job: Job, options: TranslateOptions, translator: Translator, report: Report) -> None:
    """
    Translates JSON lines from standard input one by one, as they arrive. Reports and skips lines that fail.

    Raises:
        ValueError: all lines failed.
    """
    translate = ChunkTranslator(translator, options)
    failed = written = 0
    with job.open_target() as target:
        for number, line in enumerate(sys.stdin.buffer, 1):
            if not line.strip():
                continue
            try:
                document = Document(parse_record(decode_line(line)), f"{job.name}, line {number}")
                if problems := list(problems_of_source(document, options, options.overwrite)):
                    raise ValueError(problems[0].removeprefix(f"{document.place}: "))
                [translated] = translate([document])
                target.write(json_line(translated.record))
                target.flush()
            except BrokenPipeError:
                raise
            except Exception as error:  # continue with the next record
                report.fail(job.name, error, number)
                failed += 1
                continue
            note([translated], report)
            written += 1
        if failed and not written:
            raise ValueError("all records failed")


def note(translated: Sequence[TranslatedRecord], report: Report) -> None:
    for each in translated:
        report.note(each.place, each.result.get("sentences", ()))


def translate_on_cluster(options: TranslateOptions, report: Report) -> None:
    def watch(translated: Sequence[TranslatedRecord]) -> None:
        for each in translated:
            for warning in each.result.get("warnings", ()):
                report.warn(warning)

    [input], output = options.inputs, options.output or ""
    translate_with_ray(options.translator(), input, output, options, options.actors, options.overwrite, watch)
