"""Training step: tokens per second and peak memory, against MBart of equal size on the document as one sequence.

    python benchmarks/training.py [--lengths 512 1024 2048 4096 8192] [--size base] [--repeats 5]
    python benchmarks/training.py --size small --documents 16 --lengths 252 --words 3 14 --repeats 5 \\
        --systems mbart-sentences gtransformer --name short_documents

A step is forward, backward and AdamW on a batch of documents with a length in tokens, in float32, with dropout and
without activation checkpointing. Its lower bound is the time of its matrix products and attention at the rate of a
large matrix product, measured in this run. The first system is the baseline; `mbart-sentences` reads single sentences.
"""

import argparse
import math
import statistics
from collections.abc import Callable, Iterable
from itertools import cycle
from typing import Any

import torch
from measure import DEVICE, alone, interleaved, memory_mb, parse_options, save, show, speeds, timed
from systems import PAD, make_model, make_sentences
from torch.nn.utils.rnn import pad_sequence
from torch.utils.flop_counter import FlopCounterMode


ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
ATTENTION_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
# Operators that torch's counter lacks; causal attention counts in full, although half of it is skipped.
OPERATORS = {
    torch.ops.aten.addmm_: lambda _, left, right, **__: 2 * left[0] * left[1] * right[1],
    ATTENTION: lambda query, key, *_, **__: 4 * math.prod(query) * key[2],
    ATTENTION_BACKWARD: lambda _, query, key, *__, **___: 10 * math.prod(query) * key[2],
}


def make_batch(system: str, length: int, documents: int = 1, words: tuple[int, int] = (8, 42)) -> dict[str, Any]:
    """Makes a batch of documents of `length` tokens, one row each or one per sentence, with the source as target."""
    sentences = make_sentences(length, words)
    rows = sentences if system.startswith("mbart-sentences") else [torch.cat(sentences)]
    return as_batch(rows * documents)


def as_batch(rows: list[torch.Tensor]) -> dict[str, Any]:
    """A batch of these rows of ids, with the source as target."""
    ids = pad_sequence(rows, batch_first=True, padding_value=PAD).to(DEVICE)
    labels = ids.roll(-1, dims=1).masked_fill(ids == PAD, -100)
    return {"input_ids": ids, "attention_mask": ids.ne(PAD).long(), "decoder_input_ids": ids, "labels": labels}


def make_step(model: torch.nn.Module, batches: Iterable[dict[str, Any]], bfloat16: bool = False) -> Callable[[], None]:
    """Makes a function that runs a training step on the next of the batches, over and over again, optionally under
    autocast to bfloat16."""
    optimizer, remaining = torch.optim.AdamW(model.train().parameters(), lr=1e-5, fused=True), cycle(batches)

    def step() -> None:
        batch = next(remaining)
        with torch.autocast(batch["input_ids"].device.type, torch.bfloat16, enabled=bfloat16):
            loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def operations(step: Callable[[], None]) -> int:
    """Counts floating point operations of matrix products and attention in a step, two per multiplication."""
    with FlopCounterMode(display=False, custom_mapping=OPERATORS) as counter:
        step()
    return counter.get_total_flops()


def matrix_product_rate() -> float:
    """Returns the operations per second of a large matrix product, the best of several."""
    matrix = torch.randn(2048, 2048)
    return 2 * 2048**3 / min(timed(lambda: matrix @ matrix) for _ in range(6))


def peak_memory_gb(system: str, args: argparse.Namespace, length: int) -> float:
    """Returns the peak memory of this process after two training steps."""
    step = make_step(make_model(system, args.size), [make_batch(system, length, args.documents, tuple(args.words))])
    step()
    step()
    return memory_mb("VmHWM") / 1e3


def measure(args: argparse.Namespace, length: int) -> dict[str, dict[str, float]]:
    """Returns the figures of every system on documents of `length` tokens."""
    peer, tokens = args.systems[0], length * args.documents
    memory = {name: alone(peak_memory_gb, name, args, length) for name in args.systems}
    batches = {name: make_batch(name, length, args.documents, tuple(args.words)) for name in args.systems}
    steps = {name: make_step(make_model(name, args.size), [batches[name]]) for name in args.systems}
    seconds, rate = interleaved(steps, args.repeats), matrix_product_rate()
    rows = speeds(seconds, tokens, "tokens", peer)
    work = {name: operations(step) for name, step in steps.items()}
    for name, row in rows.items():
        row |= {"peak_memory_gb": memory[name], "memory_ratio": memory[name] / memory[peer]}
        row |= {"gflop_per_token": work[name] / tokens / 1e9, "ratio_of_operations": work[peer] / work[name]}
        row["share_of_matrix_rate"] = work[name] / statistics.median(seconds[name]) / rate
    return rows


def main() -> None:
    args = parse_options(
        __doc__,
        lengths=[512, 1024, 2048, 4096, 8192],
        size="base",
        systems=["mbart", "gtransformer", "gtransformer-k0"],
        documents=1,
        words=[8, 42],
        repeats=5,
        name="",
    )
    results = {}
    for length in args.lengths:
        results[length] = measure(args, length)
        show(f"{length:5} tokens", results[length])
        save(args, args.name or f"training-{args.size}", results)


if __name__ == "__main__":
    main()
