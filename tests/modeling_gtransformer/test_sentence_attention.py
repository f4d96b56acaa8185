"""Attention sentence by sentence, also in a compiled graph, against dense attention under the group mask."""

import inspect
from functools import partial
from itertools import pairwise

import pytest
import torch
from tiny import ATTENTION_KINDS, ONLY_GROUP, PAD, random_documents, seeded_model
from torch._dynamo.testing import EagerAndRecordGraphs
from torch.nn.attention.varlen import varlen_attn
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

import modeling_gtransformer.sentence_attention as sa
from modeling_gtransformer.group_attention import eager_attention_forward, group_mask
from modeling_gtransformer.group_tags import PADDING, document_positions, read_group_tags, sentence_positions


# Tags from 1; 0 is outside all sentences, "." is padding.
PLANNED = {
    "ragged": ["1112223333", "12........"],
    "padded on the left": [".....11122", "1112223334"],
    "one sentence": ["11111"],
    "sentences of one token": ["123456789", "1234....."],
}
DOCUMENTS = PLANNED | {
    "outsiders": ["0111222220", "11110222.."],
    "in pieces": ["1122112233", "1112223333"],
    "no sentences": ["0000000000", "000......."],
}
TARGETS = {2: ["112", "12."], 1: ["112"]}  # by the number of documents; some sentences have no source
# Targets and sources of cross-attention that are about as long.
SIDE_BY_SIDE = {
    "11122233": ["111222..", "11122200", "11122244"],
    "111222..": ["111222..", "11122233"],
    "11122": ["2211", "22111", "11222"],
}


def tags_of(rows):
    """Tags `(B, T)` as plans take them."""
    return torch.tensor([[PADDING if tag == "." else int(tag) for tag in row] for row in rows])


def sentences(lengths):
    return torch.tensor([[number for number, length in enumerate(lengths, 1) for _ in range(length)]])


def varlen_attn_on_cpu(*args, **kwargs):
    """Computes what torch's kernel does, one sequence after the other, and checks what it is given."""
    call = inspect.signature(varlen_attn).bind(*args, **kwargs)
    query, key, value, *cu_seqlens, max_query, max_key = call.args
    assert {each.dtype for each in cu_seqlens} == {torch.int32}
    edges = [each.tolist() for each in cu_seqlens]
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


def reference_mask(query_tags, key_tags, is_causal):
    mask = torch.zeros(len(key_tags), 1, query_tags.shape[1], key_tags.shape[1])
    mask = mask.masked_fill((key_tags == PADDING)[:, None, None], torch.finfo().min)
    if is_causal:
        mask = mask.masked_fill(torch.ones_like(mask).triu(1).bool(), torch.finfo().min)
    return group_mask(mask, query_tags.clamp(min=0), key_tags.clamp(min=0))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("name", [*DOCUMENTS, "400 sentences"])
def test_outputs_and_gradients_equal_the_reference(name, kind, monkeypatch):
    key_tags = tags_of(DOCUMENTS[name]) if name in DOCUMENTS else sentences([2 + i % 5 for i in range(400)])
    query_tags = tags_of(TARGETS[len(key_tags)]) if kind == "cross" else key_tags
    plan = sa.plan_sentences(query_tags, key_tags, kind == "decoder")
    assert (plan is None) == (kind != "cross" and name not in PLANNED and name in DOCUMENTS) or kind == "cross"
    if plan is not None:
        compare(query_tags, key_tags, plan, monkeypatch)


@pytest.mark.parametrize(("target", "source"), [(t, s) for t, sources in SIDE_BY_SIDE.items() for s in sources])
def test_targets_beside_sources(target, source, monkeypatch):
    query_tags, key_tags = tags_of([target]), tags_of([source])
    compare(query_tags, key_tags, sa.plan_sentences(query_tags, key_tags), monkeypatch)


def compare(query_tags, key_tags, plan, monkeypatch):
    """Outputs and gradients under a plan with those under a mask."""
    is_causal = plan.is_causal
    states = [torch.randn(*tags.shape, 2, 8).transpose(1, 2) for tags in (query_tags, key_tags, key_tags)]
    mask, real = reference_mask(query_tags, key_tags, is_causal), (query_tags != PADDING)[..., None, None]
    monkeypatch.setattr(sa, "varlen_attn", varlen_attn_on_cpu)
    ways = {
        "reference": lambda *states: eager_attention_forward(torch.nn.Module(), *states, mask, 0.5)[0],
        "gathered": lambda *states: sa.gathered_attention(*states, plan, dropout=0.0, scaling=0.5),
        "packed": lambda *states: sa.packed_attention(*states, plan, scaling=0.5),
    }
    results = {}
    for way, attend in ways.items():
        leaves = [state.detach().requires_grad_() for state in states]
        output = attend(*leaves) * real
        output.pow(2).sum().backward()
        results[way] = (output, *(leaf.grad for leaf in leaves))
    for way, result in results.items():
        torch.testing.assert_close(result, results["reference"], rtol=1e-4, atol=1e-5, msg=lambda m, way=way: way + m)


