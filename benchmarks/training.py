"""Training step on one document: time and peak memory against MBart of the same size on the document as one sequence.

    python benchmarks/training.py [--lengths 512 1024 2048 4096 8192] [--size base] [--repeats 5]

A step is forward, backward and AdamW, in float32, with dropout and without activation checkpointing.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path


sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from benchmarks.measure import interleaved, make_document, make_model, ratios, save


def make_step(system: str, size: str, length: int):
    """A function that trains one step."""
    model = make_model(system, size).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    ids = make_document(length)
    batch = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "decoder_input_ids": ids,
        "labels": ids.roll(-1, dims=1),
    }

    def step() -> None:
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def peak_memory(system: str, size: str, length: int) -> float:
    """Peak resident memory, in GB, of a process that trains two steps (Linux)."""
    command = [sys.executable, __file__, "--one", system, "--size", size, "--lengths", str(length)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[512, 1024, 2048, 4096, 8192])
    parser.add_argument("--size", choices=("base", "mbart25"), default="base")
    parser.add_argument("--systems", nargs="+", default=["mbart", "gtransformer", "gtransformer-k0"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--one", help=argparse.SUPPRESS)  # the process whose memory is measured
    args = parser.parse_args()
    if args.one:
        step = make_step(args.one, args.size, args.lengths[0])
        step()
        step()
        # Not getrusage: on Linux its maximum includes that of the process which started this one.
        status = Path("/proc/self/status").read_text()
        print(int(status.split("VmHWM:")[1].split()[0]) / 1e6)
        return

    results = {}
    for length in args.lengths:
        memory = {system: peak_memory(system, args.size, length) for system in args.systems}
        seconds = interleaved({system: make_step(system, args.size, length) for system in args.systems}, args.repeats)
        speed = ratios(seconds, "mbart")
        results[length] = {
            system: {
                "tokens_per_second": length / statistics.median(seconds[system]),
                "speed_ratio": speed[system],
                "peak_memory_gb": memory[system],
                "memory_ratio": memory[system] / memory["mbart"],
            }
            for system in args.systems
        }
        for system, row in results[length].items():
            print(
                f"{length:5} tokens  {system:18} {row['tokens_per_second']:7.0f} tokens/s  x {row['speed_ratio']:.2f}"
                f"   {row['peak_memory_gb']:5.2f} GB  x {row['memory_ratio']:.2f}",
                flush=True,
            )
    save(f"training-{args.size}", sys.argv, results)


if __name__ == "__main__":
    main()
