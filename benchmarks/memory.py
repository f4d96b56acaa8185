"""Estimate of GPU memory for a training step, from parameters and from the tensors that autograd saves on a CPU.

    python benchmarks/memory.py [--sizes base mbart25 mbart25-lora] [--cards 11 16 24 40 80]

A trained parameter takes 16 bytes for parameter, gradient and AdamW's two states, or 20 on several GPUs, which sum
gradients in a copy. A frozen parameter takes 4 bytes. Forward passes over one and two documents of 512 tokens, in
float32 and under autocast to bfloat16, measure saved bytes per token and a fixed part (a second gradient of the
embeddings, weights in bfloat16). Checkpointing adds one recomputed layer. A chunk of logits and its gradient are
added, too. Of a card's memory, 1 GB is reserved for CUDA, and 90 % of the rest is available. `gpu.py` measures actual
memory.
"""

from typing import Any

import torch
from measure import DEVICE, parse_options, save
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
    """Returns the bytes that autograd saves between forward and backward pass, without parameters."""
    batch = make_batch("gtransformer", DOCUMENT_TOKENS, documents)
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    saved: dict[int, torch.UntypedStorage] = {}

    def gather(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            saved[storage.data_ptr()] = storage
        return tensor.detach()  # the tensor itself would refer to its graph, and never be freed

    hooks = torch.autograd.graph.saved_tensors_hooks(gather, lambda tensor: tensor)
    with hooks, torch.autocast(DEVICE, torch.bfloat16, enabled=bfloat16):
        loss = model(**batch, skip_logits=True).loss
    assert loss.requires_grad
    return sum(storage.nbytes() for storage in saved.values())


def per_token_and_for_all(model: torch.nn.Module, bfloat16: bool) -> tuple[float, float]:
    """Returns saved bytes per token, and saved bytes independent of tokens."""
    one, two = (saved_bytes(model, documents, bfloat16) for documents in (1, 2))
    return (two - one) / DOCUMENT_TOKENS, 2 * one - two


def estimate(size: str, bfloat16: bool) -> dict[str, Any]:
    """Returns numbers of parameters, fixed bytes of a process, and bytes per token of the batch."""
    model = make_trained(size)
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    frozen = sum(parameter.numel() for parameter in model.parameters()) - trained
    logits = max(CHUNK_LOGITS, CHUNK_TOKENS * model.config.vocab_size)
    per_token, for_all = per_token_and_for_all(model, bfloat16)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    checkpoints, _ = per_token_and_for_all(model, bfloat16)
    layers = model.config.encoder_layers + model.config.decoder_layers
    # A logit takes 8 bytes in bfloat16, and some reserve.
    fixed = 16 * trained + 4 * frozen + for_all + 10 * logits
    return {
        "trained_parameters": trained,
        "frozen_parameters": frozen,
        "fixed_bytes": {"one GPU": fixed, "several GPUs": fixed + 4 * trained},
        "bytes_per_token": {"": per_token, " with checkpointing": checkpoints + per_token / layers},
    }


def tokens_on(card: int, fixed: float, per_token: float) -> int:
    """Returns the tokens of a batch, in hundreds, that fit on a card with this many GB; 0 if no document fits."""
    tokens = (0.9 * (card - 1) * 1e9 - fixed) / per_token
    return int(tokens // 100 * 100) if tokens >= DOCUMENT_TOKENS else 0


def main() -> None:
    args = parse_options(__doc__, sizes=["base", "mbart25", "mbart25-lora"], cards=[11, 16, 24, 40, 80])
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
