"""Options of `gtransformer-translate`, checked before anything is loaded."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from ..atomic_file import is_among, problem_of_folder
from ..files import ALIGNED_FORMATS, BILINGUAL_FORMATS, FILE_FORMATS, Consistency, format_of, not_bilingual
from ..hub import __version__
from .json_lines import count_records
from .report import Report
from .translator_options import add_translator_options, check_translator_options


PROGRAM = "gtransformer-translate"
DESCRIPTION = """Translate files from the command line: `gtransformer-translate FILE ... --model PATH`.

examples:
  gtransformer-translate letter.docx --model Helsinki-NLP/opus-mt-en-de --output german/
  gtransformer-translate page.html --model facebook/nllb-200-distilled-600M --src_lang eng_Latn --tgt_lang deu_Latn
  gtransformer-translate report.txt --model outputs/mbart25 --splitter sentencex > bericht.txt
  gtransformer-translate docs/*.md film.srt --model outputs/mbart25 --output german/ --num_beams 5 --skip_existing
  gtransformer-translate talk.html --model outputs/mbart25 --output_format tmx --output german/ --confidence
  man ls | col -bx | gtransformer-translate --model outputs/mbart25 --format wrapped --tgt_lang de_DE

The format follows from the ending of a file (.txt .md .html .srt .vtt .ass .po .xliff .docx .pptx .epub .jsonl) or
from --format; standard input is text by default. The text is translated, everything else stays as it was. In JSON
lines (.jsonl), the column `--source_column`, a text or a list of sentences, gets a `translation` of the same kind.

Inputs and outputs are checked before the model is loaded. A file or a JSON line that cannot be read or translated is
named on standard error, and the others are still translated. No output is half written, and none is replaced without
--overwrite. The last line on standard error is a summary.

exit status:
  0    everything was translated
  1    a file or a JSON line failed or, with --fail_on_warning, there was a warning
  2    nothing was translated: an option, the model, a language or the glossary is wrong
  130  interrupted by Ctrl-C
  143  terminated by SIGTERM
"""
STDIN = "-"


@dataclass(frozen=True)
class Job:
    """A file to translate: its name (or `-`), its format, and where the result goes (`None` for standard output)."""

    file: str
    format: str
    target: Path | None

    @property
    def name(self) -> str:
        """Name of the file in messages."""
        return "standard input" if self.file == STDIN else self.file


def argument_parser() -> argparse.ArgumentParser:
    """Makes the parser of the command's arguments."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "files", nargs="*", metavar="FILE", default=[STDIN], help="Files to translate; default: standard input."
    )
    add_translator_options(parser)
    parser.add_argument("--output", type=Path, metavar="DIR", help="Folder for the results; default: standard output.")
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument(
        "--overwrite",
        action="store_true",
        help="Replace results that exist, and in JSON lines the fields of an earlier translation: `translation`, "
        "`confidence`, `segments` and `translated_segments`.",
    )
    existing.add_argument(
        "--skip_existing",
        action="store_true",
        help="Leave out files whose results exist and are complete, to continue a batch.",
    )
    parser.add_argument(
        "--output_format",
        choices=("same", *ALIGNED_FORMATS),
        default="same",
        help="Format of the results: that of the document, or aligned sentence pairs.",
    )
    parser.add_argument("--source_column", default="source", help="Column of JSON lines that holds the source.")
    parser.add_argument(
        "--format", choices=("text", "jsonl", *FILE_FORMATS), help="Format of the files; default: by their endings."
    )
    parser.add_argument(
        "--mark_fuzzy",
        action="store_true",
        default=None,
        help="Mark new translations in PO and XLIFF files for review.",
    )
    parser.add_argument(
        "--bilingual",
        action="store_true",
        default=None,
        help="Put the translation of every paragraph after it, marked as such; for text, HTML, DOCX and EPUB.",
    )
    parser.add_argument(
        "--consistency_report",
        type=Path,
        metavar="TSV",
        help="File that lists the sentences and words that were translated in several ways.",
    )
    parser.add_argument(
        "--confidence", action="store_true", help="Add the mean log-probability of every sentence, in nats."
    )
    parser.add_argument(
        "--fail_on_warning", action="store_true", help="Exit with status 1 if a translation causes a warning."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    """
    Parses the arguments, and checks what the parser cannot know.

    Exits with status 2 if a number is outside its range, or if results would have no place or share one.
    """
    parser = argument_parser()
    args = parser.parse_args(argv)
    check_translator_options(parser, args)
    if args.output is None and len(args.files) > 1:
        parser.error("several files need --output")
    if args.bilingual and args.output_format != "same":
        parser.error("--bilingual needs --output_format same: sentence pairs are bilingual")
    if args.output is None and args.skip_existing:
        parser.error("--skip_existing needs --output")
    if args.output is not None and (problem := problem_of_folder(args.output)):
        parser.error(f"--output {args.output}: {problem}")
    if (report := args.consistency_report) is not None:
        try:
            Consistency()
        except ImportError as error:
            parser.error(f"--consistency_report: {error}")
        if report.exists() and (report.is_dir() or not args.overwrite):
            advice = "choose another file" if report.is_dir() or args.skip_existing else "use --overwrite"
            parser.error(f"--consistency_report {report} exists: {advice}")
        if problem := problem_of_folder(report.parent):
            parser.error(f"--consistency_report {report}: {problem}")
    named = [file for file in args.files if file != STDIN]
    targets = [target_of(file, args) for file in args.files if args.output]
    if (report := args.consistency_report) is not None and is_among(report, [*named, *targets]):
        parser.error(f"--consistency_report {report} is also an input or a result: choose another file")
    if twice := sorted({str(path) for path in targets if targets.count(path) > 1}):
        parser.error(f"several files would become {', '.join(twice)}: translate them one by one, into other folders")
    return args


def target_of(file: str, args: argparse.Namespace) -> Path:
    """Path of the result of a file, in the folder `--output`."""
    path = args.output / (f"stdin{_ending_of(args.format)}" if file == STDIN else Path(file).name)
    return path if args.output_format == "same" else path.with_suffix(f".{args.output_format}")


def _ending_of(format: str | None) -> str:
    """The usual ending of a format's files; by default that of text."""
    if format == "jsonl":
        return ".jsonl"
    return next(iter(FILE_FORMATS[format].extensions), ".txt") if format in FILE_FORMATS else ".txt"


def plan(args: argparse.Namespace, report: Report) -> list[Job]:
    """Returns the files that can be translated, and reports the others."""
    jobs = []
    for file in args.files:
        try:
            job = Job(file, _format_of_input(file, args), target_of(file, args) if args.output else None)
            if job.target and job.target.exists() and args.skip_existing:
                _check_complete(job)
                report.skip(file, f"{job.target} exists")
                continue
            _check_target(job.target, args)
            jobs.append(job)
        except (OSError, ValueError) as error:
            report.fail(file, error)
    return jobs


def _check_complete(job: Job) -> None:
    """
    Refuses to skip a file whose result lacks records.

    Raises:
        ValueError: records of the file failed when its result was made.
    """
    if job.format != "jsonl" or job.file == STDIN or job.target is None:
        return
    records, results = (count_records(path) for path in (Path(job.file), job.target))
    if results < records:
        raise ValueError(
            f"{job.target} has {results} of {records} records: fix those that failed, and use --overwrite "
            "instead of --skip_existing"
        )


def _format_of_input(file: str, args: argparse.Namespace) -> str:
    """
    The format of a file, according to the options or its name.

    Raises:
        ValueError: the file has no format that can be translated, or cannot be read.
    """
    if file == STDIN:
        format = args.format or "text"
    else:
        path = Path(file)
        path.stat()  # its error says why
        if path.is_dir():
            raise ValueError("it is a folder: name the files in it")
        if not os.access(path, os.R_OK):
            raise ValueError("no permission to read it")
        format = args.format or ("jsonl" if path.suffix.lower() == ".jsonl" else format_of(file))
    if args.bilingual and format not in BILINGUAL_FORMATS:
        raise ValueError(not_bilingual(format))
    if args.confidence and format != "jsonl" and args.output_format == "same":
        raise ValueError("--confidence has no place in the file: use --output_format jsonl, tsv or tmx")
    if format == "jsonl" and args.output_format != "same":
        raise ValueError("JSON lines stay JSON lines: use --output_format same")
    return format


def _check_target(target: Path | None, args: argparse.Namespace) -> None:
    """
    Refuses a target that exists, unless it may be replaced.

    Raises:
        ValueError: the result would overwrite something.
    """
    if target is None or not target.exists():
        return
    for file in args.files:
        if file != STDIN and is_among(target, [file]):
            raise ValueError(f"--output {args.output} would overwrite {file}: choose another folder")
    if target.is_dir():
        raise ValueError(f"{target} is a folder: choose another one for --output")
    if not args.overwrite:
        raise ValueError(f"{target} exists: use --overwrite, or --skip_existing to leave out what is done")
