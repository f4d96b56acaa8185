"""Options of the languages, for scripts that read them with argparse."""

import argparse


def add_language_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the languages, among those that the model knows."""
    for name, side in (("src_lang", "source"), ("tgt_lang", "target")):
        parser.add_argument(f"--{name}", help=f"Code of the {side} language; default: that of the processor.")
