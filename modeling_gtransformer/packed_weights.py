"""Weights in the layout that a CPU multiplies fastest, for as long as documents are translated.

Decoding multiplies few rows at a time, which the plain product of a matrix does at a fraction of the machine's rate.
oneDNN reorders a weight once for its own kernels, as `torch.compile` does with frozen weights. The packed copies take
as much memory as the weights of the linear layers, and are gone when the translation ends.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from .group_attention import GTransformerGate


# Rows that oneDNN chooses the layout for: a few beams. More rows take it without loss.
ROWS = 16
# The method by which layers of a class multiply what they are given, side by side, by their weight.
METHODS: dict[type, str] = {nn.Linear: "forward", GTransformerGate: "logits"}


@contextmanager
def packed_weights(model: nn.Module, enabled: bool = True) -> Iterator[None]:
    """
    While it lasts, linear layers and gates of a model multiply by packed weights where that is possible: in float32 on
    a CPU, without gradients. Each is packed when it is first called. Packed sums round differently, as in another
    batch.

    Args:
        model: its layers of a class of their own (quantized or adapted ones), and those with a forward of their own
            (offloaded ones), stay as they are.
        enabled: whether anything is packed.
    """
    layers = [layer for layer in model.modules() if enabled and _can_be_packed(layer)]
    for layer in layers:
        # An attribute of the instance stands in front of the method of its class.
        setattr(layer, METHODS[type(layer)], _packing(layer))
    try:
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop(METHODS[type(layer)], None)


def _can_be_packed(layer: nn.Module) -> bool:
    return (
        type(layer) in METHODS
        and METHODS[type(layer)] not in layer.__dict__
        and layer.weight.device.type == "cpu"
        and layer.weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()
        and torch.backends.mkldnn.enabled
    )


def _packing(layer: nn.Linear) -> Callable[..., Tensor]:
    """The method of a layer that packs its weight once, and falls back where a packed weight is of no use."""
    packed: list[Tensor] = []
    plain: Callable[..., Tensor] = getattr(layer, METHODS[type(layer)])

    def multiply(*states: Tensor) -> Tensor:
        elsewhere = torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or torch.compiler.is_compiling()
        if elsewhere or any(each.dtype != torch.float32 for each in states):
            return plain(*states)
        if not packed:
            packed.append(torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), ROWS))
        side_by_side = states[0] if len(states) == 1 else torch.cat(states, dim=-1)
        return torch.ops.mkldnn._linear_pointwise(side_by_side, packed[0], layer.bias, "none", [], "")

    return multiply
