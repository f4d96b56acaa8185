"""What a model attends to: the authors' entropies, the same with padding, and gates as they are."""

import math

import pytest
import torch
from fairseq_reference import Reference
from tiny import GROUP_BELOW_COMBINED, PAD

from modeling_gtransformer.evaluation.attention_recording import attention_entropy, record_attention


AUTHORS_NAMES = {"encoder": "encoder_self", "decoder": "decoder_self", "cross": "decoder_cross"}


def entropies(model, inputs):
    with torch.no_grad():
        sublayers = record_attention(model, **inputs)
    source_mask, target_mask = (inputs[name].ne(PAD) for name in ("input_ids", "decoder_input_ids"))
    totals = attention_entropy(sublayers, source_mask, target_mask)
    return {kind: (bits / tokens).item() for kind, (bits, tokens) in totals.items()}


@pytest.mark.parametrize("name", ["postnorm_sin_k2", "postnorm_sin_k0", "mbart_prenorm_learned_k2"])
def test_without_padding_the_entropies_are_the_authors(name):
    reference = Reference(name)
    printed = reference.meta["batches"]["single_nopad"]["attn_entropy_nats_summed_over_batch"]
    ours = entropies(reference.model, reference.batch("single_nopad"))
    assert len(ours) == (3 if name.endswith("k0") else 6)  # without combined layers nothing is global
    for kind, bits in ours.items():
        stack, kind = kind.split("_")
        authors = printed[f"{AUTHORS_NAMES[stack]}_{kind.replace('group', 'local')}"]
        assert bits * math.log(2) == pytest.approx(authors, rel=1e-4)


def test_padding_does_not_count(tiny_model, documents):
    model = tiny_model()
    target = torch.tensor([[0, 5, 2, 0, 7, 6, 2, 0, 9, 2], [0, 8, 2, 1, 1, 1, 1, 1, 1, 1]])
    alone = []
    for row, (source_length, target_length) in enumerate(((12, 10), (4, 3))):
        ids = documents["input_ids"][row : row + 1, :source_length]
        inputs = {"input_ids": ids, "decoder_input_ids": target[row : row + 1, :target_length]}
        with torch.no_grad():
            sublayers = record_attention(model, **inputs)
        alone.append(attention_entropy(sublayers, *(torch.ones_like(ids).bool() for ids in inputs.values())))
    together = entropies(model, {**documents, "decoder_input_ids": target})
    assert set(together) == {f"{stack}_{kind}" for stack in AUTHORS_NAMES for kind in ("group", "global")}
    for kind, value in together.items():
        bits, tokens = sum(part[kind] for part in alone)
        assert value == pytest.approx((bits / tokens).item(), rel=1e-5)


def test_attention_spread_evenly_has_the_logarithm_of_the_tokens(tiny_model):
    model = tiny_model()
    for name, parameter in model.named_parameters():
        if "q_proj" in name:
            parameter.data.zero_()
    ids = torch.tensor([[0, 5, 6, 2, 0, 7, 8, 2]])
    measured = entropies(model, {"input_ids": ids, "decoder_input_ids": ids})
    assert measured["encoder_group"] == measured["cross_group"] == pytest.approx(2)
    assert measured["encoder_global"] == measured["cross_global"] == pytest.approx(3)
    # Causal: the mean over the logarithms of 1 to 8.
    assert measured["decoder_global"] == pytest.approx(sum(map(math.log2, range(1, 9))) / 8)


def test_other_passes_during_a_recording_are_not_recorded(tiny_model, documents):
    """Not even those that are recorded themselves."""
    model, nested = tiny_model(), []
    inputs = {**documents, "decoder_input_ids": documents["input_ids"]}
    other = {"input_ids": torch.tensor([[0, 5, 2]]), "decoder_input_ids": torch.tensor([[0, 6, 2, 0]])}

    def run_other(*_):
        handle.remove()
        model(**other)
        nested.append(record_attention(model, **other))

    with torch.no_grad():
        alone = [record_attention(model, **each) for each in (inputs, other)]
        handle = model.model.decoder.layers[1].register_forward_pre_hook(run_other)
        together = [record_attention(model, **inputs), *nested]
    for recorded, expected in zip(together, alone, strict=True):
        assert [(each.stack, each.layer) for each in recorded] == [(each.stack, each.layer) for each in expected]
        torch.testing.assert_close([each.weights for each in recorded], [each.weights for each in expected])


def test_recording_gives_gates_and_leaves_no_trace(tiny_model, documents):
    model = tiny_model(**GROUP_BELOW_COMBINED)
    implementation = model.config._attn_implementation
    inputs = {**documents, "decoder_input_ids": documents["input_ids"]}
    with torch.no_grad():
        before = model(**inputs).logits
        sublayers = record_attention(model, **inputs)
        assert torch.equal(model(**inputs).logits, before)
    assert model.config._attn_implementation == implementation
    by_place = {(sublayer.stack, sublayer.layer): sublayer for sublayer in sublayers}
    assert len(by_place) == 6 and by_place["encoder", 0].gate is None
    top = by_place["cross", 1]
    assert set(top.weights) == {"group", "global"} and set(by_place["cross", 0].weights) == {"group"}
    assert top.gate.shape == (2, 12) and ((top.gate > 0) & (top.gate < 1)).all()
    # A gate that is shut lets nothing of the group through.
    gate = model.model.decoder.layers[1].encoder_attn_gate
    gate.bias.data.fill_(-100.0)
    with torch.no_grad():
        sublayers = record_attention(model, **inputs)
    assert next(s for s in sublayers if (s.stack, s.layer) == ("cross", 1)).gate.max() < 1e-6
