"""Attention to documents that rows share, against the document copied in front of every row."""

import pytest
import torch
from torch import nn

from modeling_gtransformer.context_attention import Context, ContextMask, context_attention, rows_of_documents


@pytest.mark.parametrize("documents", [[0] * 5, [0, 0, 0, 1, 1], [1, 2, 2, 2], [0, 3]], ids=str)
@pytest.mark.parametrize("own", [3, 0])
def test_a_shared_document_is_as_one_in_front_of_every_row(documents, own):
    rows, number, heads, document, size = len(documents), 4, 2, 7, 4
    queries = torch.randn(rows, heads, 1, size, dtype=torch.float64, requires_grad=True)
    keys, values = (
        Context(torch.randn(number, heads, document, size).double(), torch.randn(rows, heads, own, size).double())
        for _ in range(2)
    )
    documents, sees_own = torch.tensor(documents), torch.arange(own) <= torch.arange(rows)[:, None] % max(own, 1)
    mask = ContextMask(torch.rand(rows, document) > 0.5, sees_own, *rows_of_documents(documents, number))
    mask.document[0] = not own  # nothing stands before the first sentence of a document
    mask.document[:, -1] |= not own
    copied = [torch.cat([each.document[documents], each.own], dim=2) for each in (keys, values)]
    seen = torch.cat([mask.document, mask.own], dim=1)[:, None, None]
    expected = nn.functional.scaled_dot_product_attention(queries, *copied, attn_mask=seen, scale=0.3)
    outputs = context_attention(queries, keys, values, mask, 0.3)
    torch.testing.assert_close(outputs, expected.transpose(1, 2), rtol=1e-5, atol=1e-6)
    gradients = [torch.autograd.grad(each.square().sum(), queries)[0] for each in (outputs, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("own", [0, 1])
def test_products_beyond_half_precision(own):
    """Queries are scaled before the product, which float16 may not hold."""
    states = torch.full((1, 1, 2, 64), 40.0, dtype=torch.float16)
    context = Context(states, states[:, :, :own])
    mask = ContextMask(
        torch.ones(1, 2, dtype=torch.bool),
        torch.ones(1, own, dtype=torch.bool),
        *rows_of_documents(torch.tensor([0]), 1),
    )
    outputs = context_attention(states[:, :, :1], context, context, mask, 0.125)
    torch.testing.assert_close(outputs, torch.full_like(outputs, 40.0))
