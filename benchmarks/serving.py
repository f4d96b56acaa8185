"""A server under load: requests per second, latencies and memory, against direct calls of the model.

    python benchmarks/serving.py [--clients 1 8 64] [--requests 256] [--size base] [--repeats 3] [--name serving]

The server runs in another process. Each client waits for an answer before its next request. A request is a text of 3
sentences of 20 words, and every translated sentence has 20 words. With the server idle, `direct` calls the model in
this process text by text, and `together` passes all texts at once. Failed requests are `lost`; none should be. Memory
is the server's RssAnon (Linux) after each run.
"""

import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from measure import memory_mb, parse_options, save, show, timed
from systems import SIZES, make_translator

from modeling_gtransformer import Translator
from modeling_gtransformer.pipeline_gtransformer import NamedDocument


SENTENCES, WORDS = 3, 20
OTHER_PIECES = 67  # special tokens, languages, digits and letters
Figures = dict[str, float]


def make_texts(words: list[str], number: int) -> list[str]:
    rng = random.Random(0)
    return ["\n".join(" ".join(rng.choices(words, k=WORDS)) for _ in range(SENTENCES)) for _ in range(number)]


@contextmanager
def server(folder: str) -> Iterator[tuple[str, int]]:
    """Yields address and process of a server for a checkpoint."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    options = ["--model", folder, "--port", str(port), "--splitter", "line", "--max_per_client", "1000"]
    command = [sys.executable, "-m", "modeling_gtransformer.cli.main", "serve", *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            while not is_ready(address):
                if process.poll() is not None:
                    raise RuntimeError("The server did not start.")
                time.sleep(0.5)
            yield address, process.pid
        finally:
            process.terminate()


def is_ready(address: str) -> bool:
    try:
        return urllib.request.urlopen(f"{address}/health").status == 200
    except urllib.error.URLError:
        return False


def ask(address: str, text: str) -> tuple[float, bool]:
    """Returns the seconds of a request, and whether its answer was complete."""
    body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
    request = urllib.request.Request(f"{address}/translate", body, {"Content-Type": "application/json"})
    begun = time.perf_counter()
    try:
        answer = json.load(urllib.request.urlopen(request))
    except OSError:  # no connection, or an error status
        return time.perf_counter() - begun, False
    return time.perf_counter() - begun, answer["translatedText"].count("\n") == SENTENCES - 1


def run_clients(address: str, process: int, texts: list[str], clients: int) -> Figures:
    begun = time.perf_counter()
    with ThreadPoolExecutor(clients) as executor:
        seconds, complete = zip(*executor.map(partial(ask, address), texts), strict=True)
    figures = figures_of(list(seconds), time.perf_counter() - begun)
    return {**figures, "lost": complete.count(False), "memory_mb": memory_mb("RssAnon", process)}


def run_directly(translate: Translator, texts: list[str]) -> Figures:
    seconds = [timed(lambda text=text: translate(text)) for text in texts]
    return figures_of(seconds, sum(seconds))


def run_together(translate: Translator, texts: list[str]) -> Figures:
    documents = [NamedDocument(f"Document {number}", text) for number, text in enumerate(texts, 1)]
    return {"requests_per_second": len(texts) / timed(lambda: list(translate.pipeline.translate_all(documents)))}


def figures_of(seconds: list[float], total: float) -> Figures:
    """Returns requests per second, and median and 99th percentile of seconds per request."""
    percentiles = statistics.quantiles(seconds, n=100, method="inclusive")
    return {"requests_per_second": len(seconds) / total, "median": percentiles[49], "percentile_99": percentiles[98]}


def main() -> None:
    args = parse_options(__doc__, clients=[1, 8, 64], requests=256, size="base", repeats=3, name="serving")
    words = [f"w{number}" for number in range(SIZES[args.size]["vocab_size"] - OTHER_PIECES)]
    texts = make_texts(words, args.requests)
    repeats: list[dict[str, Figures]] = []
    with tempfile.TemporaryDirectory() as folder:
        for part in make_translator(words, args.size, WORDS):
            part.save_pretrained(folder)
        translate = Translator(folder, splitter="line")
        translate(texts[0])
        with server(folder) as (address, process):
            run_clients(address, process, texts[:2], 1)
            for _ in range(args.repeats):
                row = {"direct": run_directly(translate, texts), "together": run_together(translate, texts)}
                for clients in args.clients:
                    row[f"{clients} clients"] = run_clients(address, process, texts, clients)
                show(f"{args.requests} requests", row)
                repeats.append(row)
    save(args, args.name, {"size": args.size, "requests": args.requests, "repeats": repeats})


if __name__ == "__main__":
    main()
