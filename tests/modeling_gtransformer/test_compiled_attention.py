"""Group attention under `torch.compile` against dense attention under the group mask, the reference."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from tiny import ONLY_GROUP, PAD
from torch._dynamo.testing import EagerAndRecordGraphs
from transformers.modeling_outputs import BaseModelOutput

from modeling_gtransformer.group_attention import eager_attention_forward, group_mask
from modeling_gtransformer.group_tags import tags_on_cpu
from modeling_gtransformer.sentence_attention import (
    SentenceTags,
    _group_attention,
    _group_attention_backward,
    compiled_attention,
)


# Tags from 1; 0 stands outside of all sentences, "." is padding.
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


def sentence_tags(tags, real, is_causal):
    return SentenceTags(*2 * [tags_on_cpu(tags, real)], is_causal)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("rows", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_outputs_and_gradients_equal_the_reference(rows, kind):
    key_tags, real_keys = tags_and_real(rows)
    query_tags, real_queries = tags_and_real(["112", "12."]) if kind == "cross" else (key_tags, real_keys)
    mask = torch.zeros(2, 1, query_tags.shape[1], key_tags.shape[1])
    mask = mask.masked_fill(~real_keys[:, None, None], torch.finfo().min)
    if kind == "decoder":
        mask = mask.masked_fill(torch.ones_like(mask).triu(1).bool(), torch.finfo().min)
    mask = group_mask(mask, query_tags, key_tags)
    real = real_queries[..., None, None]

    states = [torch.randn(2, tags.shape[1], 2, 8).transpose(1, 2) for tags in (query_tags, key_tags, key_tags)]
    sides = (tags_on_cpu(query_tags, real_queries), tags_on_cpu(key_tags, real_keys))
    tags = SentenceTags(*sides, is_causal=kind == "decoder")
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
    tags = sentence_tags(*tags_and_real(DOCUMENTS["ragged"]), is_causal=True)
    states = [torch.randn(2, 10, 2, 8).transpose(1, 2).requires_grad_() for _ in range(3)]
    seed = torch.tensor([3])
    torch.library.opcheck(_group_attention, (*states, *tags[:2], seed, tags.is_causal, dropout, 0.5))


@pytest.mark.parametrize("rows", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_gradients_lie_in_memory_as_a_graph_expects(rows):
    tags = sentence_tags(*tags_and_real(rows), is_causal=True)
    for states in (torch.randn(2, 2, 10, 8), torch.randn(2, 10, 2, 8).transpose(1, 2)):
        constants = (*tags[:2], torch.tensor([3]), tags.is_causal, 0.5, 0.5)
        output = _group_attention(states, states, states, *constants)
        gradients = _group_attention_backward(output, states, states, states, *constants)
        assert output.is_contiguous() and {gradient.stride() for gradient in gradients} == {states.stride()}


def test_tags_of_any_integer_type():
    tags, real = tags_and_real(DOCUMENTS["ragged"])
    states = torch.randn(3, 2, 2, 10, 8)
    outputs = [
        compiled_attention(*states, sentence_tags(each, real, is_causal=False), dropout=0.0, scaling=0.5)
        for each in (tags, tags.int(), tags.to(torch.uint8))
    ]
    assert outputs[0].equal(outputs[1]) and outputs[0].equal(outputs[2])


def test_operator_stays_out_of_cuda_graphs():
    """They would repeat it with the tags of the first batch."""
    for operator in (_group_attention, _group_attention_backward):
        assert torch.Tag.cudagraph_unsafe in operator._opoverload.tags


def test_dropout_leaves_the_random_generator_as_it_was():
    tags = sentence_tags(*tags_and_real(DOCUMENTS["ragged"]), is_causal=True)
    query, key, value = torch.randn(3, 2, 2, 10, 8)
    before = torch.get_rng_state()
    _group_attention(query, key, value, *tags[:2], torch.tensor([3]), True, 0.5, 0.5)
    assert torch.get_rng_state().equal(before)


def test_a_second_copy_of_the_code_leaves_the_first_alone(tiny_model):
    """As when a checkpoint brings it along."""
    name = "a_copy_of_modeling_gtransformer"
    folder = Path(compiled_attention.__code__.co_filename).parent
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    sys.modules[name] = importlib.util.module_from_spec(spec)
    copy = importlib.import_module(f"{name}.sentence_attention")
    tags = sentence_tags(*tags_and_real(DOCUMENTS["ragged"]), is_causal=True)
    states = torch.randn(3, 2, 2, 10, 8)
    outputs = []
    for module in (copy, sys.modules[compiled_attention.__module__]):
        given = module.SentenceTags(*tags)
        attend = torch.compile(module.compiled_attention, fullgraph=True, backend="aot_eager")
        outputs.append(attend(*states, given, 0.0, 0.5))
    assert outputs[0].equal(outputs[1])
    assert copy._group_attention._qualname != _group_attention._qualname


@pytest.mark.parametrize("rows", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_gradient_drops_what_the_output_dropped(rows):
    tags = sentence_tags(*tags_and_real(rows), is_causal=False)
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
    model = tiny_model(encoder_layers=1, decoder_layers=1, dropout=0.0, **ONLY_GROUP).train()
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
    assert sum("group_attention" in name for name in names) == 3
    assert not any("scaled_dot_product" in name for name in names)
    assert len(recorder.graphs) == 1
    assert any("cross_entropy" in name for name in names) != skip_logits


@pytest.mark.parametrize("global_positions", ["none", "sentence"])
def test_positions_of_sentences_in_a_graph(tiny_model, documents, global_positions):
    """Loss and gradients of a model whose positions count from the start of a sentence are those of the reference."""
    model = tiny_model(position_scope="sentence", global_positions=global_positions)
    model.set_attn_implementation("eager")
    documents["labels"] = documents["input_ids"].masked_fill(documents["input_ids"] == PAD, -100)
    losses, gradients = [], []
    for implementation, run in (
        ("eager", model),
        ("sdpa", model),
        ("sdpa", torch.compile(model, backend="aot_eager")),
    ):
        model.set_attn_implementation(implementation)
        model.zero_grad()
        losses.append(run(**documents).loss)
        losses[-1].backward()
        gradients.append({name: parameter.grad.clone() for name, parameter in model.named_parameters()})
    for loss, grads in zip(losses[1:], gradients[1:], strict=True):
        torch.testing.assert_close(loss, losses[0])
        torch.testing.assert_close(grads, gradients[0], rtol=1e-4, atol=1e-5)


def test_exported_graph_has_no_operator_of_ours(tiny_model):
    model = tiny_model(encoder_layers=1, **ONLY_GROUP).get_encoder()
    source = torch.tensor([[0, 5, 6, 2, 0, 7, 2]])
    exported = torch.export.export(model, (source,), strict=False)
    assert not any("group_attention" in str(node.target) for node in exported.graph.nodes)
    torch.testing.assert_close(exported.module()(source)[0], model(source)[0])


@pytest.mark.parametrize("way", ["by sentence", "compiled"])
def test_tags_of_padding_count_for_nothing(tiny_model, way):
    """Whoever gives tags may have given padding some, too."""
    model = tiny_model()
    source, target = torch.tensor([[PAD, PAD, 0, 5, 2, 0, 7, 2]]), torch.tensor([[PAD, PAD, 0, 8, 2, 0, 9]])
    encoder_outputs = model.get_encoder()(source, source.ne(PAD))
    inputs = {
        "encoder_outputs": BaseModelOutput(encoder_outputs[0]),
        "attention_mask": source.ne(PAD),
        "group_tags": torch.tensor([[1, 1, 1, 1, 1, 2, 2, 2]]),
    }
    tags = torch.tensor([[1, 1, 1, 1, 1, 2, 2]])
    whole = {"decoder_input_ids": target, "decoder_attention_mask": target.ne(PAD), "decoder_group_tags": tags}
    expected = model.set_attn_implementation("eager") or model(**inputs, **whole).logits[:, -1]
    model.set_attn_implementation("sdpa")
    run = torch.compile(model, fullgraph=True, backend="eager") if way == "compiled" else model
    logits = run(**inputs, **whole).logits
    torch.testing.assert_close(logits[:, -1], expected, rtol=1e-4, atol=1e-5)
