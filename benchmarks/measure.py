"""Shared by all benchmarks: options, interleaved repeats, memory of a process, and a JSON file with its provenance."""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch.profiler import profile

from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.runtime.atomic_file import write_json


RESULTS = Path(__file__).parent / "results"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Names of operations that belong together, whole ones or, without `::`, parts; "other" is mostly element by element.
OPERATIONS = {
    "matrix products": ("aten::mm", "aten::addmm", "aten::addmm_", "linear_pointwise"),
    "packing of weights": ("mkldnn::_reorder_linear_weight",),
    "attention": ("scaled_dot_product", "SentenceAttention", "aten::bmm", "aten::baddbmm", "aten::_softmax"),
    "choice of tokens": ("aten::_log_softmax", "aten::topk", "aten::argmax", "aten::max", "aten::sort"),
    "dropout masks": ("aten::bernoulli_", "aten::random_"),
    "AdamW": ("aten::_fused_adamw_",),
    "clearing memory": ("aten::fill_", "aten::zero_"),
    "copies": ("aten::copy_", "aten::cat", "aten::index_select", "aten::index", "aten::gather", "aten::index_put_"),
}


def parse_options(description: str, **defaults: Any) -> argparse.Namespace:
    """
    Parses options that are described in the docstring of a script. A default determines the type of its option, a list
    an option of several values, `False` a flag, and `None` a required text.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    for name, default in defaults.items():
        if default is False:
            parser.add_argument(f"--{name}", action="store_true")
        elif isinstance(default, list):
            parser.add_argument(f"--{name}", type=type(default[0]), nargs="+", default=default)
        else:
            kind = str if default is None else type(default)
            parser.add_argument(f"--{name}", type=kind, default=default, required=default is None)
    parser.add_argument("--results", type=Path, default=RESULTS, help="Folder of the results file.")
    return parser.parse_args()


def save(args: argparse.Namespace, name: str, results: Any) -> None:
    """Writes `name.json` into the folder of the results, with the command, commit, hardware and versions."""
    path, command = args.results / f"{name}.json", list(sys.argv)
    if "--results" in command:  # a folder of this machine
        place = command.index("--results")
        del command[place : place + 2]
    write_json(path, {**provenance(command), "results": results})
    print(f"Written to {path}")


def show(setting: str, row: dict[str, dict[str, Any]]) -> None:
    """Prints the figures of every system."""
    for system, figures in row.items():
        rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in figures.items()}
        print(f"{setting}  {system:26} {json.dumps(rounded)}", flush=True)


def timed(run: Callable[[], Any]) -> float:
    """Seconds of a run, until the device has finished it."""
    start = time.perf_counter()
    run()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def interleaved(runs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of every run, after a warm-up, in turn: what slows the machine down slows all of them down."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            elapsed = timed(run)
            if repeat:
                seconds[name].append(elapsed)
    return seconds


def ratios(seconds: dict[str, list[float]], peer: str) -> dict[str, float]:
    """Speed of each run as a multiple of the peer's: the median over the repeats of the ratio within a repeat."""
    return {
        name: statistics.median(theirs / ours for ours, theirs in zip(times, seconds[peer], strict=True))
        for name, times in seconds.items()
    }


def speeds(seconds: dict[str, list[float]], units: int, unit: str, peer: str) -> dict[str, dict[str, float]]:
    """Units per second of every run, by the median of its repeats, and its speed as a multiple of the peer's."""
    ratio = ratios(seconds, peer)
    return {
        name: {f"{unit}_per_second": units / statistics.median(times), "speed_ratio": ratio[name]}
        for name, times in seconds.items()
    }


def seconds_by_operation(run: Callable[[], Any]) -> dict[str, float]:
    """Seconds of the operations of a run on the CPU, by kind, after a warm-up."""

    def kind_of(operation: str) -> str:
        for kind, parts in OPERATIONS.items():
            if any(operation == part if "::" in part else part in operation for part in parts):
                return kind
        return "other"

    run()
    with profile() as recorded:
        run()
    seconds = dict.fromkeys([*OPERATIONS, "other"], 0.0)
    for event in recorded.key_averages():
        seconds[kind_of(event.key)] += event.self_cpu_time_total / 1e6
    return seconds


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Result of a function in a fresh process, so that its peak memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        return executor.submit(function, *arguments).result()


def memory_mb(kind: str, process: int | None = None) -> float:
    """Megabytes of a process, by default of this one (Linux): "VmHWM" at its peak, "RssAnon" not backed by files."""
    # Not getrusage: its maximum includes that of the process which started this one.
    status = Path(f"/proc/{process or 'self'}/status").read_text()
    return int(status.split(f"{kind}:")[1].split()[0]) * 1024 / 1e6
