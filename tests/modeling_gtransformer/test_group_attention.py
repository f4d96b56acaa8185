"""The reference and the gate against their formulas, and which attention goes sentence by sentence."""

import pytest
import torch
from tiny import ONLY_GLOBAL, ONLY_GROUP, PAD

from modeling_gtransformer.group_attention import eager_attention_forward, group_mask
from modeling_gtransformer.layers_gtransformer import GTransformerGate
from modeling_gtransformer.sentence_attention import plan_sentences


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_sentences_are_independent_without_global_attention(tiny_model, attention):
    """Changing a word of one sentence changes the states of that sentence only; sinusoids or not."""
    model = tiny_model(**ONLY_GROUP)
    model.set_attn_implementation(attention)
    ids = torch.tensor([[0, 5, 6, 2, 0, 7, 2, 0, 9, 10, 2]])
    target = torch.tensor([[0, 8, 2, 0, 9, 9, 2, 0, 3, 2]])
    changed = ids.clone()
    changed[0, 5] = 20
    before, after = (model(input_ids=source, decoder_input_ids=target) for source in (ids, changed))
    moved = (before.logits != after.logits).any(-1)
    assert moved.tolist() == [[False] * 3 + [True] * 4 + [False] * 3]
    states = (before.encoder_last_hidden_state != after.encoder_last_hidden_state).any(-1)
    assert states.tolist() == [[False] * 4 + [True] * 3 + [False] * 4]


