"""Loading a checkpoint of MBart: seconds and peak memory of `from_pretrained`, against MBart's own.

    python benchmarks/loading.py [--size mbart25] [--repeats 3]

Every model is loaded in a new process, in turn. The seconds leave out the imports. Memory is the peak (VmHWM, Linux)
with all weights in memory, above that of the imports. "gtransformer" loads MBart's weights, and draws those of global
attention and gates; "gtransformer, saved" loads its own checkpoint.
"""

import statistics
import tempfile
import time
from pathlib import Path

from measure import alone, memory_mb, parse_options, save, show
from systems import make_model
from transformers import MBartForConditionalGeneration

from modeling_gtransformer import GTransformerForConditionalGeneration


CLASSES = {
    "mbart": MBartForConditionalGeneration,
    "gtransformer": GTransformerForConditionalGeneration,
    "gtransformer, saved": GTransformerForConditionalGeneration,
}


def load(system: str, folder: str) -> dict[str, float]:
    """Loads a checkpoint in this process."""
    before, begun = memory_mb("VmHWM"), time.perf_counter()
    model = CLASSES[system].from_pretrained(folder)
    for parameter in model.parameters():  # weights that are mapped from the file are read now
        parameter.detach().sum()
    return {
        "seconds": time.perf_counter() - begun,
        "memory_mb": memory_mb("VmHWM") - before,
        "weights_mb": model.get_memory_footprint() / 1e6,
    }


def main() -> None:
    args = parse_options(__doc__, size="mbart25", repeats=3, name="loading")
    with tempfile.TemporaryDirectory() as name:
        folders = {system: str(Path(name) / system) for system in CLASSES}
        make_model("mbart", args.size).save_pretrained(folders["mbart"])
        make_model("gtransformer", args.size).save_pretrained(folders["gtransformer, saved"])
        folders["gtransformer"] = folders["mbart"]
        # The first turn reads the files into the page cache.
        turns = [
            {system: alone(load, system, folder) for system, folder in folders.items()}
            for _ in range(args.repeats + 1)
        ]
    rows = {
        system: {figure: statistics.median(turn[system][figure] for turn in turns[1:]) for figure in turns[0][system]}
        for system in CLASSES
    }
    for figures in rows.values():
        figures["times_seconds"] = figures["seconds"] / rows["mbart"]["seconds"]
        figures["memory_of_weights"] = figures["memory_mb"] / figures["weights_mb"]
    show(args.size, rows)
    save(args, args.name, rows)


if __name__ == "__main__":
    main()
