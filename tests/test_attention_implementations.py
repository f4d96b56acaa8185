"""Other implementations of attention than `eager` and `sdpa` serve the global attention, beside group attention."""

import pytest
import torch
from tiny import ATTENTION_KINDS, random_documents, seeded_model
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


@pytest.fixture(params=["flex_attention", "stand_in"])
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
def test_logits_are_those_of_eager(implementation, kind):
    model, documents = seeded_model(**kind, init_std=0.25), right_padded(random_documents([[3, 4], [2]]))
    ids, real = documents["input_ids"], documents["attention_mask"].bool()
    logits = []
    for name in ("eager", implementation):
        model.set_attn_implementation(name)
        with torch.no_grad():
            logits.append(model(**documents, decoder_input_ids=ids, decoder_attention_mask=real.long()).logits[real])
    torch.testing.assert_close(*logits)
    assert implementation != "stand_in" or {2, None} >= set(CALLS)


def test_gradients_are_those_of_eager(implementation):
    if implementation == "flex_attention":
        pytest.skip("FlexAttention has no gradients on a CPU")
    model, documents = seeded_model(), right_padded(random_documents([[3, 4], [2]]))
    labels = documents["input_ids"].masked_fill(documents["attention_mask"] == 0, -100)
    gradients = []
    for name in ("eager", implementation):
        model.set_attn_implementation(name)
        model.zero_grad()
        model(**documents, labels=labels).loss.backward()
        gradients.append({name: parameter.grad for name, parameter in model.named_parameters()})
    torch.testing.assert_close(*gradients)
    assert CALLS


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("num_beams", [1, 3])
def test_generation_is_that_of_eager(implementation, num_beams):
    model, documents = seeded_model(init_std=0.5), random_documents([[3, 4], [2]])
    arguments = {**documents, "max_length_b": 3, "num_beams": num_beams}
    expected = model.generate(**arguments)
    model.set_attn_implementation(implementation)
    assert model.generate(**arguments).equal(expected)
