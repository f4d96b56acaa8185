"""Shared parts of all benchmarks: models, random documents, interleaved repeats, and a JSON that names its origin."""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.ao.quantization import quantize_dynamic
from torch.nn.utils.rnn import pad_sequence
from torch.profiler import profile
from transformers import MBartConfig, MBartForConditionalGeneration

from modeling_gtransformer import GTransformerConfig, GTransformerForConditionalGeneration
from modeling_gtransformer.atomic_file import write_json
from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.sentence_level_models import ONLY_GROUP


PAD, END_OF_DOCUMENT = 1, 31999
# 6+6 layers of the base Transformer; 8200 positions, as the longest documents have 8192 tokens.
BASE = {
    "vocab_size": 32000,
    "d_model": 512,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 2048,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "max_position_embeddings": 8200,
    "dropout": 0.1,
    "scale_embedding": True,
}
MBART25 = BASE | {
    "vocab_size": 250027,
    "d_model": 1024,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "max_position_embeddings": 1024,
}
SIZES = {"base": BASE, "mbart25": MBART25}
SYSTEMS: dict[str, dict[str, Any]] = {
    "gtransformer": {},
    "gtransformer-k0": ONLY_GROUP,
    "gtransformer-source": {"decoder_global_layers": 0, "cross_global_layers": 0, "position_scope": "sentence"},
    "gtransformer-eager": {},
}


def make_model(system: str, size: str = "base") -> torch.nn.Module:
    """A randomly initialised "mbart" or "mbart-sentences" (Transformers' own, SDPA), "gtransformer" (K = 2),
    "gtransformer-k0", "gtransformer-source" (source context alone), or "gtransformer-eager", the reference path.
    "-compiled" behind it has `torch.compile` do what it can; "-bfloat16" or "-int8" prepare it for serving."""
    torch.manual_seed(0)
    if system.endswith("-bfloat16"):
        return make_model(system.removesuffix("-bfloat16"), size).to(torch.bfloat16)
    if system.endswith("-compiled"):
        model = make_model(system.removesuffix("-compiled"), size)
        model.compile()
        return model
    if system.endswith("-int8"):
        return quantize_dynamic(make_model(system.removesuffix("-int8"), size).eval(), {torch.nn.Linear})
    if system.startswith("mbart"):
        return MBartForConditionalGeneration(MBartConfig(**SIZES[size]))
    model = GTransformerForConditionalGeneration(GTransformerConfig(**SIZES[size], **SYSTEMS[system]))
    model.generation_config.eos_token_id = END_OF_DOCUMENT
    if system == "gtransformer-eager":
        model.set_attn_implementation("eager")
    return model


def make_document(tokens: int) -> torch.Tensor:
    """A document `(1, tokens)` of random sentences of 8 to 42 words, 25 on average, as in the paper's corpora."""
    generator = torch.Generator().manual_seed(0)
    ids: list[int] = []
    while len(ids) < tokens:
        words = min(int(torch.randint(8, 43, (1,), generator=generator)), max(tokens - len(ids) - 2, 1))
        ids += [0, *torch.randint(4, 31000, (words,), generator=generator).tolist(), 2]
    ids = ids[:tokens]
    ids[-1] = 2
    return torch.tensor([ids])


def make_source(system: str, tokens: int) -> dict[str, torch.Tensor]:
    """Inputs of a system for one document: the document as one row, or a row for each of its sentences."""
    ids = make_document(tokens)
    if system == "mbart-sentences":
        sentences = ids[0].tensor_split((ids[0] == 0).nonzero()[1:, 0].tolist())
        ids = pad_sequence(sentences, batch_first=True, padding_value=PAD)
    return {"input_ids": ids, "attention_mask": ids.ne(PAD).long()}


def interleaved(runs: dict[str, Callable[[], None]], repeats: int) -> dict[str, list[float]]:
    """Seconds of every run, after a warm-up, in turn: what slows the machine down slows all of them down."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if repeat:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratios(seconds: dict[str, list[float]], peer: str) -> dict[str, float]:
    """Speed of each run as a multiple of the peer's: the median over the repeats of the ratio within a repeat."""
    return {
        name: statistics.median(theirs / ours for ours, theirs in zip(times, seconds[peer], strict=True))
        for name, times in seconds.items()
    }


def seconds_by_kind(run: Callable[[], Any], kinds: dict[str, tuple[str, ...]], repeats: int = 3) -> dict[str, float]:
    """
    Seconds of the operations of a run, by kind: medians over the repeats, after a warm-up.

    Args:
        kinds: names of operations that belong together, whole ones or, without `::`, parts; the rest is "other".
    """

    def kind_of(operation: str) -> str:
        for kind, parts in kinds.items():
            if any(operation == part if "::" in part else part in operation for part in parts):
                return kind
        return "other"

    run()
    seconds: dict[str, list[float]] = {kind: [0.0] * repeats for kind in [*kinds, "other"]}
    for repeat in range(repeats):
        with profile() as recorded:
            run()
        for event in recorded.key_averages():
            seconds[kind_of(event.key)][repeat] += event.self_cpu_time_total / 1e6
    return {kind: statistics.median(times) for kind, times in seconds.items()}


@contextmanager
def kept_for_the_gradient(model: torch.nn.Module) -> Iterator[dict[int, torch.UntypedStorage]]:
    """Gathers the storages that autograd keeps for the backward pass, by their address; parameters are left out."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(saved: torch.Tensor) -> torch.Tensor:
        storage = saved.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = storage
        return saved.detach()  # the tensor itself would refer to the graph that keeps it, and never be freed

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
        yield kept


def show(setting: str, row: dict[str, dict[str, float]]) -> None:
    """Prints the figures of every system."""
    for system, figures in row.items():
        rounded = {name: round(value, 3) for name, value in figures.items()}
        print(f"{setting}  {system:26} {json.dumps(rounded)}", flush=True)


def save(name: str, command: list[str], results: Any) -> None:
    """Writes `results/<name>.json` with everything one needs to judge the figures."""
    path = Path(__file__).parent / "results" / f"{name}.json"
    write_json(path, {**provenance(command), "results": results})
    print(f"Written to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
