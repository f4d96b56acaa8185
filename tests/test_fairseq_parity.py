"""The numbers that the authors' fairseq code printed for seeded random weights."""

import pytest
import torch
from fairseq_reference import CONFIGS, Reference, renamed
from tiny import BOS, EOS, PAD

from modeling_gtransformer.group_tags import group_tags


BATCHES = ["valid_ragged", "train_noise_ragged", "single_nopad"]


@pytest.fixture(params=CONFIGS)
def reference(request):
    return Reference(request.param)


def assert_close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", BATCHES)
def test_states_logits_and_loss(reference, name, attention):
    model, batch = reference.model, reference.batch(name)
    model.set_attn_implementation(attention)
    outputs = model(**batch, label_smoothing=0.1, num_items_in_batch=1)
    real_source = batch["attention_mask"].bool()
    real_target = batch["decoder_input_ids"] != PAD
    assert_close(outputs.encoder_last_hidden_state[real_source], reference[f"{name}.encoder_out"][real_source])
    assert_close(outputs.logits[real_target], reference[f"{name}.logits"][real_target])
    printed = reference.meta["batches"][name]
    assert outputs.loss.item() == pytest.approx(printed["loss_sum"], rel=1e-5)
    nll = model(**batch, num_items_in_batch=1).loss.item()
    assert nll == pytest.approx(printed["nll_loss_sum"], rel=1e-5)
    assert group_tags(batch["input_ids"], BOS, EOS).equal(reference[f"{name}.encoder_tags"])
    assert group_tags(batch["decoder_input_ids"], BOS, EOS).equal(reference[f"{name}.decoder_tags"])


def test_every_layer():
    reference, name = Reference("postnorm_sin_k2"), "valid_ragged"
    batch = reference.batch(name)
    outputs = reference.model(**batch, output_hidden_states=True)
    real_source, real_target = batch["attention_mask"].bool(), batch["decoder_input_ids"] != PAD
    for layer in range(3):
        ours = outputs.encoder_hidden_states[layer + 1]
        assert_close(ours[real_source], reference[f"{name}.enc_layer{layer}"][real_source])
    for layer in range(4):
        ours = outputs.decoder_hidden_states[layer]
        assert_close(ours[real_target], reference[f"{name}.dec_state{layer}"][real_target])


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", BATCHES)
def test_gradients(reference, name, attention):
    model = reference.model
    model.set_attn_implementation(attention)
    model(**reference.batch(name), label_smoothing=0.1, num_items_in_batch=1).loss.backward()
    ours = {key: parameter.grad for key, parameter in model.named_parameters() if parameter.grad is not None}
    printed = reference.meta["batches"][name]["grad_l2_and_sum"]
    printed = renamed(printed)
    assert ours.keys() == printed.keys()
    for key, (norm, total) in printed.items():
        assert ours[key].norm().item() == pytest.approx(norm, rel=1e-3, abs=1e-4), key
        assert ours[key].sum().item() == pytest.approx(total, rel=1e-3, abs=2e-3), key


@pytest.mark.parametrize("beams", [1, 5])
@pytest.mark.parametrize("name", ["valid_ragged", "single_nopad"])
def test_beam_search(reference, name, beams):
    """Token for token, with the authors' limit, which is short of one source token (int((n - 1) * a + b))."""
    batch = reference.batch(name)
    outputs = reference.model.generate(
        batch["input_ids"],
        attention_mask=batch["attention_mask"],
        num_beams=beams,
        num_return_sequences=beams,
        early_stopping=True if beams > 1 else None,
        max_length_b=10 - 1.2 + 1e-6,
        return_dict_in_generate=True,
        output_scores=True,
    )
    documents = reference.meta["generation"][f"{name}.beam{beams}"]["hyps"]
    rows = outputs.sequences[:, 1:].unflatten(0, (len(documents), beams)).tolist()
    assert [[token for token in row[0] if token != PAD] for row in rows] == [best["tokens"] for best, *_ in documents]
    if beams == 1:
        return
    # Of the hypotheses that finish last theirs keeps the first few, Transformers the best: equal where they are in
    # both lists, and at no rank worse.
    for ours, scores, theirs in zip(rows, outputs.sequences_scores.view(-1, beams).tolist(), documents, strict=True):
        assert scores[0] == pytest.approx(theirs[0]["score"], abs=1e-5)
        known = {tuple(hypothesis["tokens"]): hypothesis["score"] for hypothesis in theirs}
        for row, score, their in zip(ours, scores, theirs, strict=True):
            tokens = tuple(token for token in row if token != PAD)
            assert score == pytest.approx(known.get(tokens, score), abs=1e-5)
            assert score >= their["score"] - 1e-5