@pytest.mark.parametrize("is_causal", [False, True])
def test_torchs_kernel_takes_what_it_is_given(is_causal):
    """Without a GPU its shapes, types and gradients can be had, not its numbers."""
    states = torch.empty(2, 4, 10, 16, dtype=torch.bfloat16, device="meta", requires_grad=True)
    plan = sa.plan_sentences(*2 * [tags_of(PLANNED["ragged"])], is_causal)
    output = sa.packed_attention(states, states, states, plan, scaling=0.25)
    output.sum().backward()
    assert (output.shape, output.dtype, states.grad.shape) == ((2, 10, 4, 16), torch.bfloat16, states.shape)
    assert not sa.has_variable_length_kernel(states)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch's kernel computes on NVIDIA GPUs alone")
@pytest.mark.parametrize("is_causal", [False, True])
def test_torchs_kernel_equals_the_reference(is_causal):
    tags = tags_of(PLANNED["ragged"])
    plan, real = sa.plan_sentences(tags, tags, is_causal), (tags != PADDING).cuda()[..., None, None]
    states = torch.randn(3, 2, 4, 10, 16, device="cuda").bfloat16()
    assert sa.has_variable_length_kernel(states)
    results = []
    reference = partial(sa.gathered_attention, dropout=0.0)
    for attend, dtype in ((sa.packed_attention, torch.bfloat16), (reference, torch.float32)):
        leaves = states.to(dtype).detach().requires_grad_()
        output = attend(*leaves, plan, scaling=0.25) * real
        output.float().pow(2).sum().backward()
        results.append((output.float(), leaves.grad.float()))
    torch.testing.assert_close(*results, rtol=2e-2, atol=2e-2)


def test_causal_queries_may_be_the_last_tokens_of_their_sentences():
    tags, is_read = sentences([5, 9, 5, 1]), torch.ones(1, 20, dtype=torch.bool)
    is_read[0, [0, 1, 2, 5, 14, 15, 16, 17, 18]] = False
    states = [torch.randn(1, 2, 20, 8, dtype=torch.double) for _ in range(3)]
    expected = sa.gathered_attention(*states, sa.plan_sentences(tags, tags, is_causal=True), 0.0, 1.0)
    plan = sa.plan_sentences(tags[is_read][None], tags, is_causal=True)
    output = sa.sentence_attention(states[0][:, :, is_read[0]], *states[1:], plan, 0.0, 1.0)
    torch.testing.assert_close(output, expected[:, is_read[0]])


def test_default_device_of_torch_does_not_matter():
    tags = tags_of(PLANNED["ragged"])
    query, key, value = torch.randn(3, 2, 2, 10, 8)
    expected = sa.sentence_attention(query, key, value, sa.plan_sentences(tags, tags), dropout=0.0, scaling=0.5)
    with torch.device("meta"):
        plan = sa.plan_sentences(tags, tags)
        assert plan.packings(tags.device)[0].cu_seqlens.tolist() == [0, 3, 6, 10, 11, 12, 16, 20]
        output = sa.sentence_attention(query, key, value, plan, dropout=0.0, scaling=0.5)
    assert output.equal(expected)


def test_work_is_linear_in_the_number_of_sentences():
    """Neither a mask of the document's length squared nor much padding, also beside a document of one sentence."""
    lengths = torch.randint(5, 60, (400,)).tolist()
    tags = sentences(lengths)
    tags = torch.cat([tags, torch.where(torch.arange(tags.shape[1]) < 60, 1, PADDING)[None]])
    plan, cpu = sa.plan_sentences(tags, tags), torch.device("cpu")
    buckets = plan.gathering(cpu).buckets
    scores = sum(bucket.queries[0] * bucket.queries[1] * bucket.keys[1] for bucket in buckets)
    assert scores < 2 * sum(length**2 for length in lengths)
    assert len(buckets) < 10
    packing, _ = plan.packings(cpu)
    assert packing.max_seqlen <= 60
    assert packing.cu_seqlens.diff().square().sum() < 4 * sum(length**2 for length in lengths)


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


