"""Estimate of the memory of a training step on a GPU, from parameters and from what autograd saves on a CPU.

    python benchmarks/memory.py [--sizes base mbart25 mbart25-lora] [--cards 11 16 24 40 80]

Parameters, gradients and AdamW's two states take 16 bytes for each trained parameter, 20 on several GPUs, where
the gradients have a copy to be summed in; frozen ones take 4. What is saved for the backward pass is counted in
forward passes over one and over two documents of 512 tokens, in float32 and under autocast to bfloat16: a part for
each token, and a part for all (a second gradient of the embeddings, the weights in bfloat16). With checkpointing, one
layer is added, which is computed again. To that comes a chunk of logits with its gradient. A card is taken to have
90 % of its memory for all this, after 1 GB for CUDA itself. `gpu.py` measures it.
"""

from typing import Any

import torch
from measure import parse_options, save, saved_for_backward
from peft import LoraConfig
from systems import make_model
from training import make_batch

from modeling_gtransformer.document_loss import CHUNK_LOGITS, CHUNK_TOKENS
from modeling_gtransformer.training.recipe import read_recipe


DOCUMENT_TOKENS = 512


def make_trained(size: str) -> torch.nn.Module:
    model = make_model("gtransformer", size.removesuffix("-lora")).train()
    if size.endswith("-lora"):
        model.add_adapter(LoraConfig(**read_recipe("mbart25_lora")["lora"]))
    return model


def saved_bytes(model: torch.nn.Module, documents: int, bfloat16: bool) -> int:
    """Bytes that autograd saves of so many documents between forward and backward pass, parameters excepted."""
    batch = make_batch("gtransformer", DOCUMENT_TOKENS, documents)
    device = batch["input_ids"].device.type
    with saved_for_backward(model) as saved, torch.autocast(device, torch.bfloat16, enabled=bfloat16):
        loss = model(**batch, skip_logits=True).loss
    assert loss.requires_grad
    return sum(storage.nbytes() for storage in saved.values())


def per_token_and_for_all(model: torch.nn.Module, bfloat16: bool) -> tuple[float, float]:
    """Saved bytes of each token, and those that do not depend on the tokens."""
    one, two = (saved_bytes(model, documents, bfloat16) for documents in (1, 2))
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


def main(argv: list[str] | None = None) -> None:
    args = parse_options(__doc__, argv, sizes=["base", "mbart25", "mbart25-lora"], cards=[11, 16, 24, 40, 80])
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
    save(args, "memory", results)


if __name__ == "__main__":
    main()
