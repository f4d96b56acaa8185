"""Times adversarial text: a few characters repeated many times, in every format.

    python benchmarks/hostile_text.py [--megabytes 5] [--formats text markdown] [--kinds "one word"]

Each is taken apart into sentences by sentencex, its placeholders are looked for, and it is put together again with
translations of one word, and with longer ones than its own; no model is run. A process for each format does it, which
is killed and started anew when a text takes ten minutes.
"""

import argparse
import multiprocessing
import sys
import time
from typing import Any

from hostile_units import HOSTILE
from measure import save
from own_process import memory_mb

from modeling_gtransformer.files import FILE_FORMATS, SplitFile
from modeling_gtransformer.plain_text import sentencex_splitter, split_text
from modeling_gtransformer.terminology import Terminology


# Formats in which a text alone is no file.
NEED_STRUCTURE = ("po", "xliff")
FORMATS = ("text", *(name for name, kind in FILE_FORMATS.items() if not kind.binary and name not in NEED_STRUCTURE))
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


def serve(connection: Any, format: str) -> None:
    while content := connection.recv():
        connection.send(take_apart_and_rejoin(format, content))


class Worker:
    """A process that does one text of a format after the other."""

    def __init__(self, format: str):
        self.format = format
        self.start()

    def start(self) -> None:
        # Not forked: locks of the libraries that are loaded here would stay locked there.
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, self.format), daemon=True)
        self.process.start()
        other.close()

    def do(self, content: str) -> dict[str, float | str]:
        """Seconds of each step, or the `failure` that there was; then the worker is another process."""
        self.connection.send(content)
        try:
            if self.connection.poll(MAX_SECONDS):
                return self.connection.recv()
            self.process.kill()
            failure = f"more than {MAX_SECONDS} seconds"
        except EOFError:
            self.process.join()
            failure = f"exit code {self.process.exitcode}"
        self.start()
        return {"failure": failure}

    def stop(self) -> None:
        self.connection.send("")
        self.process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=5, help="Size of each text, in millions of characters.")
    parser.add_argument(
        "--formats", nargs="+", default=FORMATS, choices=FORMATS, help="Formats; default: all of text."
    )
    parser.add_argument(
        "--kinds", nargs="+", default=list(HOSTILE), choices=list(HOSTILE), help="Kinds of text; default: all."
    )
    args = parser.parse_args()
    size = int(args.megabytes * 1e6)
    results: dict[str, Any] = {}
    for format in args.formats:
        worker = Worker(format)
        for kind in args.kinds:
            text = (HOSTILE[kind] * (size // len(HOSTILE[kind]) + 1))[:size]
            row = worker.do(IN_FORMAT.get(format, "{}").replace("{}", text))
            results.setdefault(format, {})[kind] = row
            print(f"{format}, {kind}: {row}", flush=True)
        worker.stop()
        save("hostile_text", sys.argv, {"megabytes": args.megabytes, **results})


if __name__ == "__main__":
    main()
