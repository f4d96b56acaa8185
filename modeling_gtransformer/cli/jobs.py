"""Plans the work of `gtransformer translate`: inputs, formats and outputs, checked before any work."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..files import BILINGUAL_FORMATS, EXTENSIONS, FILE_FORMATS, Consistency, format_of, not_bilingual
from ..runtime.atomic_file import atomic_file, is_among, problem_of_folder
from ..runtime.usage_error import UsageError
from .report import Report
from .translate_options import STDIN, TranslateOptions


# Extensions of corpora, and the file that identifies a folder as a dataset.
CORPORA, DATASET = (".jsonl", ".jsonl.gz", ".jsonl.xz", ".ndjson", ".parquet"), "state.json"
UNFINISHED = ".unfinished"  # marks the folder of a translation
# Formats that do not declare their encoding.
OF_ANY_ENCODING = ("text", "wrapped", "markdown", "subtitles", "ass")


@dataclass(frozen=True)
class Job:
    """An input (`-` for standard input), its format, and the path of the result (`None` for standard output)."""

    file: str
    format: str
    target: Path | None

    @property
    def name(self) -> str:
        return "standard input" if self.file == STDIN else self.file

    @contextmanager
    def open_target(self) -> Iterator[BinaryIO]:
        """Opens the result: an atomic file, or standard output."""
        if self.target is None:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        else:
            with atomic_file(self.target) as target:
                yield target


def plan(options: TranslateOptions, report: Report) -> list[Job]:
    """
    Returns the valid inputs, and reports the invalid ones.

    Raises:
        UsageError: the output is missing, ambiguous or not writable, or a library is missing.
    """
    formats: dict[str, str] = {}
    for file in _inputs(options, report):
        try:
            formats[file] = _format_of_input(file, options)
        except (OSError, ValueError) as error:
            report.fail(file, error)
    targets = _targets(formats, options)
    _check_report(options, [*formats, *targets.values()])
    jobs = []
    for file, format in formats.items():
        job = Job(file, format, targets.get(file))
        try:
            _check_target(job, options)
        except ValueError as error:
            report.fail(file, error)
            continue
        if job.target and job.target.exists() and options.skip_existing:
            report.skip(file, f"{job.target} exists")
        else:
            jobs.append(job)
    return jobs


def _inputs(options: TranslateOptions, report: Report) -> Iterator[str]:
    """Yields files, standard input and datasets. Expands other folders to their corpus files."""
    for name in options.inputs:
        if name == STDIN or not os.path.isdir(name) or Path(name, DATASET).exists():
            report.files += 1
            yield name
            continue
        shown = [path for path in sorted(Path(name).iterdir()) if not path.name.startswith(".")]
        found = [str(path) for path in shown if path.name.lower().endswith(CORPORA)]
        report.files += len(found) or 1
        if Path(name, UNFINISHED).exists():
            raise UsageError(f"{name}: the translation in this folder is unfinished: run its command again.")
        if not found:
            report.fail(name, ValueError(f"the folder has no files named *{', *'.join(CORPORA)}"))
        yield from found


def _format_of_input(file: str, options: TranslateOptions) -> str:
    """Returns the format of an input. Raises `OSError` or `ValueError` for an input without a suitable format."""
    is_corpus = file.lower().endswith(CORPORA) or os.path.isdir(file)
    if file != STDIN:
        os.stat(file)  # raises if the file is missing
        if not os.access(file, os.R_OK):
            raise ValueError("no read permission")
        if options.format == "jsonl" and not is_corpus:
            raise ValueError("JSON lines must be named *.jsonl, *.jsonl.gz, *.jsonl.xz or *.ndjson")
    elif options.format == "documents":
        raise ValueError("standard input with --format documents: use --format jsonl, or pass a file")
    format = options.format or ("text" if file == STDIN else "documents" if is_corpus else format_of(file))
    format = "documents" if format == "jsonl" else format
    if options.bilingual and format not in BILINGUAL_FORMATS:
        raise ValueError(not_bilingual(format))
    if options.free and format != "documents":
        raise ValueError("--free needs a corpus: use --format documents for text with <d> lines between documents")
    if options.confidence and format != "documents" and options.output_format == "same":
        raise ValueError("--confidence needs --output_format jsonl, tsv or tmx")
    if options.encoding != "utf-8" and format not in OF_ANY_ENCODING:
        raise ValueError(f"--encoding supports only the formats {', '.join(OF_ANY_ENCODING)}")
    if format == "documents" and options.output_format != "same":
        raise ValueError("documents need --output_format same")
    return format


def _targets(formats: dict[str, str], options: TranslateOptions) -> dict[str, Path]:
    """Returns the paths of the results. Inputs with equal names keep their folders."""
    if options.output is None:
        if len(options.inputs) > 1:
            raise UsageError("Several files need --output.")
        return {}
    output = Path(options.output)
    names = {file: Path(_name_of_result(file, format, options)) for file, format in formats.items()}
    extensions = {_extension(name.name) for name in names.values()}
    if (
        len(options.inputs) == len(names) == 1
        and not output.is_dir()
        and {_extension(options.output)} == extensions != {""}
    ):
        targets = dict.fromkeys(names, output)
    elif options.output.lower().endswith((*CORPORA, *EXTENSIONS)) and not output.is_dir():
        results = ", ".join(sorted(f"*{extension}" for extension in extensions if extension))
        single = f", or for a single result {results}" if results else ""
        raise UsageError(f"--output {options.output}: pass a folder{single}.")
    else:
        if len({*names.values()}) < len(names):
            names = {file: _folder_of(file, names) / name for file, name in names.items()}
        targets = {file: output / name for file, name in names.items()}
    paths = [*targets.values()]
    if twice := sorted({str(path) for path in paths if paths.count(path) > 1}):
        raise UsageError(f"--output: several files would become {', '.join(twice)}; translate them one by one.")
    for folder in {path.parent for path in paths}:
        if problem := problem_of_folder(folder):
            raise UsageError(f"--output {options.output}: {problem}.")
    return targets


def _name_of_result(file: str, format: str, options: TranslateOptions) -> str:
    if file == STDIN:
        extensions = FILE_FORMATS[format].extensions if format in FILE_FORMATS else ()
        return f"stdin{'.jsonl' if format == 'documents' else next(iter(extensions), '.txt')}"
    path = Path(file)
    if options.output_format != "same":
        return path.with_suffix(f".{options.output_format}").name
    is_text = format == "documents" and path.is_file() and not path.name.lower().endswith(CORPORA)
    return path.with_suffix(".jsonl").name if is_text else path.name


def _extension(name: str) -> str:
    """Returns the extension of a file without compression, and `.jsonl` for `.ndjson`."""
    extension = Path(name.lower().removesuffix(".gz").removesuffix(".xz")).suffix
    return ".jsonl" if extension == ".ndjson" else extension


def _folder_of(file: str, files: Iterable[str]) -> Path:
    """Returns the folder of a file, relative to the common parent of all files."""
    common = os.path.commonpath([Path(each).absolute().parent for each in files])
    return Path(file).absolute().parent.relative_to(common)


def _check_target(job: Job, options: TranslateOptions) -> None:
    """Raises `ValueError` if a table has no target, or the target must not be replaced."""
    if job.target is None:
        if job.file.lower().endswith(".parquet") or os.path.isdir(job.file):
            raise ValueError("a table needs --output")
        return
    if not job.target.exists():
        return
    if others := [file for file in options.inputs if file != STDIN and is_among(job.target, [file])]:
        raise ValueError(f"--output {options.output} would overwrite {others[0]}: choose another folder")
    if job.target.is_dir() and not (job.target / DATASET).exists():
        raise ValueError(f"{job.target} is a folder: choose another --output")
    if not (options.overwrite or options.skip_existing):
        raise ValueError(f"{job.target} exists: use --overwrite, or --skip_existing to continue a batch")


def _check_report(options: TranslateOptions, files: Iterable[str | Path]) -> None:
    """Raises `UsageError` if the consistency report cannot be written."""
    report = options.consistency_report
    if report is None:
        return
    try:
        Consistency()
    except ImportError as error:
        raise UsageError(f"--consistency_report: {error}") from error
    if is_among(report, [file for file in files if file != STDIN]):
        raise UsageError(f"--consistency_report {report} is also an input or a result: choose another file.")
    if report.exists() and (report.is_dir() or not options.overwrite):
        advice = "choose another file" if report.is_dir() or options.skip_existing else "use --overwrite"
        raise UsageError(f"--consistency_report {report} exists: {advice}.")
    if problem := problem_of_folder(report.parent):
        raise UsageError(f"--consistency_report {report}: {problem}.")
