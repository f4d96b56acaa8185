"""Translate files from the command line: `gtransformer-translate FILE ... --model PATH`.

examples:
  gtransformer-translate report.txt --model outputs/mbart25 --splitter sentencex > bericht.txt
  gtransformer-translate docs/*.md film.srt letter.docx --model outputs/mbart25 --output german/ --num_beams 5
  gtransformer-translate talk.html --model outputs/mbart25 --output_format tmx --output german/ --confidence
  man ls | col -bx | gtransformer-translate --model outputs/mbart25 --format wrapped --tgt_lang de_DE

The format follows from the ending of a file (.txt .md .html .srt .vtt .po .docx .jsonl) or is given; standard input is
text. The text is translated, everything else stays as it was. Of JSON lines (.jsonl) the column `--source_column`, a
text or a list of sentences, gets a `translation` of the same kind. A file that cannot be read or translated is
reported and the others are still done; then the exit status is 1. No output is half written.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import torch
from transformers import pipeline
from transformers.utils.logging import disable_progress_bar

from .files import ALIGNED_FORMATS, FILE_FORMATS, decode, format_of
from .hub import __version__
from .pipeline_gtransformer import DocumentTranslationPipeline
from .processing_gtransformer import GTransformerProcessor
from .terminology import read_glossary


def main(argv: list[str] | None = None) -> int:
    """Runs the command, and returns its exit status."""
    args = parse_arguments(argv)
    if not sys.stderr.isatty():
        disable_progress_bar()
    translate = load(args)
    failures = 0
    for file in args.files or ["-"]:
        try:
            translate_file(file, args, translate)
        except (OSError, ValueError, ImportError) as error:
            print(f"gtransformer-translate: {file}: {error}", file=sys.stderr)
            failures += 1
    return 1 if failures else 0


def load(args: argparse.Namespace) -> DocumentTranslationPipeline:
    """The pipeline, with all the options of the command line."""
    languages = {"src_lang": args.src_lang, "tgt_lang": args.tgt_lang}
    processor = GTransformerProcessor.from_pretrained(
        args.model, **{name: language for name, language in languages.items() if language}
    )
    names = (
        "splitter",
        "segment_tokens",
        "segment_sentences",
        "max_tokens",
        "carried_sentences",
        "confidence",
        "num_beams",
    )
    options = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.mark_fuzzy:
        options["mark_fuzzy"] = True
    if args.glossary:
        options["glossary"] = read_glossary(args.glossary)
    if args.parallel_sentences:
        options["parallel_sentences"] = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    translate = pipeline(
        "document-translation",
        model=args.model,
        processor=processor,
        device=device,
        progress=True,
        # Not the code that may lie beside the model.
        pipeline_class=DocumentTranslationPipeline,
        **options,
    )
    processor.configure(translate.model)
    return translate


def translate_file(file: str, args: argparse.Namespace, translate: DocumentTranslationPipeline) -> None:
    """Translates a file, and writes the result where the arguments say."""
    # Line ends stay as they are.
    content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    if file.endswith(".jsonl") and args.format is None:
        write(file, translate_json_lines(decode(content), args, translate), args)
        return
    format = args.format or ("text" if file == "-" else format_of(file))
    binary = format != "text" and FILE_FORMATS[format].binary
    document = content if binary else decode(content)
    translated = translate(document, format=format)
    result = translated["translation_text"]
    if args.output_format != "same":
        result = translate.export_pairs(translated["sentences"], args.output_format)
    write(file, result, args)


def translate_json_lines(text: str, args: argparse.Namespace, translate: DocumentTranslationPipeline) -> str:
    """The records with a `translation` each, a text or a list of sentences as their source is."""
    if args.output_format != "same":
        raise ValueError("JSON lines stay JSON lines: use --output_format same")
    lines = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            source = record[args.source_column]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"line {number} has no document in the column {args.source_column!r}: {error}") from error
        translated = translate(source)
        as_list = [pair["translation_text"] for pair in translated["sentences"]]
        record["translation"] = translated["translation_text"] if isinstance(source, str) else as_list
        if args.confidence:
            record["confidence"] = [pair["confidence"] for pair in translated["sentences"]]
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return "".join(lines)


def write(file: str, result: str | bytes, args: argparse.Namespace) -> None:
    """To the folder `--output`, as a whole or not at all; without one to standard output."""
    content = result.encode("utf-8") if isinstance(result, str) else result
    if args.output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    path = target(file, args)
    if path.exists() and file != "-" and path.samefile(file):
        raise ValueError(f"--output {args.output} would overwrite it: choose another folder")
    args.output.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    os.replace(partial, path)


def target(file: str, args: argparse.Namespace) -> Path:
    """Path of the result of a file in the folder `--output`."""
    path = args.output / ("stdin.txt" if file == "-" else Path(file).name)
    return path if args.output_format == "same" else path.with_suffix(f".{args.output_format}")


def argument_parser() -> argparse.ArgumentParser:
    """The parser of the command line, from which the documentation is made as well."""
    summary, _, examples = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        "gtransformer-translate",
        description=summary,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="Documents to translate, in UTF-8; - or none: standard input."
    )
    parser.add_argument("--model", required=True, help="Folder or Hub name of a trained G-Transformer.")
    parser.add_argument(
        "--src_lang", metavar="CODE", help="Code of the source language; default: that of the processor."
    )
    parser.add_argument(
        "--tgt_lang", metavar="CODE", help="Code of the target language, e.g. de_DE; default: that of the processor."
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="Folder for the results; default: standard output.")
    parser.add_argument(
        "--output_format",
        choices=("same", *ALIGNED_FORMATS),
        default="same",
        help="Format of the results: that of the document, or aligned sentence pairs.",
    )
    parser.add_argument("--source_column", default="source", help="Column of JSON lines that holds the source.")
    parser.add_argument(
        "--format", choices=("text", *FILE_FORMATS), help="Format of the files; default: by their endings."
    )
    parser.add_argument(
        "--splitter",
        choices=["line", "sentencex"],
        help="Splitter that finds sentences; default: line for text, sentencex for other formats.",
    )
    parser.add_argument(
        "--mark_fuzzy", action="store_true", help="mark new translations of PO files as fuzzy, to be reviewed"
    )
    parser.add_argument("--glossary", metavar="TSV", help="File of terms and their translations, separated by tabs.")
    parser.add_argument(
        "--segment_tokens",
        type=int,
        help="Upper bound on the source tokens of a segment, which is translated at once; default: 512.",
    )
    parser.add_argument(
        "--segment_sentences", type=int, help="Upper bound on the sentences of a segment; default: any number."
    )
    parser.add_argument(
        "--max_tokens", type=int, help="Upper bound on the source tokens of a batch, padding included; default: 4096."
    )
    parser.add_argument(
        "--carried_sentences",
        type=int,
        help="Number of sentences of a segment that open the next one as well; default: 0.",
    )
    parser.add_argument(
        "--num_beams", type=int, help="Number of beams; default: that of the model's generation config."
    )
    parser.add_argument(
        "--parallel_sentences", action="store_true", help="Decode the sentences of a segment side by side."
    )
    parser.add_argument(
        "--confidence", action="store_true", help="Add the mean log-probability of every sentence, in nats."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    """The arguments, checked for what the parser cannot know.

    Exits with an error if results would have no place, or share one.
    """
    parser = argument_parser()
    args = parser.parse_args(argv)
    if len(args.files) > 1 and args.output is None:
        parser.error("several files need --output")
    targets = [target(file, args) for file in args.files if args.output]
    if twice := sorted({str(path) for path in targets if targets.count(path) > 1}):
        parser.error(f"several files would become {', '.join(twice)}: translate them one by one, into other folders")
    return args


if __name__ == "__main__":
    sys.exit(main())
