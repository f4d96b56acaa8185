"""Weights in the layout that a CPU multiplies fastest, while documents are translated.

Decoding multiplies few rows at a time, which an ordinary matrix product does at a fraction of the machine's peak rate.
oneDNN reorders a weight once for its own kernels, as `torch.compile` does with frozen weights. On AMD's CPUs, where
MKL lacks its fastest kernels, weights of any size are packed, elsewhere only large ones. The copies take as much
memory as the packed weights, and are freed when the translation ends.
"""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import RLock
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from .layers_gtransformer import GTransformerAttention, GTransformerGate


Methods = list[tuple[nn.Module, str]]

# Number of rows that oneDNN optimises the layout for: a few beams. More rows lose nothing with it.
ROWS = 16
# Up to three rows are products of vectors, which packing does not help. In smaller products, the overhead of a call
# exceeds the gain.
MIN_ROWS, MIN_MULTIPLICATIONS = 4, 3 * 2**18
# Unless MKL is slow, products with weights up to 2 MB, which fit in the cache of a core, are fast enough.
MIN_SIZE = 2**19 + 1
# Packing takes as long as products of about this many rows save. Unless MKL is slow, each product counts as four rows,
# because larger ones gain little: an encoder, with one product per batch, rarely reaches this limit.
PACKS_AFTER = 64

# The replaced methods of each model in use, and the number of its users, which may be in several threads.
_packed: WeakKeyDictionary[nn.Module, tuple[Methods, int]] = WeakKeyDictionary()
_lock = RLock()  # an abandoned translation may end while another begins, in the same thread


@contextmanager
def packed_weights(model: nn.Module, enabled: bool = True) -> Iterator[None]:
    """
    In this context, linear layers and gates of a model multiply by packed weights where this is possible and pays: in
    float32 on a CPU, without gradients, from `MIN_ROWS` rows and `MIN_MULTIPLICATIONS` multiplications on, after
    `PACKS_AFTER` rows. Unless MKL is slow ([`mkl_is_slow`]), a weight needs `MIN_SIZE` elements. Queries, keys and
    values of the same states are one product. Packed sums round differently, as in another batch. Several translations
    may use a model at once; the last one that ends frees its packed weights.

    Args:
        model: layers of another class (quantised or adapted ones), and those with their own `forward` (offloaded
            ones), stay as they are.
        enabled: whether anything is packed.
    """
    if not enabled:
        yield
        return
    with _lock:
        methods, users = _packed.get(model) or (_pack(model), 0)
        _packed[model] = methods, users + 1
    try:
        yield
    finally:
        with _lock:
            methods, users = _packed.pop(model)
            if users > 1:
                _packed[model] = methods, users - 1
            else:
                for module, name in methods:
                    module.__dict__.pop(name, None)


def _pack(model: nn.Module) -> Methods:
    """Replaces the methods of a model's modules whose weights are packed, and returns these methods."""
    methods = [method for module in model.modules() for method in _packed_methods(module)]
    for module, name, size, method in methods:
        # An attribute of the instance takes precedence over the method of its class.
        setattr(module, name, _where_possible(size, method, getattr(module, name)))
    return [(module, name) for module, name, *_ in methods]


class PackedProduct:
    """The product of states and the concatenated weights of linear layers or a gate, which the first call packs."""

    def __init__(self, *layers: nn.Linear | GTransformerGate):
        self.layers = layers
        self.packed: tuple[Tensor, Tensor | None] | None = None

    def __call__(self, states: Tensor) -> Tensor:
        if self.packed is None:
            weight = torch.ops.mkldnn._reorder_linear_weight(concatenated([each.weight for each in self.layers]), ROWS)
            biases = [each.bias for each in self.layers if each.bias is not None]
            # Both in one assignment, as another thread may be translating.
            self.packed = weight, concatenated(biases) if biases else None
        return torch.ops.mkldnn._linear_pointwise(states, *self.packed, "none", [], "")


def concatenated(parameters: list[Tensor]) -> Tensor:
    """These weights or biases of linear layers as one, which a single one already is."""
    return (parameters[0] if len(parameters) == 1 else torch.cat(parameters)).detach()


def _packed_methods(module: nn.Module) -> Iterator[tuple[nn.Module, str, int, Callable]]:
    """Yields the methods of a module whose weights are packed: the module, the name, the number of weights and the
    replacement."""
    if _can_be_packed(nn.Linear, module):
        yield module, "forward", _size(module), PackedProduct(module)
    elif _can_be_packed(GTransformerGate, module):
        product = PackedProduct(module)
        yield module, "logits", _size(module), lambda *outputs: product(torch.cat(outputs, dim=-1))
    elif isinstance(module, GTransformerAttention) and module.qkv_proj is None:
        parts = (module.q_proj, module.k_proj, module.v_proj)
        if _can_be_packed(nn.Linear, *parts):
            together, apart = PackedProduct(*parts), module.project

            def project(states: Tensor):
                if any(map(_has_hooks, parts)):
                    return apart(states)
                return [*map(module.split_heads, together(states).chunk(3, dim=-1))]

            yield module, "project", _size(*parts), project


@cache
def mkl_is_slow() -> bool:
    """Whether torch multiplies by MKL on a CPU of AMD or Hygon, where it lacks its fastest kernels."""
    path = Path("/proc/cpuinfo")
    cpu = path.read_text() if path.exists() else platform.processor()
    return torch.backends.mkl.is_available() and any(vendor in cpu for vendor in ("AuthenticAMD", "HygonGenuine"))


def _size(*layers: nn.Module) -> int:
    return sum(layer.weight.numel() for layer in layers)


def _can_be_packed(kind: type[nn.Module], *layers: nn.Module) -> bool:
    """Whether these layers can be one product with packed weights, and are large enough."""
    return (
        all(type(layer) is kind and not {"forward", "logits"} & layer.__dict__.keys() for layer in layers)
        and all(layer.weight.device.type == "cpu" and layer.weight.dtype == torch.float32 for layer in layers)
        and (mkl_is_slow() or _size(*layers) >= MIN_SIZE)
        and torch.backends.mkldnn.is_available()
        and torch.backends.mkldnn.enabled
    )


def _has_hooks(layer: nn.Module) -> bool:
    everywhere = nn.modules.module._global_forward_hooks or nn.modules.module._global_forward_pre_hooks
    return bool(everywhere or layer._forward_hooks or layer._forward_pre_hooks)


def _where_possible(size: int, packed: Callable, ordinary: Callable) -> Callable:
    """Returns a method that falls back to the ordinary one where packed weights, `size` in number, cannot be used or
    are slower."""

    multiplied, every_row_counts = 0, mkl_is_slow()

    def method(*states: Tensor):
        nonlocal multiplied
        rows = states[0].shape[:-1].numel()
        elsewhere = torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or torch.compiler.is_compiling()
        is_small = rows < MIN_ROWS or rows * size < MIN_MULTIPLICATIONS
        if elsewhere or is_small or any(each.dtype != torch.float32 for each in states):
            return ordinary(*states)
        multiplied += rows if every_row_counts else MIN_ROWS
        return (packed if multiplied > PACKS_AFTER else ordinary)(*states)

    return method
