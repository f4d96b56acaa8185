"""Attention sentence by sentence against dense attention under the group mask, the reference."""

import inspect
from itertools import pairwise

import pytest
import torch
from tiny import ONLY_GROUP
from torch.nn.attention.varlen import varlen_attn

import modeling_gtransformer.sentence_attention as sa
from modeling_gtransformer.group_attention import eager_attention_forward, group_mask
from modeling_gtransformer.group_tags import PADDING
from modeling_gtransformer.sentence_attention import plan_sentences


def tags_of(documents, side):
    """Tags of documents given as sentence lengths, padded on one side."""
    rows = [[k for k, length in enumerate(lengths, 1) for _ in range(length)] for lengths in documents]
    longest = max(map(len, rows))
    fill = [[PADDING] * (longest - len(row)) for row in rows]
    return torch.tensor([f + row if side == "left" else row + f for f, row in zip(fill, rows, strict=True)])


DOCUMENTS = {
    "ragged": [[3, 7, 1, 2, 30], [5], [1, 1, 1]],
    "one-sentence": [[17]],
    "one-token-sentences": [[1] * 9, [1] * 4],
    "400-sentences": [[2 + i % 5 for i in range(400)]],
}


def varlen_attn_on_cpu(*args, **kwargs):
    """What torch's kernel computes, one sequence after the other, called with what that takes."""
    call = inspect.signature(varlen_attn).bind(*args, **kwargs)
    query, key, value, *cu_seqlens, max_query, max_key = call.args
    edges = [each.tolist() for each in cu_seqlens]
    assert {each.dtype for each in cu_seqlens} == {torch.int32}
    assert [max(b - a for a, b in pairwise(places)) for places in edges] == [max_query, max_key]
    assert [places[-1] for places in edges] == [len(query), len(key)] and len(key) == len(value)
    outputs = []
    for (first, last), (start, stop) in zip(*map(pairwise, edges), strict=True):
        sequence = (states.transpose(0, 1) for states in (query[first:last], key[start:stop], value[start:stop]))
        output = torch.nn.functional.scaled_dot_product_attention(
            *sequence, is_causal=call.kwargs["window_size"] == (-1, 0), scale=call.kwargs["scale"]
        )
        outputs.append(output.transpose(0, 1))
    return torch.cat(outputs)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("documents", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_outputs_and_gradients_equal_the_reference(documents, kind, side, monkeypatch):
    key_tags = tags_of(documents, side)
    # In cross-attention the last document has a sentence more than its source, which finds nothing.
    targets = [[length % 4 + 1 for length in lengths] for lengths in documents[:-1]] + [[*documents[-1], 2]]
    query_tags = tags_of(targets, "right") if kind == "cross" else key_tags
    states = [torch.randn(len(documents), 2, tags.shape[1], 8) for tags in (query_tags, key_tags, key_tags)]
    mask = torch.zeros(1, 1, query_tags.shape[1], key_tags.shape[1])
    if kind == "decoder":
        mask = mask.masked_fill(torch.ones_like(mask).triu(1).bool(), torch.finfo().min)
    mask = group_mask(mask.expand(len(documents), 1, -1, -1), query_tags, key_tags)
    plan = plan_sentences(query_tags, key_tags, is_causal=kind == "decoder")
    real = (query_tags > 0)[..., None, None]

    results = []
    for path in ("reference", "gathered", "packed"):
        query, key, value = (state.clone().requires_grad_() for state in states)
        if path == "reference":
            output = eager_attention_forward(torch.nn.Module(), query, key, value, mask, 0.5)[0]
        else:
            monkeypatch.setattr(sa, "has_variable_length_kernel", lambda _: path == "packed")  # noqa: B023
            monkeypatch.setattr(sa, "varlen_attn", varlen_attn_on_cpu)
            output = sa.sentence_attention(query, key, value, plan, dropout=0.0, scaling=0.5)
            assert (output[~real.expand_as(output)] == 0).all()
        output = output * real
        output.pow(2).sum().backward()
        results.append((output, query.grad, key.grad, value.grad))
    for result in results[1:]:
        torch.testing.assert_close(result, results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_causal", [False, True])
def test_torchs_kernel_takes_what_it_is_given(is_causal):
    """Without a GPU its shapes, types and gradients can be had, not its numbers."""
    tags = tags_of([[3, 7, 1], [5]], "right")
    states = torch.empty(2, 4, 11, 16, dtype=torch.bfloat16, device="meta", requires_grad=True)
    plan = plan_sentences(tags, tags, is_causal)
    output = sa.packed_attention(states, states, states, plan, scaling=0.25)
    output.sum().backward()
    assert (output.shape, output.dtype, states.grad.shape) == ((2, 11, 4, 16), torch.bfloat16, states.shape)
    assert not sa.has_variable_length_kernel(states)


def test_default_device_of_torch_does_not_matter():
    tags = tags_of([[3, 7, 1], [5]], "right")
    query, key, value = torch.randn(3, 2, 2, 11, 8)
    expected = sa.sentence_attention(query, key, value, plan_sentences(tags, tags), dropout=0.0, scaling=0.5)
    with torch.device("meta"):
        plan = plan_sentences(tags, tags)
        assert plan.packings(tags.device)[0].index.tolist() == (tags > 0).flatten().nonzero()[:, 0].tolist()
        output = sa.sentence_attention(query, key, value, plan, dropout=0.0, scaling=0.5)
    assert output.equal(expected)


def test_work_is_linear_in_the_number_of_sentences():
    """Neither a mask of the document's length squared nor much filling: the point of it all."""
    lengths = torch.randint(5, 60, (400,)).tolist()
    plan = plan_sentences(tags_of([lengths], "right"), tags_of([lengths], "right"))
    buckets = plan.gathering(torch.device("cpu")).buckets
    scores = sum(bucket.queries[0] * bucket.queries[1] * bucket.keys[1] for bucket in buckets)
    assert scores < 2 * sum(length**2 for length in lengths)
    assert len(buckets) < 10


@pytest.mark.parametrize("has_kernel", [False, True])
def test_attention_dropout(tiny_model, documents, monkeypatch, has_kernel):
    """The kernel of all sentences at once has no dropout, so another one must serve."""
    monkeypatch.setattr(sa, "has_variable_length_kernel", lambda _: has_kernel)
    monkeypatch.setattr(sa, "varlen_attn", varlen_attn_on_cpu)
    model = tiny_model(attention_dropout=0.5, dropout=0.0, **ONLY_GROUP).train()
    labels = torch.tensor([[5, 2, 0, 6, 2, 0, 7, 2, 49], [8, 2, 49] + [-100] * 6])
    assert len({model(**documents, labels=labels).loss.item() for _ in range(3)}) == 3
    model.eval()
    assert len({model(**documents, labels=labels).loss.item() for _ in range(3)}) == 1


def test_tags_that_are_no_sentences_have_no_plan():
    for tags in ([[1, 1, 2, 2, 1]], [[0, 1, 1]], [[PADDING] * 3]):
        assert plan_sentences(torch.tensor(tags), torch.tensor(tags)) is None
