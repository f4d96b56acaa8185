"""Linear layers in 8 bits are those in float32 up to rounding, on every CPU, and cannot be saved by mistake."""

import math
import os
import subprocess
import sys

import pytest
import torch
from repository import ROOT

from modeling_gtransformer.corpora.fingerprint import hashes_of_translator
from modeling_gtransformer.runtime.int8_linear import Int8Linear, packed, quantize_linear_layers
from modeling_gtransformer.runtime.translator import Translator


@pytest.fixture(params=["oneDNN", "no kernels"])
def architecture(request, monkeypatch):
    """On other architectures than x86, oneDNN has no kernels for such products."""
    if request.param == "no kernels":
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")


@pytest.mark.usefixtures("architecture")
@pytest.mark.parametrize("shape", [(1, 48), (5, 48), (2, 3, 48), (0, 48), (700, 48)])
@pytest.mark.parametrize("bias", [True, False])
def test_products_are_those_of_float32_up_to_rounding(shape, bias):
    torch.manual_seed(0)
    layer = torch.nn.Linear(48, 64, bias=bias)
    states = torch.randn(shape) * torch.logspace(-3, 3, math.prod(shape[:-1])).view(*shape[:-1], 1)
    with torch.no_grad():
        expected, output = layer(states), Int8Linear(layer)(states)
    error = (output - expected).norm(dim=-1) / expected.norm(dim=-1)
    assert output.shape == expected.shape and (error < 0.02).all()


@pytest.mark.usefixtures("architecture")
def test_a_row_does_not_depend_on_the_others():
    layer, states = Int8Linear(torch.nn.Linear(48, 64)), torch.randn(9, 48)
    states[3] *= 1e6
    assert all(layer(states)[row].equal(layer(states[row])) for row in range(9))


@pytest.mark.usefixtures("architecture")
def test_zeros_give_the_bias():
    linear = torch.nn.Linear(8, 4)
    assert Int8Linear(linear)(torch.zeros(3, 8)).equal(linear.bias.expand(3, -1))
    torch.nn.init.zeros_(linear.weight)
    assert Int8Linear(linear)(torch.randn(3, 8)).equal(linear.bias.expand(3, -1))


@pytest.mark.parametrize("instructions", ["AVX2", "ALL"])
def test_sums_do_not_overflow(instructions):
    """Without VNNI, a CPU adds products in 16 bits; on another architecture oneDNN ignores the setting."""
    script = """
import torch
from modeling_gtransformer.runtime.int8_linear import Int8Linear
linear = torch.nn.Linear(512, 64, bias=False)
torch.nn.init.ones_(linear.weight)
for states in (torch.ones(5, 512), -torch.ones(5, 512)):
    torch.testing.assert_close(Int8Linear(linear)(states), 512 * states[:, :64])
"""
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": instructions, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=120)


@pytest.mark.usefixtures("architecture")
def test_translations_stay_and_saving_is_refused(checkpoint, tmp_path):
    """The output layer is in 8 bits as well, although it shares its weights with the embeddings, which are not."""
    columns = {"source": [["the cat", "it is old"], ["the dog sleeps"]]}
    translate, expected = Translator(checkpoint, precision="int8"), Translator(checkpoint)
    for settings in ({}, {"num_beams": 2}, {"parallel_sentences": True}):
        assert translate(columns, **settings) == expected(columns, **settings)
    model, processor = translate.pipeline.model, translate.pipeline.processor
    assert isinstance(model.lm_head, Int8Linear)
    assert model.get_input_embeddings().weight.equal(expected.pipeline.model.get_input_embeddings().weight)
    with pytest.raises(ValueError, match="in int8 cannot be saved"):
        model.save_pretrained(tmp_path)
    before = hashes_of_translator(model, processor)
    layer = model.model.decoder.layers[0].fc1
    layer.int8_weight = packed(torch.zeros(layer.out_features, layer.in_features, dtype=torch.int8))
    assert hashes_of_translator(model, processor)["weights"] != before["weights"]


def test_queries_keys_and_values_of_a_self_attention_are_one_product(tiny_model):
    layer, states = (model := tiny_model()).model.decoder.layers[1], torch.randn(2, 3, 16)
    attention = layer.self_attn_global
    parts = [Int8Linear(part) for part in (attention.q_proj, attention.k_proj, attention.v_proj)]
    quantize_linear_layers(model)
    products = zip(attention.project(states), parts, strict=True)
    assert all(one.equal(attention.split_heads(part(states))) for one, part in products)
    counted = sum(type(module) is Int8Linear for module in layer.modules())
    assert counted == 2 * (2 + 4) + 2


def test_layers_of_another_class_stay(tiny_model):
    class OwnLinear(torch.nn.Linear):
        pass

    model = tiny_model()
    model.model.decoder.layers[0].fc1 = OwnLinear(16, 16)
    quantize_linear_layers(model)
    assert type(model.model.decoder.layers[0].fc1) is OwnLinear
    assert not any(type(module) is torch.nn.Linear for module in model.modules())
