"""Start of a training: seconds from the recipe to the first batch, and memory.

    python benchmarks/startup.py [--sentences 10000 100000] [--segment_sentences 1000] [--words 250000]

Generates a corpus of random words, in documents of 20 sentences, and a tokenizer with 250,000 tokens like mBART25. The
training then starts twice, in new processes; the second start uses the cached segments of the first. Memory is RssAnon
(Linux), at the first batch and at its peak.
"""

import json
import os
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import yaml
from measure import alone, memory_mb, parse_options, save, show
from systems import SIZES, make_processor


WORDS_IN_SENTENCE, SENTENCES_IN_DOCUMENT = (8, 42), 20


class FirstBatchError(Exception):
    """Ends a training at its first batch."""


def write_documents(path: Path, sentences: int, words: list[str], rng: random.Random) -> str:
    def text() -> list[str]:
        counts = [rng.randint(*WORDS_IN_SENTENCE) for _ in range(SENTENCES_IN_DOCUMENT)]
        return [" ".join(rng.choices(words, k=count)) for count in counts]

    with path.open("w", encoding="utf-8") as file:
        for _ in range(sentences // SENTENCES_IN_DOCUMENT):
            print(json.dumps({"source": text(), "target": text()}), file=file)
    return str(path)


def start(recipe: str) -> dict[str, float]:
    """Starts a training in this process, and ends it at the first batch."""
    from modeling_gtransformer.training.experiment import train_recipe
    from modeling_gtransformer.training.trainer import GTransformerTrainer

    peak, begun = [memory_mb("RssAnon")], time.perf_counter()

    def watch() -> None:
        while True:
            peak[0] = max(peak[0], memory_mb("RssAnon"))
            time.sleep(0.01)

    def end(*args: Any) -> None:
        raise FirstBatchError

    threading.Thread(target=watch, daemon=True).start()
    GTransformerTrainer.training_step = end
    try:
        train_recipe([recipe])
    except FirstBatchError:
        return {"seconds": time.perf_counter() - begun, "memory_mb": memory_mb("RssAnon"), "peak_mb": peak[0]}
    raise RuntimeError("The training ended before its first batch.")


def main() -> None:
    args = parse_options(__doc__, sentences=[10000, 100000], segment_sentences=1000, words=250000, name="startup")
    rng = random.Random(0)
    words = [f"w{number}" for number in range(args.words)]
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_processor(words).save_pretrained(folder / "tokenizer")
        recipe = {
            "config": {key: value for key, value in SIZES["tiny"].items() if key != "vocab_size"},
            "tokenizer_name_or_path": str(folder / "tokenizer"),
            "src_lang": "en_XX",
            "tgt_lang": "de_DE",
            "validation_files": [write_documents(folder / "validation.jsonl", 100, words, rng)],
            "segment_sentences": args.segment_sentences,
            "max_steps": 1,
            "use_cpu": True,
            "report_to": "none",
            "disable_tqdm": True,
        }
        for sentences in args.sentences:
            recipe["train_files"] = [write_documents(folder / f"{sentences}.jsonl", sentences, words, rng)]
            os.environ["HF_DATASETS_CACHE"] = str(folder / f"{sentences}.cache")  # for the processes started below
            rows = results[str(sentences)] = {}
            for kind in ("first", "second"):
                output = folder / f"{sentences}.{kind}"
                file = output.with_suffix(f".{kind}.yaml")
                file.write_text(yaml.safe_dump({**recipe, "output_dir": str(output)}))
                rows[kind] = alone(start, str(file))
            show(f"{sentences} sentences", rows)
    save(args, args.name, results)


if __name__ == "__main__":
    main()
