import copy

import pytest
from huggingface_hub.errors import StrictDataclassError
from tiny import TINY
from transformers import CONFIG_MAPPING, AutoConfig, MBartConfig

from modeling_gtransformer import GTransformerConfig, GTransformerForConditionalGeneration
from modeling_gtransformer.configuration_gtransformer import SENTENCE_LEVEL_MODELS


def test_attention_types_are_filled_from_the_number_of_global_layers():
    config = GTransformerConfig(encoder_layers=3, decoder_layers=4, decoder_global_layers=0, cross_global_layers=1)
    assert config.encoder_attention_types == ["group", "combined", "combined"]
    assert config.decoder_attention_types == ["group"] * 4
    assert config.cross_attention_types == ["group"] * 3 + ["combined"]


@pytest.mark.parametrize("stack", ["encoder", "decoder", "cross", None])
def test_global_attention_of_one_layer_is_enough_to_see_the_document(stack):
    none = {f"{each}_global_layers": 0 for each in ("encoder", "decoder", "cross")}
    config = GTransformerConfig(**(none | ({f"{stack}_global_layers": 1} if stack else {})))
    assert config.has_global_attention == (stack is not None)


def test_round_trip_keeps_lists_and_lets_numbers_be_changed(tmp_path):
    lists = {f"{stack}_attention_types": ["global", "group"] for stack in ("encoder", "decoder", "cross")}
    for given in (lists, {"decoder_global_layers": 1}):
        config = GTransformerConfig(encoder_layers=2, decoder_layers=2, **given)
        config.save_pretrained(tmp_path)
        loaded = AutoConfig.from_pretrained(tmp_path)
        assert isinstance(loaded, GTransformerConfig)
        assert loaded.to_diff_dict() == config.to_diff_dict() == copy.deepcopy(config).to_diff_dict()
        for stack in ("encoder", "decoder", "cross"):
            assert loaded.attention_types(stack) == config.attention_types(stack)
    changed = GTransformerConfig.from_pretrained(tmp_path, decoder_global_layers=0)
    assert changed.decoder_attention_types == ["group", "group"]
    changed = GTransformerConfig.from_pretrained(tmp_path, cross_attention_types=["global"] * 2)
    assert changed.cross_attention_types == ["global", "global"]
    changed.save_pretrained(tmp_path)
    changed = GTransformerConfig.from_pretrained(tmp_path, cross_global_layers=1)
    assert changed.cross_attention_types == ["group", "combined"]


def test_another_size_of_the_vocabulary(tmp_path):
    GTransformerConfig(**TINY).save_pretrained(tmp_path)
    changed = GTransformerConfig.from_pretrained(tmp_path, vocab_size=60)
    assert (changed.vocab_size, changed.decoder_vocab_size) == (60, 60)
    two = {"tie_word_embeddings": False, "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 70}
    GTransformerConfig(**TINY, **two).save_pretrained(tmp_path)
    assert GTransformerConfig.from_pretrained(tmp_path, vocab_size=60).decoder_vocab_size == 70


def test_a_vocabulary_that_is_assigned_late():
    config = GTransformerConfig(**TINY)
    config.vocab_size = 4
    model = GTransformerForConditionalGeneration(config)
    assert len(model.lm_head.weight) == model.final_logits_bias.shape[1] == model.config.decoder_vocab_size == 4


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("decoder_global_layers", 0, "contradicts decoder_global_layers=0"),
        ("encoder_layers", 4, "contradicts encoder_global_layers"),
    ],
)
def test_a_field_that_others_have_followed_is_not_assigned(name, value, message):
    config = GTransformerConfig(**TINY)
    setattr(config, name, value)
    with pytest.raises(ValueError, match=message):
        GTransformerForConditionalGeneration(config)


def test_templates_are_named():
    with pytest.raises(ValueError, match=r"sentence_template must be one of .*marian.*, not 't5'"):
        GTransformerConfig(**TINY, sentence_template="t5")


HEADS_OF_5 = {"encoder_attention_heads": 3, "decoder_attention_heads": 3}


@pytest.mark.parametrize(
    "wrong",
    [
        {"encoder_attention_types": ["group"]},
        {"encoder_attention_types": ["group"] * 11 + ["local"]},
        {"encoder_attention_types": ["group"] * 12, "encoder_global_layers": 2},
        {"cross_global_layers": 13},
        {"d_model": 1000},
        {"position_embedding_type": "rotary"},
        {"encoder_layers": 10**9},
        {"vocab_size": 10**9},
        {"d_model": 15, "position_embedding_type": "sinusoidal"} | HEADS_OF_5,
    ],
    ids=lambda wrong: "-".join(wrong),
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises((ValueError, StrictDataclassError)):
        GTransformerConfig(**wrong)


def test_plain_checkpoints_are_understood():
    mbart = MBartConfig(scale_embedding=True, decoder_start_token_id=250020).to_dict()
    config = GTransformerConfig.from_dict(mbart, sentence_template="paper")
    assert config.model_type == "gtransformer"
    assert (config.decoder_start_token_id, config.normalize_before, config.scale_embedding) == (0, True, True)
    assert not GTransformerConfig.from_dict({"model_type": "bart"}).normalize_before


@pytest.mark.parametrize("family", SENTENCE_LEVEL_MODELS)
def test_what_a_plain_checkpoint_says_is_kept_and_the_rest_is_as_in_its_family(family):
    """The defaults of Transformers for the family, not those of mBART25."""
    theirs = CONFIG_MAPPING[family]()
    config = GTransformerConfig.from_dict({"model_type": family})
    for name in ("scale_embedding", "init_std", "d_model", "activation_function", "attention_dropout", "eos_token_id"):
        assert getattr(config, name) == getattr(theirs, name), name
    said = {"init_std": 0.05, "scale_embedding": not theirs.scale_embedding, "activation_dropout": 0.25}
    config = GTransformerConfig.from_dict({"model_type": family, **said})
    assert {name: getattr(config, name) for name in said} == said


def test_global_positions_follow_the_scope_of_the_others():
    """Where positions start again at every sentence, global attention would not know the order of the sentences."""
    assert GTransformerConfig().global_positions == "none"
    config = GTransformerConfig(position_scope="sentence")
    assert config.global_positions == "sentence"
    assert GTransformerConfig(position_scope="sentence", global_positions="none").global_positions == "none"
    again = GTransformerConfig.from_dict(config.to_dict(), position_scope="document")
    assert (again.position_scope, again.global_positions) == ("document", "none")
    assert GTransformerConfig.from_dict(config.to_dict(), sentence_template="paper").global_positions == "none"


@pytest.mark.parametrize(("template", "token"), [("mbart50", "eos"), ("bart", "eos"), ("marian", "pad")])
def test_the_decoder_starts_as_its_frame_does_unless_told_otherwise(template, token):
    """Without a start the loss could not be computed."""
    config = GTransformerConfig(**TINY, sentence_template=template)
    assert config.decoder_start_token_id == getattr(config, f"{token}_token_id")
    assert GTransformerConfig(**TINY, sentence_template=template, decoder_start_token_id=7).decoder_start_token_id == 7
