"""Options that several scripts share: columns of documents, and whole numbers with a lower bound."""

import argparse
from collections.abc import Callable


# Default and help text of each.
COLUMNS = {
    "source": ("source", "Column that holds the source sentences."),
    "target": ("target", "Column that holds the target sentences."),
    "reference": ("target", "Column that holds the references."),
    "translation": ("translation", "Column that holds the translations."),
}


def add_column_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds options such as `--source_column`, for some of the names of `COLUMNS`."""
    for name in names:
        default, text = COLUMNS[name]
        parser.add_argument(f"--{name}_column", default=default, help=text)


def at_least(least: int) -> Callable[[str], int]:
    """Makes the type of an option: a whole number that is not smaller than this one."""

    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {value}")
        return value

    return number
