"""Translates files and standard input for `gtransformer translate`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from transformers.utils.logging import disable_progress_bar

from ..files import FILE_FORMATS, Consistency, decode, encode, find_encoding
from ..runtime.atomic_file import write_atomic
from ..runtime.translator import Translator
from .jobs import Job, plan
from .report import Report
from .translate_options import STDIN, TranslateOptions


def translate_files(options: TranslateOptions) -> int:
    if not sys.stderr.isatty():
        disable_progress_bar()
    report = Report()
    if options.engine == "ray":
        from .corpora import translate_on_cluster

        report.files = 1
        translate_on_cluster(options, report)
    elif jobs := plan(options, report):
        with report.counting_warnings():
            translate_jobs(jobs, options, report)
    return report.summarize(options.fail_on_warning)


def translate_jobs(jobs: Sequence[Job], options: TranslateOptions, report: Report) -> None:
    """Loads the model, translates the inputs, and reports failures."""
    translator = options.translator(progress=True, word_alignment=bool(options.consistency_report))
    processor = translator.pipeline.processor
    if options.consistency_report:
        report.consistency = Consistency(processor.src_lang, processor.tgt_lang)
    for job in jobs:
        try:
            translate_job(job, options, translator, report)
        except BrokenPipeError:
            raise
        except Exception as error:  # parsers of broken files raise errors of any kind
            report.fail(job.name, error)
    if options.consistency_report and report.consistency is not None:
        write_atomic(options.consistency_report, report.consistency.to_tsv())


def translate_job(job: Job, options: TranslateOptions, translator: Translator, report: Report) -> None:
    if job.format == "documents":
        from .corpora import translate_documents

        translate_documents(job, options, translator, report)
        return
    content = sys.stdin.buffer.read() if job.file == STDIN else Path(job.file).read_bytes()
    with job.open_target() as target:
        target.write(translate_content(job, content, options, translator, report))


def translate_content(
    job: Job, content: bytes, options: TranslateOptions, translator: Translator, report: Report
) -> bytes:
    """Translates the content of a file in its encoding. Preserves line ends."""
    translate = translator.pipeline
    binary = job.format != "text" and FILE_FORMATS[job.format].binary
    encoding = "utf-8" if binary else find_encoding(content, options.encoding)
    translated = translate(content if binary else decode(content, encoding), format=job.format, name=job.name)
    report.note(job.name, translated["sentences"])
    result = translated["translation_text"]
    if options.output_format != "same":
        return translate.export_pairs(translated["sentences"], options.output_format).encode()
    return encode(result, encoding) if isinstance(result, str) else result
