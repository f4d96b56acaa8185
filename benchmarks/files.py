"""Seconds that hostile text takes in every format: a few characters repeated many times.

    python benchmarks/files.py [--megabytes 5] [--formats text markdown] [--kinds "one word"]

Each text is taken apart into sentences by sentencex, its placeholders are looked for, and it is put together again
with translations of one word, and with longer ones than its own; no model is run. A text that takes ten minutes is
given up.
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


# Formats in which a text alone is no file.
NEED_STRUCTURE = ("po", "xliff")
FORMATS = ["text", *(name for name, kind in FILE_FORMATS.items() if not kind.binary and name not in NEED_STRUCTURE)]
IN_FORMAT = {
    "subtitles": "1\n00:00:01,000 --> 00:00:02,000\n{}\n",
    "ass": "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,{}\n",
}
MAX_SECONDS = 600


def take_apart_and_rejoin(format: str, content: str) -> dict[str, float]:
    """Seconds of each step."""
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
    """Seconds of each format and kind of text, in a process for each format, or the `failure` of a text."""
    size, rows = int(args.megabytes * 1e6), {}
    context = multiprocessing.get_context("spawn")  # locks of the libraries that are loaded here would stay locked
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


def main(argv: list[str] | None = None) -> None:
    args = parse_options(__doc__, argv, megabytes=5.0, formats=FORMATS, kinds=list(HOSTILE))
    save(args, "hostile_text", measure(args))


if __name__ == "__main__":
    main()
