"""Attention of single tokens to a document that many of them share, and to what each has before it on its own.

Shape legend: R rows, H heads, K head size, P tokens of the document, L tokens of a row.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Context(NamedTuple):
    """
    What belongs to a shared document, and what to rows of their own: keys `(H, P, K)` and `(R, H, L, K)`, values
    alike, or which of them every row sees, `(R, P)` and `(R, L)`, bool.
    """

    document: Tensor
    own: Tensor


def context_attention(queries: Tensor, keys: Context, values: Context, mask: Context, scaling: float) -> Tensor:
    """
    Attends from a token of each row, `(R, H, 1, K)`, to document and row together; equal to copying the document
    in front of every row, but the document is read once for all of them.

    Returns:
        The output `(R, 1, H, K)`.
    """
    shared = (queries[:, :, 0].transpose(0, 1) @ keys.document.transpose(1, 2)).transpose(0, 1)
    scores = torch.cat([shared, (queries @ keys.own.transpose(2, 3))[:, :, 0]], dim=-1) * scaling
    seen = torch.cat([mask.document, mask.own], dim=-1)[:, None]
    weights = scores.masked_fill(~seen, -torch.inf).softmax(dim=-1)
    of_document, of_row = weights.split([mask.document.shape[1], mask.own.shape[1]], dim=-1)
    output = (of_document.transpose(0, 1) @ values.document).transpose(0, 1)
    return (output + (of_row[:, :, None] @ values.own)[:, :, 0])[:, None]
