"""Seconds per format for hostile text: a few characters repeated many times.

    python benchmarks/files.py [--megabytes 5] [--formats text markdown] [--kinds "one word"]

Measures splitting into sentences with sentencex, finding placeholders, and rejoining with one-word and with longer
translations. No model runs. A text that takes ten minutes counts as failed.
"""

import argparse
import multiprocessing
import time
from typing import Any

from hostile_units import HOSTILE
from measure import memory_mb, parse_options, save, show

from modeling_gtransformer.files import FILE_FORMATS, SplitFile
from modeling_gtransformer.plain_text import sentencex_splitter, split_text
from modeling_gtransformer.terminology import Terminology


# Formats that need more than text to be valid.
NEED_STRUCTURE = ("po", "xliff")
FORMATS = ["text", *(name for name, kind in FILE_FORMATS.items() if not kind.binary and name not in NEED_STRUCTURE)]
IN_FORMAT = {
    "subtitles": "1\n00:00:01,000 --> 00:00:02,000\n{}\n",
    "ass": "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,{}\n",
}
MAX_SECONDS = 600


def take_apart_and_rejoin(format: str, content: str) -> dict[str, float]:
    """Returns the seconds of each step."""
    splitter = sentencex_splitter("en")
    start = time.perf_counter()
    file = split_text(content, splitter) if format == "text" else SplitFile(content, format, splitter)
    read = time.perf_counter()
    for sentence in file.sentences:
        Terminology().required(sentence)
    searched = time.perf_counter()
    file.rejoin(["x"] * len(file.sentences))
    file.rejoin([f"{sentence} x" for sentence in file.sentences])
    return {
        "read": read - start,
        "placeholders": searched - read,
        "rejoined twice": time.perf_counter() - searched,
        "sentences": len(file.sentences),
        "peak GB so far": memory_mb("VmHWM") / 1e3,
    }


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the figures or the `failure` of each text, with one process per format."""
    size, rows = int(args.megabytes * 1e6), {}
    context = multiprocessing.get_context("spawn")  # forked processes would inherit locks of libraries
    for format in args.formats:
        pool, row = context.Pool(1), {}
        for kind in args.kinds:
            text = (HOSTILE[kind] * (size // len(HOSTILE[kind]) + 1))[:size]
            work = pool.apply_async(take_apart_and_rejoin, (format, IN_FORMAT.get(format, "{}").replace("{}", text)))
            try:
                row[kind] = work.get(MAX_SECONDS)
            except multiprocessing.TimeoutError:
                pool.terminate()
                pool, row[kind] = context.Pool(1), {"failure": f"no result in {MAX_SECONDS} seconds"}
        pool.terminate()
        show(format, row)
        rows[format] = row
    return {"megabytes": args.megabytes, **rows}


def main() -> None:
    args = parse_options(__doc__, megabytes=5.0, formats=FORMATS, kinds=list(HOSTILE))
    save(args, "hostile_text", measure(args))


if __name__ == "__main__":
    main()
