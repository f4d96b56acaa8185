"""Exported graphs compute what the model computes, also for more documents and tokens than they were made with."""

import pytest
import torch
from tiny import TINY, random_documents
from torch.export import Dim, export
from transformers import DynamicCache, EncoderDecoderCache, StaticCache

from modeling_gtransformer.cache_gtransformer import DocumentCache
from modeling_gtransformer.group_tags import read_group_tags


# One layer that combines both kinds of attention, in each stack.
SMALL = {**TINY, "encoder_layers": 1, "decoder_layers": 1}
BATCH, SOURCE, TARGET = Dim("batch"), Dim("source", max=128), Dim("target", max=128)


@pytest.fixture
def sources():
    """The documents of the export, and others: more, with more and longer sentences."""
    return random_documents([(2, 3), (4,), (1, 1)]), random_documents(
        [(5, 1, 3), (2, 2, 2), (9, 1, 1), (1, 1, 4), (2, 2, 1)]
    )


@pytest.fixture
def targets():
    """What is translated of them so far."""
    first, others = (
        random_documents([(2, 1), (4,), (3,)]),
        random_documents([(2, 3, 1), (4, 4), (3,), (1, 1, 1), (8, 1)]),
    )
    return first["input_ids"], others["input_ids"]


def export_encoder(model, documents):
    shapes = {name: {0: BATCH, 1: SOURCE} for name in documents}
    return export(model.get_encoder(), (), dict(documents), dynamic_shapes=shapes, strict=False)


def step_inputs(model, source, target):
    """The inputs of a step of the decoder that reads all of its prefix."""
    states, tags = model.get_encoder()(**source, return_dict=False)
    mask = source["attention_mask"]
    return {"attention_mask": mask, "decoder_input_ids": target, "encoder_outputs": (states, tags), "use_cache": False}


@torch.no_grad()
@pytest.mark.parametrize("position_scope", ["document", "sentence"])
def test_encoder_of_any_batch_and_length(tiny_model, sources, position_scope):
    model = tiny_model(**SMALL, position_scope=position_scope)
    first, others = sources
    exported = export_encoder(model, first)
    # A graph must run without this package, hence without its operators.
    assert not any("group_attention" in str(node.target) for node in exported.graph.nodes)
    states, tags = exported.module()(**others).to_tuple()
    expected = model.get_encoder()(**others)
    real = others["attention_mask"].bool()
    torch.testing.assert_close(states[real], expected.last_hidden_state[real])
    assert torch.equal(tags, expected.group_tags)


@torch.no_grad()
def test_step_of_the_decoder_without_a_cache(tiny_model, sources, targets):
    model = tiny_model(**SMALL)
    given, others = (step_inputs(model, *pair) for pair in zip(sources, targets, strict=True))
    source = {0: BATCH, 1: SOURCE}
    shapes = dict.fromkeys(given) | {
        "attention_mask": source,
        "decoder_input_ids": {0: BATCH, 1: TARGET},
        "encoder_outputs": (source, source),
    }
    step = export(model, (), given, dynamic_shapes=shapes, strict=False).module()
    torch.testing.assert_close(step(**others).logits, model(**others).logits)


def cached_step_inputs(model, source, target):
    """The inputs of a step of the decoder that reads one token, behind those in a cache of Transformers."""
    mask, encoder_outputs = source["attention_mask"], model.get_encoder()(**source)
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    tags = read_group_tags(target, model.config, is_target=True)
    given = {"attention_mask": mask, "encoder_outputs": encoder_outputs, "past_key_values": cache, "use_cache": True}
    model(decoder_input_ids=target[:, :-1], decoder_group_tags=tags[:, :-1], **given)
    return {"decoder_input_ids": target[:, -1:], "decoder_group_tags": tags, **given}


@torch.no_grad()
def test_step_of_the_decoder_with_a_cache(tiny_model, sources, targets):
    model = tiny_model(**SMALL)
    exporter = pytest.importorskip(
        "transformers.exporters.exporter_dynamo", reason="Transformers knows no caches here."
    )
    given, others = (cached_step_inputs(model, *pair) for pair in zip(sources, targets, strict=True))
    exported = exporter.DynamoExporter().export(model, given, exporter.DynamoConfig(dynamic=True))
    expected = model(**step_inputs(model, sources[1], targets[1])).logits[:, -1:]
    del others["use_cache"]  # a constant of the graph
    step = getattr(exported, "program", exported).module()
    torch.testing.assert_close(step(**others).logits, expected)


@torch.no_grad()
def test_encoder_in_onnx(tiny_model, sources, tmp_path):
    for package in ("onnxscript", "onnxruntime"):
        runtime = pytest.importorskip(package, reason="ONNX needs pip install onnxscript onnxruntime.")
    model = tiny_model(**SMALL)
    first, others = sources
    torch.onnx.export(export_encoder(model, first), dynamo=True, verbose=False).save(tmp_path / "encoder.onnx")
    session = runtime.InferenceSession(tmp_path / "encoder.onnx")
    states, tags = (torch.from_numpy(each) for each in session.run(None, {k: v.numpy() for k, v in others.items()}))
    expected = model.get_encoder()(**others)
    real = others["attention_mask"].bool()
    torch.testing.assert_close(states[real], expected.last_hidden_state[real], rtol=1e-4, atol=1e-5)
    assert torch.equal(tags, expected.group_tags)


@torch.no_grad()
def test_what_cannot_be_exported_says_what_can(tiny_model, sources, targets):
    """A cache that follows the sentences, and a step that could not know in which sentence it is."""
    model = tiny_model(**SMALL)
    source, target = sources[0], targets[0]
    given = step_inputs(model, source, target) | {"use_cache": True}
    with pytest.raises(ValueError, match='cache_implementation="dynamic"'):
        export(StepWith(model, DocumentCache(len(target), 1)), (), given, strict=False)
    static = StaticCache(config=model.config, max_cache_len=32)
    static.early_initialization(len(target), 2 * TINY["decoder_attention_heads"], 4, torch.float32, target.device)
    with pytest.raises(ValueError, match="pass decoder_group_tags"):
        export(StepWith(model, EncoderDecoderCache(static, DynamicCache())), (), given, strict=False)


class StepWith(torch.nn.Module):
    """A step of the model with a cache of its own."""

    def __init__(self, model, cache):
        super().__init__()
        self.model, self.cache = model, cache

    def forward(self, **inputs):
        return self.model(past_key_values=self.cache, **inputs).logits
