"""Training and decoding on one GPU, in under ten minutes, with random weights and documents.

    python benchmarks/gpu.py [--parts training decoding attention graphs] [--minutes 9] [--name gpu]

Everything runs in bfloat16:

    training   steps on documents of one length and of different lengths, against MBart: tokens per second, peak memory
    decoding   documents of four sentences, greedily and with 5 beams, against MBart and without fast paths
    attention  group attention against dense attention and FlexAttention, forward and with the backward pass
    graphs     greedy steps that Transformers compiles and captures (`cache_implementation="static"`)

The script writes its results after every measurement. After `--minutes` it exits with status 3; run it again, and it
continues with the next measurement. On a CPU, use `--sizes tiny --decoded_sizes tiny --lengths 32 --tokens 32`.
"""

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from random import Random
from typing import Any

import attention
import torch
from decoding import WORDS, make_corpus, make_runs
from measure import DEVICE, interleaved, memory_mb, parse_options, ratios, save, show, speeds
from systems import SIZES, make_model, make_sentences
from training import as_batch, make_batch, make_step

from modeling_gtransformer.evaluation.provenance import origin
from modeling_gtransformer.runtime.atomic_file import read_json


Row = dict[str, Any]
TRAINED = ["mbart", "mbart-sentences", "gtransformer", "gtransformer-k0"]
PADDED = ["mbart", "gtransformer", "gtransformer-k0"]
# Steps on batches of new shapes that one repeat takes.
STEPS = 3
OURS = "gtransformer-bfloat16"
DECODED = ["mbart-bfloat16", "mbart-64-bfloat16", OURS, f"{OURS},sequential", f"{OURS},reference"]
DECODED += ["gtransformer-source-bfloat16"]
GRAPHS = [f"{OURS},sequential", f"{OURS},static"]


def measure_attention(length: int, backward: bool, repeats: int) -> Row:
    """Speeds as multiples of dense attention."""
    torch.compiler.reset()
    return {"speed_ratio": ratios(interleaved(attention.attention_runs(length, backward), repeats), "dense")}


def measure_training(systems: list[str], size: str, batches: Callable[[str], list[Row]], repeats: int) -> Row:
    """Tokens per second, and the peak of the device's memory (on a CPU, of the process so far). The batches are
    divided among the warm-up and the repeats, so that new shapes stay new."""
    seconds, memory = {}, {}
    for system in systems:
        free_memory()
        given = batches(system)
        step, steps = make_step(make_model(system, size), given, bfloat16=True), range(len(given) // (repeats + 1))
        seconds |= interleaved({system: lambda step=step, steps=steps: [step() for _ in steps]}, repeats)
        memory[system] = torch.cuda.max_memory_allocated() / 1e9 if DEVICE == "cuda" else memory_mb("VmHWM") / 1e3
        tokens = sum(int(batch["attention_mask"].sum()) for batch in given[len(steps) :]) // repeats
        del step
    rows = speeds(seconds, tokens, "tokens", systems[0])
    return {name: {**row, "peak_memory_gb": memory[name]} for name, row in rows.items()}


def equal_batches(system: str, length: int, documents: int, repeats: int) -> list[Row]:
    return [make_batch(system, length, documents)] * (repeats + 1)


def unequal_batches(system: str, length: int, documents: int, repeats: int) -> list[Row]:
    """Batches of documents of a fifth up to the whole of a length, all of different shapes."""
    random, batches = Random(0), []
    for number in range(STEPS * (repeats + 1)):
        lengths = [random.randint(length // 5, length - number) for _ in range(documents - 1)]
        batches.append(as_batch([torch.cat(make_sentences(each)) for each in (*lengths, length - number)]))
    return batches


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


# Names and functions.
Measurements = Iterator[tuple[str, Callable[[], Row]]]


def trainings(args: argparse.Namespace) -> Measurements:
    for size, length in product(args.sizes, args.lengths):
        documents = max(args.tokens // length, 1)
        kinds = [(TRAINED, f"of {length} tokens", equal_batches)]
        if length == args.lengths[0]:
            kinds.append((PADDED, f"of up to {length} tokens", unequal_batches))
        for systems, name, make in kinds:
            if length <= SIZES[size]["max_position_embeddings"]:
                batches = partial(make, length=length, documents=documents, repeats=args.repeats)
                function = partial(measure_training, systems, size, batches, args.repeats)
                yield f"{size}, {documents} documents {name}", function


def decodings(args: argparse.Namespace, systems: list[str], beam_sizes: list[int]) -> Measurements:
    for size, documents, beams in product(args.decoded_sizes, args.documents, beam_sizes):
        name = f"{size}, {documents} documents, {beams} beams"
        yield name, partial(measure_decoding, systems, size, args.sentences, documents, beams, args.repeats)


def attentions(args: argparse.Namespace) -> Measurements:
    for length in args.lengths:
        for backward in (False, True) if DEVICE == "cuda" else (True,):  # a CPU compiles FlexAttention for long
            name = f"{length} tokens, {'with the backward pass' if backward else 'forward'}"
            yield name, partial(measure_attention, length, backward, args.repeats)


def main() -> None:
    args = parse_options(
        __doc__,
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
    parts = {
        "training": trainings(args),
        "decoding": decodings(args, DECODED, args.beams),
        "attention": attentions(args),
        "graphs": decodings(args, GRAPHS, [1]),
    }
    begun = time.monotonic()
    for part in args.parts:
        file = args.results / f"{args.name}-{part}.json"
        record = read_json(file, {**origin(), "results": {}})
        if any(record[key] != value for key, value in origin().items()):
            raise SystemExit(f"{file} is of another commit, machine or version: choose another --name.")
        for name, measure in parts[part]:
            if name in record["results"]:
                continue
            if time.monotonic() - begun > 60 * args.minutes:
                print(f"Out of time before {name!r} ({part}): run the same command again.")
                raise SystemExit(3)
            free_memory()
            try:
                row = measure()
            except torch.OutOfMemoryError as error:
                row = {"failure": {"reason": str(error).partition(".")[0]}}
            show(name, row)
            record["results"][name] = row
            save(args, file.stem, record["results"])


if __name__ == "__main__":
    main()
