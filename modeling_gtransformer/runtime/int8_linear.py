"""Linear layers in 8 bits, for translation on a CPU.

Weights are rounded to 8 bits once, with a scale per output feature. Input rows are rounded in every call, with a scale
per row, so a row's result is independent of its batch. The products are exact integers. torch will remove
`torch.ao.quantization`, which used one scale for all rows. Its successor torchao has equal arithmetic, but is slower
than float32 in uncompiled models.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from ..layers_gtransformer import GTransformerAttention, GTransformerLayer
from ..packed_weights import concatenated


# A scale, this divided by 127, is a normal number, and its reciprocal is finite.
SMALLEST = 127 * torch.finfo(torch.float32).tiny
# oneDNN multiplies unsigned by signed integers.
ZERO_POINT = 128
# Conversion to integers truncates.
OFFSET = ZERO_POINT + 0.5


class Int8Linear(nn.Module):
    """A linear layer with 8-bit weights, rounded from layers in float32, whose outputs it concatenates. It has no
    gradients."""

    def __init__(self, *linears: nn.Linear):
        super().__init__()
        weight = concatenated([each.weight for each in linears])
        biases = [each.bias for each in linears if each.bias is not None]
        self.out_features, self.in_features = weight.shape
        scales = weight.abs().amax(1).clamp(min=SMALLEST) / largest_weight()
        self.register_buffer("scales", scales)
        self.register_buffer("bias", concatenated(biases) if biases else None)
        self.int8_weight = packed((weight / scales[:, None]).round().to(torch.int8))

    def forward(self, states: Tensor) -> Tensor:
        rows = states.reshape(-1, self.in_features)
        # `vector_norm` takes up to twelve times as long on a CPU.
        scales = rows.abs().amax(1, keepdim=True).clamp_(min=SMALLEST).div_(127)
        # Two operations in place are up to four times as fast as `addcmul` or `addcdiv` of rows and a column.
        output = product(rows, scales, self.int8_weight, self.scales).mul_(scales)
        output = output if self.bias is None else output.add_(self.bias)
        return output.view(*states.shape[:-1], self.out_features)

    def get_extra_state(self) -> Tensor:
        return self.int8_weight.to_dense().t() if self.int8_weight.is_mkldnn else self.int8_weight

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def quantize_linear_layers(model: PreTrainedModel) -> None:
    """Replaces all linear layers of a float32 model on a CPU, including the output layer, by [`Int8Linear`]. The model
    can no longer be saved."""
    for module in [*model.modules()]:
        if isinstance(module, GTransformerLayer):
            _join_projections(module)
        for name, child in module.named_children():
            if type(child) is nn.Linear:
                setattr(module, name, Int8Linear(child))
    model.save_pretrained = _refuse_to_save


def _join_projections(layer: GTransformerLayer) -> None:
    """Makes the queries, keys and values of each self-attention one product, as they read the same states."""
    names = [name for name, stack in layer.stacks.items() if stack != "cross"]
    for attention in (getattr(layer, each, None) for name in names for each in (name, f"{name}_global")):
        if isinstance(attention, GTransformerAttention) and attention.qkv_proj is None:
            parts = (attention.q_proj, attention.k_proj, attention.v_proj)
            if all(type(part) is nn.Linear for part in parts):
                attention.qkv_proj = Int8Linear(*parts)
                del attention.q_proj, attention.k_proj, attention.v_proj


def packed(weight: Tensor) -> Tensor:
    """Returns an 8-bit weight `(O, I)` in the layout of oneDNN's kernels, which exist on x86, or else as it is."""
    has_kernels = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability().startswith("AVX")
    return torch.ops.onednn.qlinear_prepack(weight, None) if has_kernels else weight


def product(rows: Tensor, scales: Tensor, weight: Tensor, weight_scales: Tensor) -> Tensor:
    """Returns the product `(N, O)` of rows `(N, I)`, divided by their scales `(N, 1)` and rounded, and a weight of
    [`packed`], times its scales `(O,)`."""
    if not weight.is_mkldnn:
        return torch._int_mm((rows / scales).round_().to(torch.int8), weight.t()) * weight_scales
    shifted = rows.mul(scales.reciprocal()).add_(OFFSET).to(torch.uint8)
    zeros = torch.zeros_like(weight_scales, dtype=torch.long)
    return torch.ops.onednn.qlinear_pointwise(
        shifted, 1.0, ZERO_POINT, weight, weight_scales, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )


@cache
def largest_weight() -> int:
    """Returns the largest rounded weight: 127, or 63 on a CPU without 8-bit products (VNNI), where the sum of two
    larger products overflows."""
    largest = torch.full((64, 64), 127)
    products = product(largest.float(), torch.ones(64, 1), packed(largest.to(torch.int8)), torch.ones(64))
    return 127 if products.eq(64 * 127**2).all() else 63


def _refuse_to_save(*_: Any, **__: Any) -> None:
    raise ValueError("A model in int8 cannot be saved: load it in float32 to save it, and in int8 to translate.")
