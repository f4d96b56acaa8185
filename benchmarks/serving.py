"""A server under load: requests per second, latencies and memory, against the same model called directly.

    python benchmarks/serving.py [--clients 1 8 64] [--requests 256] [--size base] [--repeats 3] [--name serving]

The server, `gtransformer-serve`, is a process of its own. Each client sends its next request when it has the answer to
the last one; a request is a text of 3 sentences of 20 words, and every sentence gets 20. `direct` calls the model in
this process with one text after the other, `together` with all of them, while the server rests. A request that fails
is lost, and none may be. Memory is that of the server which no file backs (RssAnon, Linux), after each run.
"""

import argparse
import asyncio
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import httpx2
import torch
from measure import SIZES, save, show
from own_process import memory_mb
from transformers import MBartTokenizer

from modeling_gtransformer import (
    GTransformerConfig,
    GTransformerForConditionalGeneration,
    GTransformerProcessor,
    Translator,
)
from modeling_gtransformer.pipeline_gtransformer import NamedDocument


SENTENCES, WORDS = 3, 20
TINY = {"d_model": 32, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "encoder_layers": 2, "decoder_layers": 2}
TINY |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 1024}
SIZES = {**SIZES, "tiny": TINY}
# Pieces of the vocabulary beside its words: special tokens, language codes, digits and letters.
OTHER_PIECES = 64


def save_checkpoint(folder: str, size: str) -> list[str]:
    """Saves a model with random weights that gives every sentence `WORDS` words, and returns the words it knows."""
    torch.manual_seed(0)
    words = [f"w{number}" for number in range(SIZES[size].get("vocab_size", 1000) - OTHER_PIECES)]
    specials = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    pieces = ["▁", "w", *"0123456789", *(f"▁{word}" for word in words)]
    vocabulary = [*specials, *((piece, -8 - rank / len(pieces)) for rank, piece in enumerate(pieces))]
    processor = GTransformerProcessor(MBartTokenizer(vocab=vocabulary, src_lang="en_XX", tgt_lang="de_DE"))
    config = GTransformerConfig(**{**SIZES[size], "vocab_size": len(processor.tokenizer)})
    model = GTransformerForConditionalGeneration(config).eval()
    processor.configure(model)
    model.generation_config.update(max_length_a=0, max_length_b=WORDS, min_length=WORDS)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return words


def make_texts(words: list[str], number: int) -> list[str]:
    rng = random.Random(0)
    return ["\n".join(" ".join(rng.choices(words, k=WORDS)) for _ in range(SENTENCES)) for _ in range(number)]


class Server:
    """A server of a checkpoint in a process of its own."""

    def __init__(self, folder: str):
        with socket.create_server(("127.0.0.1", 0)) as sock:
            port = sock.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        options = ["--model", folder, "--port", str(port), "--splitter", "line", "--max_per_client", "1000"]
        command = [sys.executable, "-m", "modeling_gtransformer.server.serve", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def __enter__(self) -> "Server":
        while True:
            if self.process.poll() is not None:
                raise RuntimeError("The server did not start.")
            try:
                httpx2.get(f"{self.address}/health").raise_for_status()
                return self
            except httpx2.TransportError:
                time.sleep(0.1)

    def __exit__(self, *_: Any) -> None:
        self.process.terminate()
        self.process.wait()

    def memory(self) -> float:
        return memory_mb("RssAnon", self.process.pid)


async def load(address: str, texts: list[str], clients: int) -> tuple[list[float], int]:
    """Seconds that every answered request took, and how many requests got no complete answer."""
    waiting, seconds, lost = iter(texts), [], 0

    async def client(session: httpx2.AsyncClient) -> None:
        nonlocal lost
        for text in waiting:
            begun = time.perf_counter()
            try:
                answer = await session.post("/translate", json={"q": text, "source": "en", "target": "de"})
            except httpx2.TransportError:
                lost += 1
                continue
            seconds.append(time.perf_counter() - begun)
            complete = answer.status_code == 200 and answer.json()["translatedText"].count("\n") == SENTENCES - 1
            lost += not complete

    limits = httpx2.Limits(max_connections=clients)
    async with httpx2.AsyncClient(base_url=address, timeout=None, limits=limits) as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    return seconds, lost


def run_clients(server: Server, texts: list[str], clients: int) -> dict[str, float]:
    begun = time.perf_counter()
    seconds, lost = asyncio.run(load(server.address, texts, clients))
    figures = figures_of(seconds, time.perf_counter() - begun)
    return {**figures, "lost": lost, "memory_mb": server.memory()}


def run_directly(translate: Translator, texts: list[str]) -> dict[str, float]:
    seconds = []
    for text in texts:
        begun = time.perf_counter()
        translate(text)
        seconds.append(time.perf_counter() - begun)
    return figures_of(seconds, sum(seconds))


def run_together(translate: Translator, texts: list[str]) -> dict[str, float]:
    begun = time.perf_counter()
    documents = (NamedDocument(f"Document {number}", text) for number, text in enumerate(texts, 1))
    count = len(list(translate.pipeline.translate_all(documents)))
    return {"requests_per_second": count / (time.perf_counter() - begun)}


def figures_of(seconds: list[float], total: float) -> dict[str, float]:
    """Requests per second, and the median and the 99th percentile of their seconds."""
    percentiles = statistics.quantiles(seconds, n=100, method="inclusive")
    return {"requests_per_second": len(seconds) / total, "median": percentiles[49], "percentile_99": percentiles[98]}


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64], help="Numbers of clients.")
    parser.add_argument("--requests", type=int, default=256, help="Requests of a run, of all clients together.")
    parser.add_argument("--size", choices=[*SIZES], default="base", help="Size of the model.")
    parser.add_argument("--repeats", type=int, default=3, help="Runs of each kind, which take turns.")
    parser.add_argument("--name", default="serving", help="Name of the file of results.")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        texts = make_texts(save_checkpoint(folder, args.size), args.requests)
        translate = Translator(folder, splitter="line")
        translate(texts[0])
        results: list[dict[str, dict[str, float]]] = []
        with Server(folder) as server:
            run_clients(server, texts[:2], 1)
            for _ in range(args.repeats):
                row = {"direct": run_directly(translate, texts), "together": run_together(translate, texts)}
                for clients in args.clients:
                    row[f"{clients} clients"] = run_clients(server, texts, clients)
                show(f"{args.requests} requests", row)
                results.append(row)
    save(args.name, [sys.argv[0], *argv], {"size": args.size, "requests": args.requests, "repeats": results})


if __name__ == "__main__":
    main(sys.argv[1:])
