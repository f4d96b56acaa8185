"""Packed weights give what the weights give, where they can, and are gone afterwards."""

import pytest
import torch
from tiny import random_documents
from torch.utils._python_dispatch import TorchDispatchMode

from modeling_gtransformer.document_translation import translate_documents, translate_in_steps
from modeling_gtransformer.layers_gtransformer import GTransformerAttention, GTransformerGate
from modeling_gtransformer.packed_weights import mkl_is_slow, packed_weights


class Products(TorchDispatchMode):
    """Counts how often weights are packed, and products with such weights."""

    def __init__(self):
        super().__init__()
        self.packed = self.products = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.packed += function is torch.ops.mkldnn._reorder_linear_weight.default
        self.products += function is torch.ops.mkldnn._linear_pointwise.default
        return function(*args, **(kwargs or {}))


@pytest.fixture
def limit(monkeypatch):
    """Sets limits of packing, and whether MKL is slow."""

    def replace(mkl_is_slow=False, **limits):
        for name, value in {**limits, "mkl_is_slow": lambda: mkl_is_slow}.items():
            monkeypatch.setattr(f"modeling_gtransformer.packed_weights.{name}", value)

    return replace


@pytest.fixture(autouse=True)
def small_weights_are_packed(limit):
    """Tiny models take the path of large ones, on every CPU."""
    limit(MIN_SIZE=0, MIN_ROWS=1, MIN_MULTIPLICATIONS=0, PACKS_AFTER=0)


@pytest.fixture
def linear():
    torch.manual_seed(0)
    return torch.nn.Linear(48, 64)


@pytest.mark.parametrize("shape", [(1, 48), (5, 48), (2, 3, 48), (700, 48)])
@pytest.mark.parametrize("bias", [True, False])
def test_products_with_packed_weights(shape, bias):
    layer, states = torch.nn.Linear(48, 64, bias=bias), torch.randn(shape)
    expected = layer(states)
    with torch.no_grad(), packed_weights(layer), Products() as products:
        torch.testing.assert_close(layer(states), expected)
        torch.testing.assert_close(layer(states), expected)
    assert (products.packed, products.products) == (1, 2)
    assert "forward" not in layer.__dict__


def test_a_product_without_rows_is_that_of_the_layer(linear):
    with torch.no_grad(), packed_weights(linear), Products() as products:
        assert linear(torch.empty(0, 48)).shape == (0, 64)
    assert products.packed == 0


@pytest.mark.parametrize(
    "name, value",
    [("MIN_SIZE", 48 * 64 + 1), ("MIN_ROWS", 6), ("MIN_MULTIPLICATIONS", 5 * 48 * 64 + 1), ("PACKS_AFTER", 2)],
)
@pytest.mark.parametrize("above", [0, 1])
def test_few_small_products_are_not_packed(linear, limit, name, value, above):
    limit(**{name: value - above})
    states = torch.randn(5, 48)
    with torch.no_grad(), packed_weights(linear), Products() as products:
        torch.testing.assert_close(linear(states), linear(states))
    assert products.packed == above


@pytest.mark.parametrize("is_slow", [False, True])
@pytest.mark.parametrize("rows, limits", [(5, {"MIN_SIZE": 48 * 64 + 1}), (64, {"PACKS_AFTER": 63})])
def test_where_mkl_is_slow_small_weights_and_large_products_are_packed(linear, limit, is_slow, rows, limits):
    """At once, if there are enough rows, as in an encoder."""
    limit(is_slow, **limits)
    states = torch.randn(rows, 48)
    expected = linear(states)
    with torch.no_grad(), packed_weights(linear), Products() as products:
        torch.testing.assert_close(linear(states), expected)
    assert products.packed == is_slow


@pytest.mark.parametrize(
    "cpu, has_mkl, expected",
    [("GenuineIntel", True, False), ("AuthenticAMD", True, True), ("AuthenticAMD", False, False)],
)
@pytest.mark.parametrize("is_linux", [True, False])
def test_mkl_is_slow_on_cpus_of_amd(monkeypatch, is_linux, cpu, has_mkl, expected):
    monkeypatch.setattr("modeling_gtransformer.packed_weights.Path.exists", lambda _: is_linux)
    monkeypatch.setattr("modeling_gtransformer.packed_weights.Path.read_text", lambda _: f"vendor_id : {cpu}")
    monkeypatch.setattr("platform.processor", lambda: "x86_64" if is_linux else f"AMD64 Family 25, {cpu}")
    monkeypatch.setattr("torch.backends.mkl.is_available", lambda: has_mkl)
    assert mkl_is_slow.__wrapped__() is expected


def test_gates_multiply_both_outputs_by_one_packed_weight():
    torch.manual_seed(0)
    gate, outputs = GTransformerGate(48), torch.randn(2, 5, 3, 48)
    torch.nn.init.normal_(gate.weight)
    expected = gate(*outputs)
    with torch.no_grad(), packed_weights(gate), Products() as products:
        torch.testing.assert_close(gate(*outputs), expected)
    assert (products.packed, products.products) == (1, 1)
    assert gate(*outputs).equal(expected) and "logits" not in gate.__dict__


