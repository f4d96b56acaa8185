"""Arguments, names and weights of the authors' fairseq code under ours."""

import pytest
import torch
from fairseq_reference import Reference

from modeling_gtransformer.training.fairseq import config_from_fairseq, rename, state_dict_from_fairseq


@pytest.fixture
def reference():
    return Reference("mbart_prenorm_learned_k2")


def test_sides_that_differ_have_no_configuration(reference):
    with pytest.raises(ValueError, match="encoder_learned_pos and decoder_learned_pos differ"):
        config_from_fairseq(reference.meta["args"] | {"decoder_learned_pos": False}, 114)


def test_a_run_on_whole_documents_has_global_attention(reference):
    config = config_from_fairseq(reference.meta["args"] | {"doc_mode": "full"}, 114)
    stacks = ("encoder", "decoder", "cross")
    assert {kind for stack in stacks for kind in config.attention_types(stack)} == {"global"}


@pytest.mark.parametrize(
    "theirs, ours",
    [
        ("encoder.layers.0.self_attn_local.k_proj.bias", "model.encoder.layers.0.self_attn.k_proj.bias"),
        ("decoder.layers.1.encoder_attn_gate.0.weight", "model.decoder.layers.1.encoder_attn_gate.weight"),
        ("decoder.output_projection.weight", "lm_head.weight"),
    ],
)
def test_names(theirs, ours):
    assert rename(theirs) == ours


def test_positions_that_a_checkpoint_lacks_are_zeros(reference):
    config = reference.model.config
    short = torch.ones(5, config.d_model)
    names = ("encoder.embed_positions.weight", "encoder.embed_tokens.weight", "encoder.version")
    weights = state_dict_from_fairseq(dict.fromkeys(names, short), config)
    positions = weights["model.encoder.embed_positions.weight"]
    assert positions.shape == (config.max_position_embeddings + 2, config.d_model)
    assert positions[:5].equal(short) and (positions[5:] == 0).all()
    assert not any("version" in name for name in weights)
