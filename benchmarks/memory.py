"""Estimate of the memory of a training step on a GPU, from parameters and from what autograd keeps on a CPU.

    python benchmarks/memory.py [--sizes base mbart25 mbart25-lora] [--cards 11 16 24 40 80]

Parameters, gradients and AdamW's two states take 16 bytes for each trained parameter, 20 on several GPUs, where
the gradients have a copy to be summed in; frozen ones take 4. What is kept for the gradient is counted in forward
passes over one and over two documents of 512 tokens, in float32 and under autocast to bfloat16: a part for each
token, and a part for all (a second gradient of the embeddings, the weights in bfloat16). With checkpointing, one
layer is added, which is computed again. To that comes a chunk of logits with its gradient. A card is taken to have
90 % of its memory for all this, after 1 GB for CUDA itself. Nothing was measured on a GPU.
"""

import argparse
import sys
from typing import Any

import torch
from measure import kept_for_the_gradient, make_model, make_source, save
from peft import LoraConfig

from modeling_gtransformer.document_loss import CHUNK_LOGITS, CHUNK_TOKENS
from modeling_gtransformer.evaluation.provenance import ROOT
from modeling_gtransformer.training.recipe import read_recipe


DOCUMENT_TOKENS = 512
LORA = read_recipe(ROOT / "train" / "recipes" / "mbart25_lora.yaml")["lora"]


def make_trained(size: str) -> torch.nn.Module:
    model = make_model("gtransformer", size.removesuffix("-lora")).train()
    if size.endswith("-lora"):
        model.add_adapter(LoraConfig(**LORA))
    return model


def kept_bytes(model: torch.nn.Module, documents: int, bfloat16: bool) -> int:
    """Bytes that autograd keeps of so many documents between forward and backward pass, parameters excepted."""
    batch = {name: rows.repeat(documents, 1) for name, rows in make_source("gtransformer", DOCUMENT_TOKENS).items()}
    ids = batch["input_ids"]
    with kept_for_the_gradient(model) as kept, torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        loss = model(**batch, decoder_input_ids=ids, labels=ids.roll(-1, dims=1), skip_logits=True).loss
    assert loss.requires_grad
    return sum(storage.nbytes() for storage in kept.values())


def per_token_and_for_all(model: torch.nn.Module, bfloat16: bool) -> tuple[float, float]:
    """Kept bytes of each token, and those that do not depend on the tokens."""
    one, two = (kept_bytes(model, documents, bfloat16) for documents in (1, 2))
    return (two - one) / DOCUMENT_TOKENS, 2 * one - two


def estimate(size: str, bfloat16: bool) -> dict[str, Any]:
    """Parameters, and bytes: of a process whatever the batch, and for each token of the batch."""
    model = make_trained(size)
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    frozen = sum(parameter.numel() for parameter in model.parameters()) - trained
    logits = max(CHUNK_LOGITS, CHUNK_TOKENS * model.config.vocab_size)
    per_token, for_all = per_token_and_for_all(model, bfloat16)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    checkpoints, _ = per_token_and_for_all(model, bfloat16)
    layers = model.config.encoder_layers + model.config.decoder_layers
    fixed = 16 * trained + 4 * frozen + for_all + 8 * logits
    return {
        "trained_parameters": trained,
        "frozen_parameters": frozen,
        "fixed_bytes": {"one GPU": fixed, "several GPUs": fixed + 4 * trained},
        "bytes_per_token": {"": per_token, " with checkpointing": checkpoints + per_token / layers},
    }


def tokens_on(card: int, fixed: float, per_token: float) -> int:
    """Tokens of a batch, in hundreds, that fit on a card of so many GB; 0 if not even a document does."""
    tokens = (0.9 * (card - 1) * 1e9 - fixed) / per_token
    return int(tokens // 100 * 100) if tokens >= DOCUMENT_TOKENS else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["base", "mbart25", "mbart25-lora"])
    parser.add_argument("--cards", type=int, nargs="+", default=[11, 16, 24, 40, 80], help="Their memory in GB.")
    args = parser.parse_args()
    results: dict[str, Any] = {}
    for size in args.sizes:
        for bfloat16 in (False, True):
            row = estimate(size, bfloat16)
            row["max_tokens"] = {
                f"{gpus}{checkpointing}": {card: tokens_on(card, fixed, per_token) for card in args.cards}
                for gpus, fixed in row["fixed_bytes"].items()
                for checkpointing, per_token in row["bytes_per_token"].items()
            }
            results[f"{size}, {'bfloat16' if bfloat16 else 'float32'}"] = row
            print(f"{size}, bfloat16 {bfloat16}: {row}", flush=True)
    save("memory", sys.argv, results)


if __name__ == "__main__":
    main()
