"""Attention of single tokens to documents that many of them share, and to what each has before it on its own.

Shape legend: B documents, R rows, W rows of a document, H heads, K head size, P tokens of a document, L tokens of a
row.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Context(NamedTuple):
    """Keys or values of documents, `(B, H, P, K)`, and of rows of their own, `(R, H, L, K)`."""

    document: Tensor
    own: Tensor


class ContextMask(NamedTuple):
    """
    What every row sees, and where it is among the rows of its document.

    Attributes:
        document: tokens of its document, `(R, P)`, bool.
        own: tokens of its own, `(R, L)`, bool.
        rows: of each document, `(B, W)`, padded with any of them.
        place: of each row in the flattened `rows`, `(R,)`.
    """

    document: Tensor
    own: Tensor
    rows: Tensor
    place: Tensor


def rows_of_documents(documents: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """`rows` and `place` of a [`ContextMask`] for rows that belong to these of so many documents, `(R,)`, in order."""
    row = torch.arange(len(documents), device=documents.device)
    counts = documents.bincount(minlength=number)
    first, most = counts.cumsum(0) - counts, int(counts.max())
    rows = first[:, None] + torch.arange(most, device=documents.device)
    return rows.clamp(max=len(documents) - 1), documents * most + row - first[documents]


def context_attention(queries: Tensor, keys: Context, values: Context, mask: ContextMask, scaling: float) -> Tensor:
    """
    Attends from a token of each row, `(R, H, 1, K)`, to its document and its own tokens together; equal to copying the
    document in front of every row, but a document is read once for all of them.

    Returns:
        The output `(R, 1, H, K)`.
    """
    if not keys.own.shape[2]:
        return _shared_attention(queries, keys.document, values.document, mask, scaling)
    queries = queries * scaling  # half precision may not hold the products otherwise
    shared = _each_row(_together(queries[:, :, 0], mask) @ keys.document.transpose(2, 3), mask)
    scores = torch.cat([shared, (queries @ keys.own.transpose(2, 3))[:, :, 0]], dim=-1)
    seen = torch.cat([mask.document, mask.own], dim=-1)[:, None]
    weights = scores.masked_fill(~seen, -torch.inf).softmax(dim=-1, dtype=torch.float32).to(values.own.dtype)
    of_document, of_row = weights.split([mask.document.shape[1], mask.own.shape[1]], dim=-1)
    output = _each_row(_together(of_document, mask) @ values.document, mask)
    return (output + (of_row[:, :, None] @ values.own)[:, :, 0])[:, None]


def _shared_attention(queries: Tensor, keys: Tensor, values: Tensor, mask: ContextMask, scaling: float) -> Tensor:
    """[`context_attention`] of rows that see nothing but their document."""
    seen = mask.document[mask.rows][:, None]
    output = nn.functional.scaled_dot_product_attention(
        _together(queries[:, :, 0], mask), keys, values, attn_mask=seen, scale=scaling
    )
    return _each_row(output, mask)[:, None]


def _together(states: Tensor, mask: ContextMask) -> Tensor:
    """States `(R, H, X)` of the rows of each document, `(B, H, W, X)`."""
    return states[mask.rows].transpose(1, 2)


def _each_row(states: Tensor, mask: ContextMask) -> Tensor:
    """States `(B, H, W, X)` of each row, `(R, H, X)`."""
    return states.transpose(1, 2).flatten(0, 1)[mask.place]
