"""Training and decoding on one GPU, in under ten minutes, with random weights and documents.

    python benchmarks/gpu.py [--parts training decoding attention graphs] [--minutes 9] [--name gpu]

Everything runs in bfloat16:

    training   a step on a batch of documents, against MBart: tokens per second and peak memory
    decoding   documents of four sentences, greedily and with 5 beams, against MBart and without fast paths
    attention  group attention against dense attention and FlexAttention, forward and with the backward pass
    graphs     greedy steps that Transformers compiles and captures (`cache_implementation="static"`)

The script writes its results after every measurement. After `--minutes` it exits with status 3; run it again, and it
continues with the next measurement. On a CPU, use `--sizes tiny --decoded_sizes tiny --lengths 32 --tokens 32`.
"""

import argparse
import gc
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import attention
import torch
from decoding import WORDS, make_corpus, make_runs
from measure import DEVICE, interleaved, memory_mb, parse_options, ratios, save, show, speeds
from systems import SIZES, make_model
from training import make_batch, make_step

from modeling_gtransformer.evaluation.provenance import origin
from modeling_gtransformer.runtime.atomic_file import read_json


Row = dict[str, Any]
TRAINED = ["mbart", "mbart-sentences", "gtransformer", "gtransformer-k0"]
OURS = "gtransformer-bfloat16"
DECODED = ["mbart-bfloat16", "mbart-64-bfloat16", OURS, f"{OURS},sequential", f"{OURS},reference"]
DECODED += ["gtransformer-source-bfloat16"]
GRAPHS = [f"{OURS},sequential", f"{OURS},static"]


def measure_attention(length: int, backward: bool, repeats: int) -> Row:
    """Speeds as multiples of dense attention."""
    torch.compiler.reset()
    return {"speed_ratio": ratios(interleaved(attention.attention_runs(length, backward), repeats), "dense")}


def measure_training(size: str, length: int, documents: int, repeats: int) -> Row:
    """Tokens per second, and the peak of the device's memory (on a CPU, of the process so far)."""
    seconds, memory = {}, {}
    for system in TRAINED:
        free_memory()
        step = make_step(make_model(system, size), make_batch(system, length, documents), bfloat16=True)
        seconds |= interleaved({system: step}, repeats)
        memory[system] = torch.cuda.max_memory_allocated() / 1e9 if DEVICE == "cuda" else memory_mb("VmHWM") / 1e3
        del step
    rows = speeds(seconds, length * documents, "tokens", TRAINED[0])
    return {name: {**row, "peak_memory_gb": memory[name]} for name, row in rows.items()}


def measure_decoding(systems: list[str], size: str, sentences: int, documents: int, beams: int, repeats: int) -> Row:
    torch.compiler.reset()
    runs = make_runs(systems, size, make_corpus(documents, sentences), beams)
    tokens = documents * sentences * (WORDS + 1)
    return speeds(interleaved(runs, repeats), tokens, "tokens", systems[0])


def free_memory() -> None:
    gc.collect()
    if DEVICE == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


Measurements = Iterator[tuple[str, Callable[[], Row]]]


def measurements(args: argparse.Namespace) -> Measurements:
    """Name and function of every measurement, in the order of `--parts`."""
    for part in args.parts:
        if part == "training":
            yield from trainings(args)
        elif part == "attention":
            yield from attentions(args)
        else:
            yield from decodings(args, part, *{"decoding": (DECODED, args.beams), "graphs": (GRAPHS, [1])}[part])


def trainings(args: argparse.Namespace) -> Measurements:
    for size, length in product(args.sizes, args.lengths):
        if length <= SIZES[size]["max_position_embeddings"]:
            documents = max(args.tokens // length, 1)
            name = f"training, {size}, {documents} documents of {length} tokens"
            yield name, partial(measure_training, size, length, documents, args.repeats)


def decodings(args: argparse.Namespace, part: str, systems: list[str], beam_sizes: list[int]) -> Measurements:
    for size, documents, beams in product(args.decoded_sizes, args.documents, beam_sizes):
        name = f"{part}, {size}, {documents} documents, {beams} beams"
        yield name, partial(measure_decoding, systems, size, args.sentences, documents, beams, args.repeats)


def attentions(args: argparse.Namespace) -> Measurements:
    for length in args.lengths:
        for backward in (False, True) if DEVICE == "cuda" else (True,):  # a CPU compiles FlexAttention for long
            kind = "attention, backward" if backward else "attention"
            yield f"{kind}, {length} tokens", partial(measure_attention, length, backward, args.repeats)


def main(argv: list[str] | None = None) -> None:
    args = parse_options(
        __doc__,
        argv,
        parts=["training", "decoding", "attention", "graphs"],
        sizes=["base", "mbart25"],
        decoded_sizes=["base"],
        lengths=[512, 1024, 4096, 8192],
        tokens=8192,
        documents=[1, 16, 64],
        sentences=4,
        beams=[1, 5],
        repeats=2,
        minutes=9.0,
        name="gpu",
    )
    begun, file = time.monotonic(), args.results / f"{args.name}.json"
    record = read_json(file, {**origin(), "results": {}})
    if any(record[key] != value for key, value in origin().items()):
        raise SystemExit(f"{file} is of another commit, machine or version: choose another --name.")
    results = record["results"]
    for name, measure in measurements(args):
        if name in results:
            continue
        if time.monotonic() - begun > 60 * args.minutes:
            print(f"Out of time before {name!r}: run the same command again.")
            raise SystemExit(3)
        free_memory()
        try:
            results[name] = measure()
        except Exception as error:  # the other measurements go on
            traceback.print_exc()
            results[name] = {"failure": {"reason": f"{type(error).__name__}: {error}".partition("\n")[0]}}
        show(name, results[name])
        save(args, args.name, results)


if __name__ == "__main__":
    main()
