"""Dropout that draws and keeps less, and activations that are computed again: as the plain ones."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from modeling_gtransformer.attention_masks import Side
from modeling_gtransformer.layers_gtransformer import dropout


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.999])
def test_drops_its_share_and_keeps_the_mean(rate):
    dropped = dropout(torch.ones(1_000_003), rate, training=True)
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=0.002)
    torch.testing.assert_close(
        dropped[dropped > 0], torch.full_like(dropped[dropped > 0], 1 / (1 - rate)), rtol=0.01, atol=0
    )
    # Neighbours come from one draw, yet fall apart.
    both = (dropped[:-1] == 0) & (dropped[1:] == 0)
    assert both.float().mean().item() == pytest.approx(rate**2, abs=0.002)


@given(
    shape=st.lists(st.integers(0, 5), max_size=3),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float64]),
)
def test_the_gradient_passes_where_the_states_did(shape, dtype):
    states = torch.ones(shape, dtype=dtype, requires_grad=True)
    output = dropout(states, 0.5, training=True)
    (gradient,) = torch.autograd.grad(output.sum(), states)
    assert output.dtype == dtype and output.shape == states.shape
    assert set(output.flatten().tolist()) <= {0.0, 2.0}
    assert torch.equal(gradient, output)


def test_keeps_one_byte_for_an_element():
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda _: None):
        dropout(torch.ones(100, requires_grad=True), 0.1, training=True)
    assert sum(tensor.nbytes for tensor in kept) == 100


@pytest.mark.parametrize("rate", [-0.1, 1.5])
def test_impossible_rates_are_refused(rate):
    with pytest.raises(ValueError, match="probability"):
        dropout(torch.ones(10), rate, training=True)


def test_follows_the_seed():
    states = torch.ones(100)
    first = dropout(states, 0.5, training=True)
    assert not torch.equal(first, dropout(states, 0.5, training=True))
    torch.manual_seed(0)
    assert torch.equal(first, dropout(states, 0.5, training=True))


@pytest.mark.parametrize(("rate", "training", "expected"), [(0.1, False, 1.0), (0.0, True, 1.0), (1.0, True, 0.0)])
def test_all_or_nothing(rate, training, expected):
    assert torch.equal(dropout(torch.ones(10), rate, training), torch.full((10,), expected))


@pytest.mark.parametrize("activation", ["gelu", "relu", "gelu_new"])
def test_activation_is_computed_again_instead_of_kept(tiny_model, documents, activation):
    """The gradients are those of a model that keeps it, as one with a hook at the layer does."""
    labels = torch.tensor([[5, 2, 0, 6, 2, 0, 7, 2, 49], [8, 2, 49] + [-100] * 6])
    gradients, kept = [], []
    for hooked in (False, True):
        torch.manual_seed(0)
        model = tiny_model(dropout=0.0, activation_function=activation, encoder_ffn_dim=512).train()
        for module in model.modules():
            if hooked and isinstance(module, torch.nn.Linear):
                module.register_forward_hook(lambda *_: None)
        seen: dict[int, int] = {}
        with torch.autograd.graph.saved_tensors_hooks(
            lambda saved, seen=seen: (seen.update({saved.data_ptr(): saved.numel()}), saved)[1], lambda saved: saved
        ):
            loss = model(**documents, labels=labels).loss
        loss.backward()
        kept.append(sum(size == 2 * 12 * 512 for size in seen.values()))
        gradients.append({name: parameter.grad for name, parameter in model.named_parameters()})
    torch.testing.assert_close(*gradients)
    assert kept[0] == 2 and (activation == "relu") == (kept[1] == 2)


def zeros_in(states):
    """Share of the elements that are zero."""
    return states.eq(0).float().mean().item()


@pytest.mark.parametrize(("training", "share"), [(True, 0.5), (False, 0.0)], ids=["training", "evaluation"])
class TestDropoutOfTheModel:
    """Each of the places where training drops states, alone; without them a small model learns its corpus by heart."""

    def test_of_embeddings(self, tiny_model, training, share):
        encoder = tiny_model(dropout=0.5).model.encoder.train(training)
        embedded = encoder.embed(torch.randn(8, 64, 16), None, Side.of(torch.ones(8, 64).long(), None), 0)
        assert zeros_in(embedded) == pytest.approx(share, abs=0.03)

    @pytest.mark.parametrize("normalize_before", [True, False])
    def test_of_what_a_sublayer_adds(self, tiny_model, training, share, normalize_before):
        model = tiny_model(dropout=0.5, normalize_before=normalize_before)
        layer = model.model.encoder.layers[0].train(training)
        added = layer.sublayer(torch.nn.Identity(), torch.ones_like, torch.zeros(8, 64, 16))
        assert zeros_in(added) == pytest.approx(share, abs=0.03)
        assert set(added.flatten().tolist()) == ({0.0, 2.0} if training else {1.0})

    @pytest.mark.parametrize("activation", ["relu", "gelu"])
    def test_of_activations(self, tiny_model, training, share, activation):
        """Also where the activation would be computed again, which knows of no dropout."""
        model = tiny_model(dropout=0.0, activation_dropout=0.5, activation_function=activation)
        layer = model.model.decoder.layers[1].train(training)
        layer.fc1.weight.data.zero_()
        layer.fc1.bias.data.fill_(1.0)  # so that no activation is zero by itself
        layer.fc2.weight.data.copy_(torch.eye(16, 24))
        layer.fc2.bias.data.zero_()
        assert zeros_in(layer.feed_forward(torch.zeros(8, 64, 16))) == pytest.approx(share, abs=0.03)


def test_half_precision_is_kept_within_its_range(tiny_model):
    """What would overflow in float16 is clamped, as in mBART; in other precisions nothing is."""
    layer, most = tiny_model(dropout=0.0).model.encoder.layers[0], torch.finfo(torch.float16).max
    layer.fc2.weight.data.zero_()
    layer.fc2.bias.data.fill_(65000.0)
    states = torch.full((1, 2, 16), 10000.0)
    assert layer.feed_forward(states).unique().tolist() == [75000.0]
    assert layer.half().feed_forward(states.half()).unique().tolist() == [pytest.approx(most - 1000, abs=16)]
    layer.fc2.bias.data.fill_(-65000.0)
    assert layer.feed_forward(-states.half()).unique().tolist() == [pytest.approx(1000 - most, abs=16)]
