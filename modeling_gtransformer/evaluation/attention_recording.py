"""Records attention weights and gates of a forward pass, and measures the entropy of attention in bits."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..group_attention import GTransformerAttention, GTransformerGate
from ..modeling_gtransformer import GTransformerForConditionalGeneration


STACK_OF_SUBLAYER = {"encoder.self_attn": "encoder", "decoder.self_attn": "decoder", "decoder.encoder_attn": "cross"}
MODULE = re.compile(r"model\.(encoder|decoder)\.layers\.(\d+)\.(self_attn|encoder_attn)(_global|_gate)?$")


@dataclass
class LayerAttention:
    """One attention sublayer of a forward pass.

    `weights` holds the attention weights of "group" and "global", as far as the layer has them, averaged over the
    heads, `(B, T, S)`. `gate` holds the share that the gate gives to group attention, averaged over the features,
    `(B, T)`.
    """

    stack: str
    layer: int
    weights: dict[str, Tensor] = field(default_factory=dict)
    gate: Tensor | None = None


@contextmanager
def recorded_attention(model: GTransformerForConditionalGeneration) -> Iterator[list[LayerAttention]]:
    """Records the forward pass in this context, with one entry per attention sublayer in the order of the layers. The
    pass uses eager attention, the only implementation that returns weights."""
    sublayers: dict[tuple[str, int], LayerAttention] = {}
    handles = []
    implementation = model.config._attn_implementation

    def record_weights(sublayer: LayerAttention, kind: str):
        def hook(module, args, output):
            sublayer.weights[kind] = output[1].float().mean(dim=1)

        return hook

    def record_gate(sublayer: LayerAttention):
        def hook(module, args, output):
            sublayer.gate = module.gate(*args).float().mean(dim=-1)

        return hook

    for name, module in model.named_modules():
        if not (match := MODULE.search(name)):
            continue
        stack, layer = STACK_OF_SUBLAYER[f"{match[1]}.{match[3]}"], int(match[2])
        sublayer = sublayers.setdefault((stack, layer), LayerAttention(stack, layer))
        if isinstance(module, GTransformerAttention):
            combined = {None: "group", "_global": "global"}
            attention_type = model.config.attention_types(stack)[layer]
            kind = combined[match[4]] if attention_type == "combined" else attention_type
            handles.append(module.register_forward_hook(record_weights(sublayer, kind)))
        elif isinstance(module, GTransformerGate):
            handles.append(module.register_forward_hook(record_gate(sublayer)))
    try:
        model.set_attn_implementation("eager")
        yield list(sublayers.values())
    finally:
        model.set_attn_implementation(implementation)
        for handle in handles:
            handle.remove()


def attention_entropy(
    sublayers: list[LayerAttention], source_mask: Tensor, target_mask: Tensor
) -> dict[str, tuple[Tensor, Tensor]]:
    """
    Computes the entropy of attention distributions in bits: 0 if every token attends to one token, log2(n) if
    attention is spread over n tokens (paper, section 3.2). As in the authors' code, weights are first averaged
    over the heads; unlike there, padding does not count.

    Args:
        sublayers: attention sublayers of one recorded forward pass.
        source_mask: whether each source token is real instead of padding, bool, `(B, S)`.
        target_mask: the same for the target, `(B, T)`.

    Returns:
        By stack and kind (`encoder_group`, `cross_global`, ...): the sum over tokens and layers, and the number of
        terms.
    """
    totals: dict[str, tuple[Tensor, Tensor]] = {}
    for sublayer in sublayers:
        real = source_mask if sublayer.stack == "encoder" else target_mask
        for kind, weights in sublayer.weights.items():
            bits = torch.special.entr(weights).sum(dim=-1)[real].sum() / torch.log(weights.new_tensor(2.0))
            bits_before, tokens_before = totals.get(f"{sublayer.stack}_{kind}", (0, 0))
            totals[f"{sublayer.stack}_{kind}"] = (bits_before + bits, tokens_before + real.sum())
    return totals
