"""Training step on one document: time and peak memory against MBart of the same size on the document as one sequence.

    python benchmarks/training.py [--lengths 512 1024 2048 4096 8192] [--size base] [--repeats 5]

A step is forward, backward and AdamW, in float32, with dropout and without activation checkpointing. Its floor is what
its matrix products and attention take at the rate of a large matrix product, measured in the same run.
"""

import argparse
import math
import statistics
import sys
import time

import torch
from measure import PAD, interleaved, make_model, make_source, ratios, save, show
from own_process import memory_mb, report, run_alone
from torch.utils.flop_counter import FlopCounterMode


ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
ATTENTION_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
# Operators that the counter of torch does not know; causal attention counts in full, although half of it is skipped.
OPERATIONS = {
    torch.ops.aten.addmm_: lambda _, left, right, **__: 2 * left[0] * left[1] * right[1],
    ATTENTION: lambda query, key, *_, **__: 4 * math.prod(query) * key[2],
    ATTENTION_BACKWARD: lambda _, query, key, *__, **___: 10 * math.prod(query) * key[2],
}


def make_step(system: str, size: str, length: int, encoder_only: bool = False):
    """A function that trains one step."""
    model = make_model(system, size).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    batch = make_source(system, length)
    if encoder_only:
        model = model.get_encoder()
    else:
        ids = batch["input_ids"]
        batch |= {"decoder_input_ids": ids, "labels": ids.roll(-1, dims=1).masked_fill(ids == PAD, -100)}

    def step() -> None:
        output = model(**batch)
        (output.last_hidden_state.mean() if encoder_only else output.loss).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def operations(step) -> int:
    """Floating point operations of the matrix products and the attention of a step, two per multiplication."""
    with FlopCounterMode(display=False, custom_mapping=OPERATIONS) as counter:
        step()
    return counter.get_total_flops()


def matrix_product_rate() -> float:
    """Operations per second of the product of two large matrices, the best of several."""
    matrix = torch.randn(2048, 2048)
    matrix @ matrix
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - start)
    return 2 * 2048**3 / min(seconds)


def train_alone(system: str, size: str, length: int) -> dict[str, float]:
    """Peak memory in GB of this process, which trains two steps, and seconds of the second step."""
    step = make_step(system, size, length)
    step()
    start = time.perf_counter()
    step()
    seconds = time.perf_counter() - start
    return {"peak_memory_gb": memory_mb("VmHWM") / 1e3, "seconds": seconds}


def measure(args: argparse.Namespace, length: int) -> dict[str, dict[str, float]]:
    """Figures of every system on a document of so many tokens; the first system is the peer."""
    systems, peer = args.systems, args.systems[0]
    alone = [
        {name: run_alone("--one", name, "--size", args.size, "--lengths", str(length)) for name in systems}
        for _ in range(args.repeats if args.apart else 1)
    ]
    memory = {name: max(repeat[name]["peak_memory_gb"] for repeat in alone) for name in systems}
    rows = {name: {"peak_memory_gb": memory[name], "memory_ratio": memory[name] / memory[peer]} for name in systems}
    seconds, work = {name: [repeat[name]["seconds"] for repeat in alone] for name in systems}, {}
    if not args.apart:
        steps = {name: make_step(name, args.size, length, args.encoder) for name in systems}
        seconds = interleaved(steps, args.repeats)
        work = {name: operations(step) for name, step in steps.items()}
    speed, rate = ratios(seconds, peer), matrix_product_rate()
    for name, row in rows.items():
        median = statistics.median(seconds[name])
        row["tokens_per_second"], row["speed_ratio"] = length / median, speed[name]
        if work:
            row["gflop_per_token"] = work[name] / length / 1e9
            row["share_of_matrix_rate"] = work[name] / median / rate
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 1024, 2048, 4096, 8192])
    parser.add_argument("--size", choices=("base", "mbart25"), default="base")
    parser.add_argument("--systems", nargs="+", default=["mbart", "gtransformer", "gtransformer-k0"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--apart",
        action="store_true",
        help="Run each model and repeat in a process of its own, where two models do not fit into memory.",
    )
    parser.add_argument(
        "--encoder", action="store_true", help="Time the encoder alone; the memory is that of the whole model."
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)  # the process whose memory is measured
    args = parser.parse_args()
    if args.repeats < 1:
        parser.error("--repeats must be at least 1.")
    if args.apart and args.encoder:
        parser.error("--apart trains whole models: leave --encoder or --apart out.")
    if args.one:
        report(train_alone(args.one, args.size, args.lengths[0]))
        return

    results = {}
    for length in args.lengths:
        results[length] = measure(args, length)
        show(f"{length:5} tokens", results[length])
        compiled = any(system.endswith("-compiled") for system in args.systems)
        save(f"training-{args.size}{'-encoder' * args.encoder}{'-compiled' * compiled}", sys.argv, results)


if __name__ == "__main__":
    main()
