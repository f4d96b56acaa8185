"""Inputs of candidates within the positions of a model, and what counts as right."""

import pytest

from modeling_gtransformer import GTransformerConfig, GTransformerProcessor
from modeling_gtransformer.evaluation.contrastive_scores import count_right, encode
from modeling_gtransformer.evaluation.contrastive_suites import ContrastiveItem, read_suite


def test_a_tie_is_not_right():
    items = [
        ContrastiveItem(name, ["s"], [], ["a", "b"], "er", distance) for name, distance in (("x", 1), ("y", None))
    ]
    counts = count_right(items, {"x": [-1.0, -1.0], "y": [-1.0, -2.0]})
    assert counts["er"] == {"items": 2, "right": 1, "accuracy": 50.0} and counts["all"]["right"] == 1
    assert counts["er, distance 1"]["right"] == 0


def test_further_groups_are_counted():
    groups = {"x": "g", "y": "h", "z": None}
    items = [ContrastiveItem(name, ["s"], [], ["a", "b"], "er", None, group) for name, group in groups.items()]
    counts = count_right(items, {"x": [-1.0, -2.0], "y": [-2.0, -1.0], "z": [-1.0, -2.0]})
    assert (counts["g"]["accuracy"], counts["h"]["accuracy"], counts["all"]["items"]) == (100, 0, 3)


def test_positions_of_a_sentence_bound_only_sentences(trained_model, contrapro):
    processor = GTransformerProcessor.from_pretrained(trained_model)
    items = read_suite(contrapro)
    longest = max(map(len, processor.encode_sentences([*items[0].source, *items[0].candidates], is_target=True)))
    config = GTransformerConfig(max_position_embeddings=longest + 3, position_scope="sentence")
    assert len(encode(items[:1], processor, config)) == 1
    config.max_position_embeddings = 3
    with pytest.raises(ValueError, match=r"has a sentence of \d+ tokens, the model 3 positions"):
        encode(items[:1], processor, config)
    config.max_position_embeddings, config.position_scope = longest + 3, "document"
    with pytest.raises(ValueError, match="use less context"):
        encode(items[:1], processor, config)
