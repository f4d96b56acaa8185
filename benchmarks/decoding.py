"""Generation: tokens per second of documents, against translators of single sentences or of documents as one sequence.

    python benchmarks/decoding.py [--documents 16] [--sentences 10] [--beams 1 5] [--repeats 2] [--name corpus]
    python benchmarks/decoding.py --documents 1 --sentences 19 --systems mbart gtransformer --name generation
    python benchmarks/decoding.py --size mbart25 --documents 1 --sentences 5 --beams 5 --name precision \\
        --systems gtransformer gtransformer-bfloat16 gtransformer-int8
    python benchmarks/decoding.py --profile --systems mbart-64 gtransformer,reference gtransformer

Weights are random; CTranslate2 gets MBart's, converted. Every sentence and every translation has 25 words.
Systems:

    mbart                MBart on documents, each as one sequence
    mbart-N              MBart on single sentences, N a batch
    gtransformer         context on both sides
    gtransformer-source  context in the encoder alone, and positions that count from the start of every sentence
    ctranslate2          CTranslate2 on single sentences, left out where it is not installed
    NAME-bfloat16, NAME-int8
    NAME,PATH            a G-Transformer without a fast path: unpacked, sequential, or reference (generation of
                         Transformers, and none of ours); static: with a static cache, whose greedy steps Transformers
                         compiles and captures on a GPU

Speeds are multiples of the fastest MBart, or else of the first system. `--profile` reports the seconds of each kind of
operation instead.
"""

import contextlib
import importlib.util
import multiprocessing
import statistics
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch
from measure import DEVICE, interleaved, parse_options, save, seconds_by_operation, show, speeds
from systems import BOS, SIZES, make_model, make_processor, make_sentences


WORDS = 25
# Tokens that MBart's tokenizer adds to a vocabulary (languages and <mask>), and pieces of ours that are not words.
ADDED_TOKENS, OTHER_PIECES, LANGUAGE = 26, 41, "de_DE"
SYSTEMS = ["mbart-32", "mbart-64", "gtransformer", "gtransformer-source", "ctranslate2"]
SYSTEMS += ["gtransformer-int8", "gtransformer-source-int8", "ctranslate2-int8"]
PATHS: dict[str, dict[str, Any]] = {
    "": {},
    "unpacked": {"pack_weights": False},
    "sequential": {"parallel_sentences": False},
    "reference": {"pack_weights": False, "parallel_sentences": False, "return_dict_in_generate": True},
    "static": {"pack_weights": False, "cache_implementation": "static"},
}


def make_corpus(documents: int, sentences: int) -> torch.Tensor:
    """Ids of random sentences, `(documents, sentences, words and <s> </s>)`."""
    count = documents * sentences
    return torch.stack(make_sentences(count * (WORDS + 2), (WORDS, WORDS))).view(documents, sentences, -1).to(DEVICE)


def gtransformer(system: str, size: str, corpus: torch.Tensor, beams: int) -> Callable[[], Any]:
    name, _, path = system.partition(",")
    model, documents = make_model(name, size).eval(), corpus.flatten(1)
    settings = {"max_length_a": 0, "max_length_b": WORDS, "min_length": WORDS, "num_beams": beams, **PATHS[path]}
    return lambda: model.generate(documents, do_sample=False, **settings)


def mbart(system: str, size: str, corpus: torch.Tensor, beams: int) -> Callable[[], Any]:
    """MBart, which generates as many tokens as its input has."""
    batch = next((int(part) for part in system.split("-") if part.isdigit()), 0)
    model, rows = make_model(system, size).eval(), corpus.flatten(0, 1) if batch else corpus.flatten(1)
    length = rows.shape[1] - 1
    settings = {"num_beams": beams, "do_sample": False, "min_new_tokens": length, "max_new_tokens": length}
    batches = rows.split(batch or len(rows))
    return lambda: [model.generate(each, **settings, decoder_start_token_id=BOS) for each in batches]


def ctranslate2(system: str, size: str, corpus: torch.Tensor, beams: int) -> Callable[[], Any]:
    """CTranslate2 in a process of its own, as two pools of OpenMP threads in one process slow each other."""
    connection, other_end = multiprocessing.Pipe()
    arguments = (other_end, system, size, corpus, beams, torch.get_num_threads())
    process = multiprocessing.get_context("spawn").Process(target=run_ctranslate2, args=arguments, daemon=True)
    process.start()
    other_end.close()
    connection.recv()  # it is ready

    def run() -> None:
        connection.send("translate")
        connection.recv()

    return run


def run_ctranslate2(
    connection: Connection, system: str, size: str, corpus: torch.Tensor, beams: int, threads: int
) -> None:
    """Translates the corpus whenever the other end of the connection asks for it."""
    import ctranslate2
    from ctranslate2.converters import TransformersConverter

    torch.set_num_threads(1)
    words = [f"w{number}" for number in range(SIZES[size]["vocab_size"] - ADDED_TOKENS - OTHER_PIECES)]
    tokenizer = make_processor(words).tokenizer
    model = make_model("mbart", size)
    model.config.update({"normalize_before": True, "normalize_embedding": True})  # which its converter asks for
    kind = "int8" if system.endswith("-int8") else "float32"
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        TransformersConverter(folder).convert(f"{folder}/converted", quantization=kind)
        translator = ctranslate2.Translator(f"{folder}/converted", compute_type=kind, intra_threads=threads)
    sentences = [tokenizer.convert_ids_to_tokens(ids) for ids in corpus.flatten(0, 1).tolist()]
    settings = {"beam_size": beams, "min_decoding_length": WORDS + 1, "max_decoding_length": WORDS + 1}
    prefix = [[LANGUAGE]] * len(sentences)
    connection.send("ready")
    with contextlib.suppress(EOFError):  # the benchmark has ended
        while connection.recv():
            translator.translate_batch(sentences, target_prefix=prefix, max_batch_size=64, **settings)
            connection.send("done")


def make_runs(systems: list[str], size: str, corpus: torch.Tensor, beams: int) -> dict[str, Callable[[], Any]]:
    """A function for each system that translates the corpus."""
    has_ctranslate2 = importlib.util.find_spec("ctranslate2") is not None
    makers = {"mbart": mbart, "gtransformer": gtransformer, "ctranslate2": ctranslate2}
    return {
        system: makers[system.partition(",")[0].partition("-")[0]](system, size, corpus, beams)
        for system in systems
        if has_ctranslate2 or not system.startswith("ctranslate2")
    }


def main() -> None:
    args = parse_options(
        __doc__,
        documents=16,
        sentences=10,
        beams=[1, 5],
        systems=SYSTEMS,
        size="base",
        repeats=2,
        profile=False,
        name="corpus",
    )
    corpus = make_corpus(args.documents, args.sentences)
    tokens = args.documents * args.sentences * (WORDS + 1)
    results: dict[str, Any] = {} if args.profile else {"sentences": args.documents * args.sentences}
    for beams in args.beams:
        runs = make_runs(args.systems, args.size, corpus, beams)
        if args.profile:
            row: dict[str, Any] = {name: seconds_by_operation(run) for name, run in runs.items()}
        else:
            seconds = interleaved(runs, args.repeats)
            peers = [name for name in runs if name.startswith("mbart")] or [next(iter(runs))]
            peer = min(peers, key=lambda name: statistics.median(seconds[name]))
            row = speeds(seconds, tokens, "tokens", peer)
        results[f"{beams} beams"] = row
        show(f"{beams} beams", row)
        runs.clear()  # ends the processes
    save(args, f"{args.name}-profile" if args.profile else args.name, results)


if __name__ == "__main__":
    main()
