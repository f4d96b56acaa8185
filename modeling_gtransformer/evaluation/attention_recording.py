"""Records attention weights and gates of a forward pass, and measures the entropy of attention in bits."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..modeling_gtransformer import GTransformerForConditionalGeneration


@dataclass
class LayerAttention:
    """An attention sublayer of a forward pass.

    `weights` has the weights of "group" and "global" attention, if the layer has it, averaged over heads, `(B, T, S)`.
    `gate` is the share of group attention, averaged over features, `(B, T)`.
    """

    stack: str
    layer: int
    weights: dict[str, Tensor]
    gate: Tensor | None


def record_attention(model: GTransformerForConditionalGeneration, **inputs: Any) -> list[LayerAttention]:
    """Runs a forward pass and returns its attention sublayers, in order."""
    sublayers: list[LayerAttention] = []

    def record(stack: str, layer: int, weights: dict[str, Tensor], gate: Tensor | None) -> None:
        mean_weights = {kind: each.float().mean(dim=1) for kind, each in weights.items()}
        mean_gate = None if gate is None else gate.float().mean(dim=-1)
        sublayers.append(LayerAttention(stack, layer, mean_weights, mean_gate))

    model(**inputs, attention_recorder=record)
    return sublayers


def attention_entropy(sublayers: list[LayerAttention], source_mask: Tensor, target_mask: Tensor) -> dict[str, Tensor]:
    """
    Computes the entropy of attention distributions in bits: 0 if every token attends to one token, log2(n) if
    attention is uniform over n tokens (paper, section 3.2). As in the authors' code, weights are first averaged over
    heads. Unlike in the authors' code, padding does not count.

    Args:
        sublayers: attention sublayers of a recorded forward pass.
        source_mask: whether each source token is real instead of padding, bool, `(B, S)`.
        target_mask: whether each target token is real instead of padding, bool, `(B, T)`.

    Returns:
        Sum over tokens and layers, and number of terms, `(2,)`, by stack and kind (`encoder_group`, ...).
    """
    totals: dict[str, Tensor] = {}
    for sublayer in sublayers:
        real = source_mask if sublayer.stack == "encoder" else target_mask
        for kind, weights in sublayer.weights.items():
            bits = torch.special.entr(weights).sum(dim=-1)[real].sum() / torch.log(weights.new_tensor(2.0))
            name, of_layer = f"{sublayer.stack}_{kind}", torch.stack([bits.double(), real.sum().double()])
            totals[name] = totals.get(name, 0) + of_layer
    return totals
