"""Attention of single tokens to a document that many rows share, and to the row's own tokens.

Shape legend: B documents, R rows, W rows of a document, H heads, K head size, P tokens of a document, L tokens of a
row.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Context(NamedTuple):
    """Keys or values of shared documents, `(B, H, P, K)`, and of the rows' own tokens, `(R, H, L, K)`."""

    document: Tensor
    own: Tensor


class ContextMask(NamedTuple):
    """
    The tokens that every row sees, and its place among the rows of its document.

    Attributes:
        document: which tokens of its document a row sees, `(R, P)`, bool.
        own: which of its own tokens a row sees, `(R, L)`, bool.
        rows: indices of the rows of each document, `(B, W)`, padded with arbitrary rows.
        place: position of each row in the flattened `rows`, `(R,)`.
    """

    document: Tensor
    own: Tensor
    rows: Tensor
    place: Tensor


def rows_of_documents(documents: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """`rows` and `place` of a [`ContextMask`], given the document of each row, `(R,)` in ascending order, and the
    number of documents."""
    row = torch.arange(len(documents), device=documents.device)
    counts = documents.bincount(minlength=number)
    first, width = counts.cumsum(0) - counts, int(counts.max())
    rows = first[:, None] + torch.arange(width, device=documents.device)
    return rows.clamp(max=len(documents) - 1), documents * width + row - first[documents]


def context_attention(queries: Tensor, keys: Context, values: Context, mask: ContextMask, scaling: float) -> Tensor:
    """
    Attends from a token of each row, `(R, H, 1, K)`, to its document and its own tokens together. The result is as if
    the document were copied in front of every row, but it is read once for all of them.

    Returns:
        The output `(R, 1, H, K)`.
    """
    if not keys.own.shape[2]:
        return _shared_attention(queries, keys.document, values.document, mask, scaling)
    queries = queries * scaling  # otherwise the products may overflow in half precision
    shared = _each_row(_together(queries[:, :, 0], mask) @ keys.document.transpose(2, 3), mask)
    scores = torch.cat([shared, (queries @ keys.own.transpose(2, 3))[:, :, 0]], dim=-1)
    seen = torch.cat([mask.document, mask.own], dim=-1)[:, None]
    weights = scores.masked_fill(~seen, -torch.inf).softmax(dim=-1, dtype=torch.float32).to(values.own.dtype)
    of_document, of_row = weights.split([mask.document.shape[1], mask.own.shape[1]], dim=-1)
    output = _each_row(_together(of_document, mask) @ values.document, mask)
    return (output + (of_row[:, :, None] @ values.own)[:, :, 0])[:, None]


def _shared_attention(queries: Tensor, keys: Tensor, values: Tensor, mask: ContextMask, scaling: float) -> Tensor:
    """Computes [`context_attention`] for rows that see only their document."""
    seen = mask.document[mask.rows][:, None]
    output = nn.functional.scaled_dot_product_attention(
        _together(queries[:, :, 0], mask), keys, values, attn_mask=seen, scale=scaling
    )
    return _each_row(output, mask)[:, None]


def _together(states: Tensor, mask: ContextMask) -> Tensor:
    """Groups the states `(R, H, X)` of rows by their documents, `(B, H, W, X)`."""
    return states[mask.rows].transpose(1, 2)


def _each_row(states: Tensor, mask: ContextMask) -> Tensor:
    """Takes the states `(R, H, X)` of each row from those of the documents, `(B, H, W, X)`."""
    return states.transpose(1, 2).flatten(0, 1)[mask.place]
