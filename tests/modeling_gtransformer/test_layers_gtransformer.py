"""Each of the dropouts of the recipe is at its place, and half precision does not overflow."""

import pytest
import torch

from modeling_gtransformer.group_attention import TaggedTokens


def zeros_in(states):
    """Share of the elements that are zero."""
    return states.eq(0).float().mean().item()


@pytest.mark.parametrize(("training", "share"), [(True, 0.5), (False, 0.0)], ids=["training", "evaluation"])
class TestDropoutOfTheModel:
    """Each of the places where training drops states, alone; without them a small model learns its corpus by heart."""

    def test_of_embeddings(self, tiny_model, training, share):
        encoder = tiny_model(dropout=0.5).model.encoder.train(training)
        embedded = encoder.embed(torch.randn(8, 64, 16), None, TaggedTokens.of(torch.ones(8, 64).long(), None), 0)
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