def test_queries_keys_and_values_are_one_product(tiny_model):
    torch.manual_seed(0)
    attention, states = GTransformerAttention(tiny_model().config, num_heads=2), torch.randn(2, 3, 16)
    expected = attention.project(states)
    with torch.no_grad(), packed_weights(attention), Products() as products:
        torch.testing.assert_close(list(attention.project(states)), list(expected))
        torch.testing.assert_close(attention.queries(states), expected[0])
    assert (products.packed, products.products) == (2, 2) and "project" not in attention.__dict__


@pytest.mark.parametrize("change", ["another class", "a hook", "a hook on all modules"])
def test_projections_that_are_watched_or_adapted_stay_apart(tiny_model, change):
    attention, states, seen = GTransformerAttention(tiny_model().config, num_heads=2), torch.randn(2, 3, 16), []
    if change == "another class":
        attention.v_proj = OwnLinear(16, 16)
    expected = attention.project(states)
    with torch.no_grad(), packed_weights(attention):
        if change == "a hook":
            attention.v_proj.register_forward_hook(lambda *_: seen.append(1))
        elif change == "a hook on all modules":
            handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: seen.append(1))
        torch.testing.assert_close(list(attention.project(states)), list(expected))
    if change == "a hook on all modules":
        handle.remove()
    assert len(seen) == {"another class": 0, "a hook": 1, "a hook on all modules": 3}[change]


def test_gradients_and_changes_of_weights_are_those_of_the_layer(linear):
    states = torch.randn(3, 48)
    expected = linear(states)
    with packed_weights(linear), Products() as products:
        output = linear(states)
    output.sum().backward()
    assert output.equal(expected)
    assert products.packed == 0 and linear.weight.grad is not None
    with torch.no_grad():
        linear.weight.zero_()
        with packed_weights(linear):
            assert linear(states).equal(linear.bias.expand(3, -1))


class OwnLinear(torch.nn.Linear):
    def forward(self, states):
        return super().forward(states) + 1


def offloaded(layer):
    layer.forward = lambda states: torch.nn.functional.linear(states, layer.weight, layer.bias) * 2
    return layer


def adapted(gate):
    gate.logits = lambda *outputs: torch.cat(outputs, dim=-1) @ gate.weight.T * 2
    return gate


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.nn.Linear(4, 4).double(),
        lambda: OwnLinear(4, 4),
        lambda: offloaded(torch.nn.Linear(4, 4)),
        lambda: adapted(GTransformerGate(4)),
    ],
    ids=["another type", "another class", "another forward", "other logits"],
)
def test_other_layers_stay_as_they_are(make):
    layer = make()
    states = torch.randn(2 if isinstance(layer, GTransformerGate) else 1, 3, 4, dtype=layer.weight.dtype)
    with torch.no_grad():
        expected, own = layer(*states), vars(layer).copy()
        with packed_weights(layer), Products() as products:
            assert layer(*states).equal(expected)
            assert vars(layer) == own
    assert products.packed == 0 and vars(layer) == own


def test_autocast_keeps_its_type(linear):
    with torch.no_grad(), packed_weights(linear), torch.autocast("cpu", torch.bfloat16):
        assert linear(torch.randn(3, 48)).dtype == torch.bfloat16


def test_generation_packs_unless_told_otherwise(tiny_model, documents):
    model = tiny_model(init_std=0.5)
    outputs = []
    for pack_weights in (True, False):
        with Products() as products:
            outputs.append(model.generate(**documents, pack_weights=pack_weights))
        assert (products.packed > 0) == pack_weights
    assert outputs[0].equal(outputs[1]) and "forward" not in model.lm_head.__dict__
    model.generation_config.pack_weights = False
    with Products() as products:
        model.generate(**random_documents([[2]]))
    assert products.packed == 0


def test_a_corpus_packs_once(translation_model, processor):
    model = translation_model()
    counts = []
    for documents in ([["the cat"]], [["the cat"], ["the dog sleeps", "the cat"]]):
        with Products() as products:
            translate_documents(model, processor, documents, max_tokens=1, confidence=True)
        counts.append(products.packed)
    linear = sum(isinstance(module, (torch.nn.Linear, GTransformerGate)) for module in model.modules())
    # Self-attention has one product for queries, keys and values.
    self_attention = sum(".self_attn" in name and name.endswith("q_proj") for name, _ in model.named_modules())
    assert counts[0] == counts[1] == linear - 2 * self_attention


def test_the_last_of_several_translations_frees_the_packed_weights(translation_model, processor):
    """The server takes their steps in turn."""
    model, documents = translation_model(), [["the cat"], ["it is"], ["it is old"]]
    arguments = {"max_tokens": 1}
    first, second = (translate_in_steps(model, processor, documents, **arguments) for _ in range(2))
    with Products() as products:
        next(first), next(second)
        packed = products.packed
        assert list(first) and "forward" in vars(model.lm_head)
        next(second)
        assert packed == products.packed
        second.close()
    assert "forward" not in vars(model.lm_head)
