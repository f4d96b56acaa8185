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


SMALLEST = torch.finfo(torch.float32).tiny


class Int8Linear(nn.Module):
    """A linear layer with 8-bit weights, rounded from a layer in float32. It has no gradients."""

    def __init__(self, linear: nn.Linear):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        weight = linear.weight.detach()
        scales = weight.abs().amax(1).clamp(min=SMALLEST) / largest_weight()
        self.register_buffer("int8_weight", (weight / scales[:, None]).round().to(torch.int8))
        self.register_buffer("scales", scales)
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach())

    def forward(self, states: Tensor) -> Tensor:
        rows = states.reshape(-1, self.in_features)
        # `vector_norm` takes up to twelve times as long on a CPU.
        scales = rows.abs().amax(1, keepdim=True).clamp_(min=SMALLEST).div_(127)
        product = torch._int_mm((rows / scales).round_().to(torch.int8), self.int8_weight.t())
        output = (product * scales).mul_(self.scales)
        if self.bias is not None:
            output += self.bias
        return output.view(*states.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def quantize_linear_layers(model: PreTrainedModel) -> None:
    """Replaces all linear layers of a float32 model on a CPU, including the output layer, by [`Int8Linear`]. The model
    can no longer be saved."""
    for module in [*model.modules()]:
        for name, child in module.named_children():
            if type(child) is nn.Linear:
                setattr(module, name, Int8Linear(child))
    model.save_pretrained = _refuse_to_save


@cache
def largest_weight() -> int:
    """Returns the largest rounded weight: 127, or 63 on a CPU without 8-bit products (VNNI), where the sum of two
    larger products overflows."""
    largest = torch.full((64, 64), 127, dtype=torch.int8)
    exact = torch._int_mm(largest, largest.t()).eq(64 * 127**2).all()
    return 127 if exact else 63


def _refuse_to_save(*_: Any, **__: Any) -> None:
    raise ValueError("A model in int8 cannot be saved: load it in float32 to save it, and in int8 to translate.")
