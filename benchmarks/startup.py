"""Start of a training: seconds from the recipe to the first batch on the model, and memory.

    python benchmarks/startup.py [--sentences 10000 100000] [--segment_sentences 1] [--peer CHECKOUT] [--name startup]

A corpus of random words is made, of documents of 20 sentences, and a tokenizer with the 250,027 tokens of mBART25.
Then `train/train.py` is started twice: the second start finds the segments of the first one on the disk. The peer is
another checkout of this repository, e.g. `git worktree add CHECKOUT COMMIT`, started once. Every start is a process of
its own; its memory is what no file backs (RssAnon, Linux), at the first batch and at its peak.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import yaml
from own_process import memory_mb, report, run_alone
from transformers import MBartTokenizer


WORDS = 250001  # with the language codes and <mask> that the tokenizer adds: 250,027 tokens
TINY = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "encoder_layers": 2, "decoder_layers": 2}
TINY |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2}


def make_words(rng: random.Random) -> list[str]:
    """As many different words as the vocabulary has pieces beside its special tokens and letters."""
    words: set[str] = set()
    while len(words) < WORDS - 4 - 27:
        words.add("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))))
    return sorted(words)


def make_tokenizer(words: list[str], folder: str) -> None:
    specials = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    pieces = ["▁", *"abcdefghijklmnopqrstuvwxyz", *(f"▁{word}" for word in words)]
    vocab = [*specials, *((piece, -8 - rank / len(pieces)) for rank, piece in enumerate(pieces))]
    MBartTokenizer(vocab=vocab, src_lang="en_XX", tgt_lang="de_DE").save_pretrained(folder)


def write_documents(path: Path, sentences: int, words: list[str], rng: random.Random) -> str:
    """Documents of 20 sentences of 8 to 42 words."""

    def text() -> list[str]:
        return [" ".join(rng.choices(words, k=rng.randint(8, 42))) for _ in range(20)]

    with path.open("w", encoding="utf-8") as file:
        for _ in range(sentences // 20):
            print(json.dumps({"source": text(), "target": text()}), file=file)
    return str(path)


def start(checkout: Path, recipe: Path, cache: Path) -> dict[str, float]:
    """Seconds and memory of a start of a checkout's training."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "HF_DATASETS_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    return run_alone("--one", str(recipe), environment=environment)


def start_here(recipe: str) -> None:
    """Starts a training in this process, which ends with the first batch."""
    from modeling_gtransformer.training.trainer import GTransformerTrainer
    from train.train import main as train

    peak, begun = [memory_mb("RssAnon")], time.perf_counter()

    def watch() -> None:
        while True:
            peak[0] = max(peak[0], memory_mb("RssAnon"))
            time.sleep(0.01)

    def end(*args: Any) -> None:
        seconds, memory = time.perf_counter() - begun, memory_mb("RssAnon")
        report({"seconds": seconds, "memory_mb": memory, "peak_mb": peak[0]})
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    GTransformerTrainer.training_step = end
    train([recipe])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, nargs="+", default=[10000, 100000])
    parser.add_argument("--segment_sentences", type=int, help="Upper bound on the sentences of a segment.")
    parser.add_argument("--peer", type=Path, help="Another checkout to start as well.")
    parser.add_argument("--name", default="startup", help="Name of the file of results.")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # the process that is measured
    args = parser.parse_args()
    if args.one:
        start_here(args.one)
        return
    # Not in the process of the peer, whose modules may have other names.
    from measure import save

    from modeling_gtransformer.evaluation import provenance

    rng = random.Random(0)
    results: dict[str, Any] = {"peer": provenance.commit_of(args.peer)} if args.peer else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = make_words(rng)
        make_tokenizer(words, str(folder / "tokenizer"))
        validation = write_documents(folder / "validation.jsonl", 100, words, rng)
        for sentences in args.sentences:
            values = {
                "config": TINY,
                "tokenizer_name_or_path": str(folder / "tokenizer"),
                "src_lang": "en_XX",
                "tgt_lang": "de_DE",
                "train_files": [write_documents(folder / f"{sentences}.jsonl", sentences, words, rng)],
                "validation_files": [validation],
                "segment_sentences": args.segment_sentences,
                "max_steps": 1,
                "use_cpu": True,
                "report_to": "none",
                "disable_tqdm": True,
            }
            starts = {"peer": args.peer} if args.peer else {}
            starts |= {"first": provenance.ROOT, "second": provenance.ROOT}
            rows = results[str(sentences)] = {}
            for kind, checkout in starts.items():
                recipe = folder / f"{kind}.yaml"
                recipe.write_text(yaml.safe_dump({**values, "output_dir": str(folder / f"{sentences}.{kind}")}))
                rows[kind] = start(checkout, recipe, folder / f"{sentences}.cache")
                print(f"{sentences} sentences, {kind}: {rows[kind]}", flush=True)
    save(args.name, sys.argv, results)


if __name__ == "__main__":
    main()