@pytest.mark.parametrize("skip_logits", [False, True])
def test_compiled_model(tiny_model, skip_logits):
    """Outputs and gradients as without a compiler. Without logits the graph ends before the loss."""
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
    assert len(recorder.graphs) == 1
    assert any("cross_entropy" in name for name in names) != skip_logits


@pytest.mark.parametrize("global_positions", ["none", "sentence"])
def test_positions_of_sentences_in_a_graph(tiny_model, documents, global_positions):
    """Loss and gradients of a model whose positions count from the start of a sentence are those of the reference."""
    model = tiny_model(position_scope="sentence", global_positions=global_positions)
    documents["labels"] = documents["input_ids"].masked_fill(documents["input_ids"] == PAD, -100)
    results = []
    for implementation, run in (
        ("eager", model),
        ("sdpa", model),
        ("sdpa", torch.compile(model, backend="aot_eager")),
    ):
        model.set_attn_implementation(implementation)
        model.zero_grad()
        loss = run(**documents).loss
        loss.backward()
        results.append({"loss": loss} | {name: parameter.grad for name, parameter in model.named_parameters()})
    for result in results[1:]:
        torch.testing.assert_close(result, results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", ["by sentence", "compiled"])
def test_tags_of_padding_count_for_nothing(tiny_model, way):
    """A caller may have given padding a tag."""
    model = tiny_model()
    source, target = torch.tensor([[PAD, PAD, 0, 5, 2, 0, 7, 2]]), torch.tensor([[PAD, PAD, 0, 8, 2, 0, 9]])
    encoder_outputs = model.get_encoder()(source, source.ne(PAD))
    inputs = {
        "encoder_outputs": BaseModelOutput(encoder_outputs[0]),
        "attention_mask": source.ne(PAD),
        "group_tags": torch.tensor([[1, 1, 1, 1, 1, 2, 2, 2]]),
        "decoder_input_ids": target,
        "decoder_attention_mask": target.ne(PAD),
        "decoder_group_tags": torch.tensor([[1, 1, 1, 1, 1, 2, 2]]),
        "use_cache": False,  # which torch 2.11 cannot make in a graph, neither here nor in MBart
    }
    model.set_attn_implementation("eager")
    expected = model(**inputs).logits[:, -1]
    model.set_attn_implementation("sdpa")
    run = torch.compile(model, fullgraph=True, backend="eager") if way == "compiled" else model
    torch.testing.assert_close(run(**inputs).logits[:, -1], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_scattered", [False, True])
@pytest.mark.parametrize("kind", ATTENTION_KINDS, ids=str)
def test_a_pass_over_the_row_is_that_over_the_batch(kind, is_scattered):
    """With contiguous source sentences, and with sentences in pieces."""
    model = seeded_model(**kind, init_std=0.25).double()
    source, target = (random_documents(lengths) for lengths in ([[3, 1], [2], [4, 2]], [[2, 2], [5], [1, 3]]))
    real, source_real = (each["attention_mask"].bool() for each in (target, source))
    tags = read_group_tags(target["input_ids"], model.config, is_target=True, attention_mask=real)
    states, source_tags = model.get_encoder()(**source).to_tuple()
    if is_scattered:
        source_tags[0, :6] = torch.tensor([1, 2, 1, 2, 1, 2])
    caches = [EncoderDecoderCache(DynamicCache(), DynamicCache()) for _ in range(2)]
    expected = model.model.decoder(
        target["input_ids"],
        target["attention_mask"],
        states,
        source["attention_mask"],
        cache=caches[0],
        encoder_group_tags=source_tags,
    )[0]

    row, source_row = sa.PackedDocuments(real, tags), sa.PackedDocuments(source_real, source_tags)
    positions = sentence_positions(tags) if model.config.position_scope == "sentence" else document_positions(real)
    packed = model.model.decoder(
        row.pack(target["input_ids"]),
        {"group": row.plan_by_sentence(row, True), "global": row.plan_by_document(row, True)},
        source_row.pack(states),
        {"group": row.plan_by_sentence(source_row), "global": row.plan_by_document(source_row)},
        cache=caches[1],
        group_tags=row.tags,
        encoder_group_tags=source_row.tags,
        position_ids=row.pack(positions),
    )[0]
    torch.testing.assert_close(packed, row.pack(expected))
    for side, of_side in (("self_attention_cache", row), ("cross_attention_cache", source_row)):
        for batch, packed in zip(*(getattr(cache, side).layers for cache in caches), strict=True):
            torch.testing.assert_close(packed.keys.transpose(1, 2), of_side.pack(batch.keys.transpose(1, 2)))
