"""Attention to a document that rows share, against the document copied in front of every row."""

import torch
from torch import nn

from modeling_gtransformer.context_attention import Context, context_attention


def test_a_shared_document_is_as_one_in_front_of_every_row():
    rows, heads, document, own, size = 5, 2, 7, 3, 4
    queries = torch.randn(rows, heads, 1, size, dtype=torch.float64, requires_grad=True)
    keys, values = (
        Context(torch.randn(heads, document, size).double(), torch.randn(rows, heads, own, size).double())
        for _ in range(2)
    )
    mask = Context(torch.rand(rows, document) > 0.5, torch.arange(own) <= torch.arange(rows)[:, None] % own)
    mask.document[0] = False  # the first sentence of a document
    copied = [torch.cat([each.document.expand(rows, -1, -1, -1), each.own], dim=2) for each in (keys, values)]
    seen = torch.cat([mask.document, mask.own], dim=1)[:, None, None]
    expected = nn.functional.scaled_dot_product_attention(queries, *copied, attn_mask=seen, scale=0.3)
    outputs = context_attention(queries, keys, values, mask, 0.3)
    torch.testing.assert_close(outputs, expected.transpose(1, 2))
    gradients = [torch.autograd.grad(each.square().sum(), queries)[0] for each in (outputs, expected)]
    torch.testing.assert_close(*gradients)