@pytest.mark.parametrize("kind", [ONLY_GROUP, {}, ONLY_GLOBAL], ids=["group", "combined", "global"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_and_implementations_agree(tiny_model, documents, kind, side):
    """A batch gives what its documents give alone, on either side's padding, eager and sdpa."""
    model = tiny_model(**kind)
    short = documents["input_ids"][1, :4][None]
    target = torch.tensor([[0, 8, 9, 2], [0, 8, 2, 1]])
    source = documents["input_ids"]
    if side == "left":
        source = torch.cat([source[:1], source[1:].roll(8, 1)])
    batch = {"input_ids": source, "attention_mask": source.ne(PAD).long(), "decoder_input_ids": target}
    alone = model(input_ids=short, decoder_input_ids=target[1:, :3]).logits
    for attention in ("eager", "sdpa"):
        model.set_attn_implementation(attention)
        torch.testing.assert_close(model(**batch).logits[1:, :3], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_target_sentence_without_source_sentence(tiny_model, attention):
    """The authors' code spreads NaN over the document; here such a query finds nothing and comes out as zeros."""
    model = tiny_model(**ONLY_GROUP)
    model.set_attn_implementation(attention)
    target = torch.tensor([[0, 5, 2, 0, 6, 2]])
    cross = []
    hook = model.model.decoder.layers[0].encoder_attn.out_proj.register_forward_pre_hook(
        lambda module, inputs: cross.append(inputs[0])
    )
    output = model(input_ids=torch.tensor([[0, 5, 6, 2]]), decoder_input_ids=target, labels=target)
    hook.remove()
    output.loss.backward()
    assert (cross[0][0, 3:] == 0).all() and (cross[0][0, :3] != 0).any()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert all(gradient.isfinite().all() for gradient in [output.loss, *gradients])


def test_explicit_tags_replace_those_of_the_ids(tiny_model, documents):
    model = tiny_model()
    target = torch.tensor([[0, 5, 2, 0, 6, 2, 0, 7, 2]])
    ids = documents["input_ids"][:1]
    tags = torch.tensor([[1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3]])
    read = model(input_ids=ids, decoder_input_ids=target).logits
    embeds = model.get_input_embeddings()(ids)
    given = model(inputs_embeds=embeds, group_tags=tags.int(), decoder_input_ids=target).logits
    other = model(input_ids=ids, group_tags=tags * 0, decoder_input_ids=target).logits
    torch.testing.assert_close(given, read)
    assert not torch.allclose(other, read)


def test_eager_reference_and_gate_follow_the_formulas():
    query, key, value = torch.randn(3, 2, 4, 5, 8)
    tags = torch.tensor([[1, 1, 2, 2, 0], [1, 2, 2, 0, 0]])
    mask = group_mask(torch.zeros(2, 1, 5, 5), tags, tags)
    output, weights = eager_attention_forward(torch.nn.Module().eval(), query, key, value, mask, scaling=8**-0.5)
    for document in range(2):
        for position, tag in enumerate(tags[document]):
            seen = torch.ones(5).bool() if tag == 0 else tags[document] == tag
            scores = torch.einsum("hk,hsk->hs", query[document, :, position], key[document][:, seen]) / 8**0.5
            expected = torch.einsum("hs,hsk->hk", scores.softmax(-1), value[document][:, seen])
            torch.testing.assert_close(output[document, position], expected)
    assert weights.sum(-1).allclose(torch.ones(2, 4, 5))

    gate, group, document = GTransformerGate(8), torch.randn(2, 3, 8), torch.randn(2, 3, 8)
    g = torch.sigmoid(torch.cat([group, document], -1) @ gate.weight.T + gate.bias)
    torch.testing.assert_close(gate(group, document), g * group + (1 - g) * document)


def test_the_reference_keeps_half_precision_under_a_boolean_mask():
    states, mask = torch.randn(1, 2, 3, 4).bfloat16(), torch.ones(1, 1, 3, 3).tril().bool()
    output, weights = eager_attention_forward(torch.nn.Module(), states, states, states, mask, scaling=1.0)
    assert output.dtype == weights.dtype == torch.bfloat16
    assert not weights[..., ~mask[0, 0]].any() and weights[..., mask[0, 0]].all()


def test_the_reference_drops_weights_in_training_only():
    states, module = torch.randn(2, 4, 6, 8), torch.nn.Module()
    mask = torch.zeros(1, 1, 6, 6)
    whole, dropped = (
        eager_attention_forward(module.train(training), states, states, states, mask, 1.0, dropout=0.5)
        for training in (False, True)
    )
    kept = dropped[1] != 0
    assert 0.3 < kept.float().mean() < 0.7 and (whole[1] != 0).all()
    torch.testing.assert_close(dropped[1][kept], 2 * whole[1][kept])
    torch.testing.assert_close(dropped[0], (dropped[1] @ states).transpose(1, 2))


def test_only_documents_without_source_sentences_are_open(tiny_model):
    """Whatever their target marks; the others of the batch stay closed."""
    grouped, plain = tiny_model(**ONLY_GROUP), tiny_model(**ONLY_GLOBAL)
    plain.load_state_dict(grouped.state_dict())
    source = torch.tensor([[5, 6, 7, 2, 48, 6], [0, 5, 2, 0, 6, 2]])
    target = torch.tensor([[0, 5, 6, 7], [0, 5, 2, 0]])
    together = grouped(input_ids=source, decoder_input_ids=target).logits
    torch.testing.assert_close(together[0], plain(input_ids=source[:1], decoder_input_ids=target[:1]).logits[0])
    torch.testing.assert_close(together[1], grouped(input_ids=source[1:], decoder_input_ids=target[1:]).logits[0])
    source[1, 4] = 9  # in its second sentence
    changed = grouped(input_ids=source, decoder_input_ids=target).logits
    torch.testing.assert_close(changed[1, :3], together[1, :3])
    assert not torch.allclose(changed[1, 3], together[1, 3])


def test_a_ready_made_mask_is_used_as_it_is(tiny_model):
    """Also by group attention, which it opens to other sentences here."""
    grouped, plain = tiny_model(**ONLY_GROUP), tiny_model(**ONLY_GLOBAL)
    plain.load_state_dict(grouped.state_dict())
    ids = torch.tensor([[0, 5, 2, 0, 6, 2]])
    states = grouped.get_encoder()(ids, attention_mask=torch.zeros(1, 1, 6, 6)).last_hidden_state
    torch.testing.assert_close(states, plain.get_encoder()(ids).last_hidden_state)


@pytest.fixture
def plans(monkeypatch):
    """The plans that a model makes."""
    made = []
    monkeypatch.setattr(
        "modeling_gtransformer.group_attention.plan_sentences",
        lambda *args, **kwargs: made.append(plan_sentences(*args, **kwargs)) or made[-1],
    )
    return made


def test_sentences_that_are_not_contiguous_have_a_mask(tiny_model, plans):
    model, ids = tiny_model(), torch.tensor([[0, 5, 6, 2, 7, 2], [0, 5, 2, 7, 6, 2]])
    tags = torch.tensor([[1, 2, 1, 2, 1, 1], [1, 2, 2, 1, 2, 2]])
    logits = []
    for implementation in ("sdpa", "eager"):
        model.set_attn_implementation(implementation)
        logits.append(model(input_ids=ids, decoder_input_ids=ids, group_tags=tags, decoder_group_tags=tags).logits)
    torch.testing.assert_close(*logits, rtol=1e-4, atol=1e-5)
    assert plans == [None] * 3


@pytest.mark.parametrize("outsider", [{"source": 48}, {"target": 49}, {}], ids=str)
def test_model_takes_the_path_wherever_it_is_exact(tiny_model, plans, outsider):
    """Padding is no reason to leave it; a real token outside of all sentences, which sees everything, is: then those
    attentions have no plan in which it asks."""
    model = tiny_model()
    source = torch.tensor([[outsider.get("source", PAD), 0, 5, 6, 2, 0, 7, 2], [0, 8, 9, 9, 2, 0, 8, 2]])
    target = torch.tensor([[outsider.get("target", 0), 0, 5, 2, 0, 6, 2], [0, 5, 2, 0, 6, 2, PAD]])
    target[0] = target[0] if outsider.get("target") else torch.tensor([0, 5, 2, 0, 6, 7, 2])
    inputs = {"input_ids": source, "attention_mask": source.ne(PAD), "labels": target}
    inputs["decoder_input_ids"] = target
    fast = model(**inputs).logits
    assert [plan is None for plan in plans] == ["source" in outsider, "target" in outsider, "target" in outsider]
    model.set_attn_implementation("eager")
    real = target != PAD
    torch.testing.assert_close(fast[real], model(**inputs).logits[real], rtol=1e-4, atol=1e-5)
