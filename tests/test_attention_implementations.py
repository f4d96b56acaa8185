"""Other implementations of attention than `eager` and `sdpa` serve the global attention, beside group attention."""

import pytest
import torch
from tiny import ATTENTION_KINDS, random_documents, seeded_model, watch_implementation
from torch.nn.attention.flex_attention import flex_attention
from transformers import AttentionInterface
from transformers.integrations import flex_attention as flex_integration
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface


CALLS = []


def by_padding(module, query, key, value, attention_mask, scaling, dropout=0.0, **kwargs):
    """Stands for a kernel of a GPU: it knows which keys are padding, `(B, S)`, and whether the module is causal."""
    CALLS.append(None if attention_mask is None else attention_mask.dim())
    scores = query @ key.transpose(2, 3) * scaling
    if attention_mask is not None:
        scores = scores.masked_fill(attention_mask[:, None, None] == 0, -1e9)
    if module.is_causal and query.shape[2] > 1:
        scores = scores.masked_fill(torch.ones(scores.shape[2:]).tril() == 0, -1e9)
    return (scores.softmax(dim=-1) @ value).transpose(1, 2), None


@pytest.fixture(params=["flex_attention", "stand_in", "sdpa"])
def implementation(request, monkeypatch):
    # Compiled, it would take a minute, and has no gradient on a CPU.
    monkeypatch.setattr(
        flex_integration,
        "compile_friendly_flex_attention",
        lambda *args, training=False, **kw: flex_attention(*args, **kw),
    )
    AttentionInterface.register("stand_in", by_padding)
    AttentionMaskInterface.register("stand_in", ALL_MASK_ATTENTION_FUNCTIONS["flash_attention_2"])
    CALLS.clear()
    return request.param


def right_padded(documents):
    """Kernels of GPUs take padding on either side; the loss wants it on the right."""
    order = documents["attention_mask"].argsort(dim=1, descending=True, stable=True)
    return {name: tensor.gather(1, order) for name, tensor in documents.items()}


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("kind", ATTENTION_KINDS)
def test_logits_and_gradients_are_those_of_eager(implementation, kind):
    model, documents = seeded_model(**kind, init_std=0.25), right_padded(random_documents([[3, 4], [2]]))
    ids, real = documents["input_ids"], documents["attention_mask"].bool()
    results = []
    for name in ("eager", implementation):
        model.set_attn_implementation(name)
        model.zero_grad()
        # FlexAttention has no gradients on a CPU.
        with torch.set_grad_enabled(implementation != "flex_attention"):
            logits = model(**documents, decoder_input_ids=ids, decoder_attention_mask=real.long()).logits[real]
        if logits.requires_grad:
            logits.square().mean().backward()
        results.append([logits, *(parameter.grad for parameter in model.parameters() if logits.requires_grad)])
    torch.testing.assert_close(*results)
    assert implementation != "stand_in" or {2, None} >= set(CALLS)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("kind", ATTENTION_KINDS)
@torch.no_grad()
def test_a_call_returns_weights_without_a_change_of_the_model(implementation, kind):
    model, documents = seeded_model(**kind, init_std=0.25), right_padded(random_documents([[3, 4], [2]]))
    ids, mask = documents["input_ids"], documents["attention_mask"]
    inputs = {**documents, "decoder_input_ids": ids, "decoder_attention_mask": mask}
    model.set_attn_implementation("eager")
    expected, (reference, recorded) = model(**inputs, output_attentions=True), recording(model, inputs)
    model.set_attn_implementation(implementation)
    seen = watch_implementation(model)
    before, outputs, after = model(**inputs), model(**inputs, output_attentions=True), model(**inputs)
    for field in ("encoder_attentions", "decoder_attentions", "cross_attentions"):
        assert len(outputs[field]) == 2 and field not in before and field not in after
        torch.testing.assert_close(outputs[field], expected[field], rtol=0, atol=1e-5)
    torch.testing.assert_close(outputs.logits[mask == 1], before.logits[mask == 1], rtol=0, atol=1e-5)
    assert after.logits.equal(before.logits)
    logits, own = recording(model, inputs)
    torch.testing.assert_close((logits, own), (reference, recorded), rtol=0, atol=1e-5)
    assert [*own] == [("encoder", 0), ("encoder", 1)] + [
        (stack, layer) for layer in (0, 1) for stack in ("decoder", "cross")
    ]
    assert seen == {implementation} and model.config._attn_implementation == implementation


def recording(model, inputs):
    """Logits, and what a recorder gets, by stack and layer."""
    recorded = {}

    def record(stack, layer, weights, gate):
        assert (gate is not None) == (set(weights) == {"group", "global"})
        recorded[stack, layer] = [*weights.values()] + [each for each in (gate,) if each is not None]

    return model(**inputs, attention_recorder=record).logits, recorded


@pytest.mark.parametrize("mask", ["boolean", "additive"])
def test_weights_under_masks_of_the_caller(mask):
    model = seeded_model(init_std=0.25)
    ids = random_documents([[3, 4]])["input_ids"]
    allowed = torch.rand(1, 1, ids.shape[1], ids.shape[1]).tril() > 0
    allowed[..., 0] = True
    given = allowed if mask == "boolean" else allowed.logical_not() * torch.finfo(torch.float32).min
    inputs = {"input_ids": ids, "decoder_input_ids": ids, "decoder_attention_mask": given}
    outputs = model(**inputs, output_attentions=True)
    torch.testing.assert_close(outputs.logits, model(**inputs).logits, rtol=0, atol=1e-5)
    first, second = outputs.decoder_attentions
    assert first[..., ~allowed[0, 0]].eq(0).all() and second[..., ~allowed[0, 0]].eq(0).all()


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("num_beams", [1, 3])
def test_generation_is_that_of_eager(implementation, num_beams):
    model, documents = seeded_model(init_std=0.5), random_documents([[3, 4], [2]])
    arguments = {**documents, "max_length_b": 3, "num_beams": num_beams}
    expected = model.generate(**arguments)
    model.set_attn_implementation(implementation)
    assert model.generate(**arguments).equal(expected)
