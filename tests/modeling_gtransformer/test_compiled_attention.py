"""Group attention under `torch.compile` against dense attention under the group mask, the reference."""

import math

import pytest
import torch
from tiny import PAD
from torch._dynamo.testing import EagerAndRecordGraphs

import modeling_gtransformer.sentence_attention as sa
from modeling_gtransformer.compiled_attention import _group_attention, compiled_attention, sentence_tags
from modeling_gtransformer.group_attention import eager_attention_forward, group_mask


# Tags from 1; 0 stands outside of all sentences, "." is padding.
NO_CONTEXT = dict.fromkeys(["encoder_global_layers", "decoder_global_layers", "cross_global_layers"], 0)
DOCUMENTS = {
    "ragged": ["1112223333", "12........"],
    "padded on the left": [".....11122", "1112223334"],
    "outsiders": ["0111222220", "11110222.."],
    "in pieces": ["1122112233", "1112223333"],
    "no sentences": ["0000000000", "000......."],
}


def tags_and_real(rows):
    tags = torch.tensor([[0 if tag == "." else int(tag) for tag in row] for row in rows])
    return tags, torch.tensor([[tag != "." for tag in row] for row in rows])


@pytest.mark.parametrize("alone", [0, math.inf])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("rows", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_outputs_and_gradients_equal_the_reference(rows, kind, alone, monkeypatch):
    monkeypatch.setattr(sa, "STANDS_ALONE", alone)
    key_tags, real_keys = tags_and_real(rows)
    query_tags, real_queries = tags_and_real(["112", "12."]) if kind == "cross" else (key_tags, real_keys)
    mask = torch.zeros(2, 1, query_tags.shape[1], key_tags.shape[1])
    mask = mask.masked_fill(~real_keys[:, None, None], torch.finfo().min)
    if kind == "decoder":
        mask = mask.masked_fill(torch.ones_like(mask).triu(1).bool(), torch.finfo().min)
    mask = group_mask(mask, query_tags, key_tags)
    real = real_queries[..., None, None]

    states = [torch.randn(2, tags.shape[1], 2, 8).transpose(1, 2) for tags in (query_tags, key_tags, key_tags)]
    tags = sentence_tags(query_tags, key_tags, real_queries, real_keys, is_causal=kind == "decoder")
    results = []
    for attend in (
        lambda *states: eager_attention_forward(torch.nn.Module(), *states, mask, 0.5)[0],
        lambda *states: compiled_attention(*states, tags, dropout=0.0, scaling=0.5),
    ):
        leaves = [state.detach().requires_grad_() for state in states]
        output = attend(*leaves) * real
        output.pow(2).sum().backward()
        results.append((output, *(leaf.grad for leaf in leaves)))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_operator_is_what_a_graph_takes_it_for(dropout):
    tags, real = tags_and_real(DOCUMENTS["ragged"])
    tags = sentence_tags(tags, tags, real, real, is_causal=True)
    states = [torch.randn(2, 10, 2, 8).transpose(1, 2).requires_grad_() for _ in range(3)]
    seed = torch.tensor([3])
    torch.library.opcheck(_group_attention, (*states, *tags[:2], seed, tags.is_causal, dropout, 0.5))


def test_gradient_drops_what_the_output_dropped():
    tags, real = tags_and_real(DOCUMENTS["ragged"])
    tags = sentence_tags(tags, tags, real, real, is_causal=False)
    query, key, value, weight = torch.randn(4, 2, 2, 10, 8)
    value.requires_grad_()
    before = torch.get_rng_state()
    outputs = [compiled_attention(query, key, value, tags, dropout=0.5, scaling=0.5) for _ in range(2)]
    assert not torch.equal(*outputs)
    total = (outputs[0] * weight.transpose(1, 2)).sum()
    total.backward()
    # The output is linear in the values as long as the same weights are dropped.
    torch.testing.assert_close((value.grad * value).sum(), total)
    torch.set_rng_state(before)
    torch.testing.assert_close(compiled_attention(query, key, value, tags, dropout=0.5, scaling=0.5), outputs[0])


@pytest.mark.parametrize("skip_logits", [False, True])
def test_model_without_a_mask_of_its_length_squared(tiny_model, skip_logits):
    """Outputs and gradients as without a compiler; padded on the left, which asks for a mask if anything does. Without
    logits the graph ends before the loss."""
    model = tiny_model(encoder_layers=1, decoder_layers=1, dropout=0.0, **NO_CONTEXT).train()
    source = torch.tensor([[0, 5, 6, 2, 0, 7, 2, 0, 9, 10, 11, 2], [PAD] * 8 + [0, 8, 6, 2]])
    labels = torch.tensor([[5, 2, 0, 6, 7, 2, 0, 7, 2, 49], [8, 2, 49] + [-100] * 7])
    recorder, results = EagerAndRecordGraphs(), []
    for run in (model, torch.compile(model, fullgraph=not skip_logits, backend=recorder)):
        model.zero_grad()
        loss = run(input_ids=source, attention_mask=source.ne(PAD), labels=labels, skip_logits=skip_logits).loss
        loss.backward()
        results.append([loss, *(parameter.grad for parameter in model.parameters())])
    torch.testing.assert_close(*results)
    names = [str(node.target) for graph in recorder.graphs for node in graph.graph.nodes]
    assert sum("gtransformer.group_attention" in name for name in names) == 3
    assert not any("scaled_dot_product" in name for name in names)
