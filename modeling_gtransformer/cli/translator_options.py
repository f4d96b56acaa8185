"""Options of every command that translates, which say how the model does it, and the translator made from them."""

import argparse
import sys
from typing import Any

from ..files import read_glossary
from ..translation_options import TranslationOptions
from ..translator import PRECISIONS, SMALL_MODEL, Translator
from ..usage_error import UsageError, user_message


# Options that the pipeline takes by the same names.
NUMBERS = ("segment_tokens", "segment_sentences", "max_tokens", "num_beams")
OPTIONS = ("splitter", "mark_fuzzy", "bilingual", "parallel_sentences", *NUMBERS)


def add_translator_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options to a parser."""
    parser.add_argument(
        "--model",
        help="Folder or Hub name of a G-Transformer, or of a sentence-level translator; default: a small model of "
        "English-German dialogues.",
    )
    add_language_options(parser)
    parser.add_argument(
        "--splitter",
        choices=["line", "sentencex"],
        help="Splitter that finds sentences; default: line for text files, sentencex otherwise and in a server.",
    )
    parser.add_argument(
        "--glossary",
        metavar="FILE",
        help="File of terms and their translations: tab-separated or, by its ending, CSV (.csv) or TBX (.tbx).",
    )
    parser.add_argument(
        "--segment_tokens",
        type=int,
        help="Exclusive upper bound on the source tokens of a segment, an input of the model; default: 512.",
    )
    parser.add_argument(
        "--segment_sentences", type=int, help="Upper bound on the sentences of a segment; default: any number."
    )
    parser.add_argument(
        "--max_tokens",
        type=int,
        help="Upper bound on the source tokens of a batch, padding included; default: 16384 divided by the "
        "number of beams, but at least 4096.",
    )
    parser.add_argument(
        "--num_beams", type=int, help="Number of beams; default: that of the model's generation config."
    )
    parser.add_argument(
        "--parallel_sentences",
        action=argparse.BooleanOptionalAction,
        help="Decode the sentences of a segment side by side; default: where that is likely to be faster.",
    )
    parser.add_argument(
        "--precision",
        choices=[*PRECISIONS],
        help="Type of the weights; int8 has linear layers in 8 bits, on a CPU; default: that of the checkpoint.",
    )


def add_language_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the languages, among those that the model knows."""
    parser.add_argument(
        "--src_lang", metavar="CODE", help="Code of the source language; default: that of the processor."
    )
    parser.add_argument(
        "--tgt_lang", metavar="CODE", help="Code of the target language, e.g. de_DE; default: that of the processor."
    )


def check_translator_options(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Ends the process with status 2 if the name of the model is empty, or a number is outside its range."""
    if args.model == "":
        parser.error("--model is empty: name a folder or a model on the Hub, or leave it out for the small model")
    try:
        TranslationOptions(**{name: value for name in NUMBERS if (value := getattr(args, name)) is not None})
    except ValueError as error:
        parser.error(f"--{error}")


def translator_of(args: argparse.Namespace, **options: Any) -> Translator:
    """
    Returns the translator of a command line, which has not yet loaded its model.

    Args:
        options: further arguments of [`Translator`].

    Raises:
        UsageError: the glossary cannot be read.
    """
    # Options that were not given are left to the model's own settings.
    values = {name: getattr(args, name, None) for name in OPTIONS}
    given = {name: value for name, value in values.items() if value is not None}
    if args.glossary:
        try:
            given["glossary"] = read_glossary(args.glossary)
        except (OSError, ValueError) as error:
            raise UsageError(f"The glossary {args.glossary} cannot be used: {user_message(error)}") from error
    if args.model is None:
        notice = "No --model given: using the small English-German dialogue model that comes with the package."
        print(notice, file=sys.stderr)
    model = str(SMALL_MODEL) if args.model is None else args.model
    return Translator(model, args.src_lang, args.tgt_lang, precision=args.precision, **given, **options)
