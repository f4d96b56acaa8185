"""Weights in the layout that a CPU multiplies fastest, for as long as documents are translated.

Decoding multiplies few rows at a time, which the plain product of a matrix does at a fraction of the machine's rate.
oneDNN reorders a weight once for its own kernels, as `torch.compile` does with frozen weights. The packed copies take
as much memory as the weights of the linear layers, and are gone when the translation ends.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from .group_attention import GTransformerAttention, GTransformerGate


# Rows that oneDNN chooses the layout for: a few beams. More rows take it without loss.
ROWS = 16


@contextmanager
def packed_weights(model: nn.Module, enabled: bool = True) -> Iterator[None]:
    """
    While it lasts, linear layers and gates of a model multiply by packed weights where that is possible: in float32 on
    a CPU, without gradients; queries, keys and values of the same states by one. Each is packed when it is first
    called. Packed sums round differently, as in another batch.

    Args:
        model: its layers of a class of their own (quantized or adapted ones), and those with a forward of their own
            (offloaded ones), stay as they are.
        enabled: whether anything is packed.
    """
    methods = [method for module in model.modules() if enabled for method in _packed_methods(module)]
    for module, name, method in methods:
        # An attribute of the instance stands in front of the method of its class.
        setattr(module, name, _where_it_serves(method, getattr(module, name)))
    try:
        yield
    finally:
        for module, name, _ in methods:
            module.__dict__.pop(name, None)


class PackedProduct:
    """The product of states by the weights of linear layers or a gate, side by side, which the first call packs."""

    def __init__(self, *layers: nn.Linear | GTransformerGate):
        self.layers = layers
        self.packed: tuple[Tensor, Tensor | None] | None = None

    def __call__(self, states: Tensor) -> Tensor:
        if self.packed is None:
            weight = torch.ops.mkldnn._reorder_linear_weight(_joined([each.weight for each in self.layers]), ROWS)
            biases = [each.bias for each in self.layers if each.bias is not None]
            # At once, as another thread may be translating.
            self.packed = weight, _joined(biases) if biases else None
        return torch.ops.mkldnn._linear_pointwise(states, *self.packed, "none", [], "")


def _joined(parameters: list[Tensor]) -> Tensor:
    return (parameters[0] if len(parameters) == 1 else torch.cat(parameters)).detach()


def _packed_methods(module: nn.Module) -> Iterator[tuple[nn.Module, str, Callable]]:
    """What a module does by weights that can be packed: the name of its method, and what takes its place."""
    if _can_be_packed(module, nn.Linear):
        yield module, "forward", PackedProduct(module)
    elif _can_be_packed(module, GTransformerGate):
        product = PackedProduct(module)
        yield module, "logits", lambda *outputs: product(torch.cat(outputs, dim=-1))
    elif isinstance(module, GTransformerAttention):
        parts = (module.q_proj, module.k_proj, module.v_proj)
        if all(_can_be_packed(part, nn.Linear) for part in parts):
            together, apart = PackedProduct(*parts), module.project

            def project(states: Tensor):
                if any(map(_has_hooks, parts)):
                    return apart(states)
                return [*map(module.split_heads, together(states).chunk(3, dim=-1))]

            yield module, "project", project


def _can_be_packed(layer: nn.Module, kind: type[nn.Module]) -> bool:
    return (
        type(layer) is kind
        and not {"forward", "logits"} & layer.__dict__.keys()
        and layer.weight.device.type == "cpu"
        and layer.weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()
        and torch.backends.mkldnn.enabled
    )


def _has_hooks(layer: nn.Module) -> bool:
    everywhere = nn.modules.module._global_forward_hooks or nn.modules.module._global_forward_pre_hooks
    return bool(everywhere or layer._forward_hooks or layer._forward_pre_hooks)


def _where_it_serves(packed: Callable, plain: Callable) -> Callable:
    """A method that falls back to the plain one where packed weights are of no use."""

    def method(*states: Tensor):
        elsewhere = torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or torch.compiler.is_compiling()
        if elsewhere or any(each.dtype != torch.float32 for each in states):
            return plain(*states)
        return packed(*states)

    return method
