"""Transformers' own common tests of models, run on ours by `make upstream-tests`.

They come from a checkout of Transformers or from its source distribution, which lacks those of generation.
"""

import copy
import sys
import unittest
from importlib.util import find_spec
from types import ModuleType

import torch
from tiny import END_OF_DOCUMENT, EOS, PAD, TINY
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, MODEL_MAPPING_NAMES

from modeling_gtransformer import GTransformerConfig, GTransformerForConditionalGeneration, GTransformerModel


def leave_out(module: str, mixin: str):
    """Put an empty class in the place of tests."""
    sys.modules[f"tests.{module}"] = ModuleType(module)
    setattr(sys.modules[f"tests.{module}"], mixin, type(mixin, (), {}))


leave_out("exporters.test_export", "ExportTesterMixin")
if find_spec("tests.generation") is None:
    leave_out("generation.test_utils", "GenerationTesterMixin")
# By these lists the tests know which class takes labels.
MODEL_MAPPING_NAMES["gtransformer"] = GTransformerModel.__name__
MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES["gtransformer"] = GTransformerForConditionalGeneration.__name__

from tests.test_modeling_common import GenerationTesterMixin, ModelTesterMixin  # noqa: E402


class TinyTester:
    """What the common tests ask of a model."""

    is_training = True
    batch_size, seq_length = 2, 12
    hidden_size, num_hidden_layers, num_attention_heads = TINY["d_model"], TINY["encoder_layers"], 4

    def __init__(self, parent):
        self.parent = parent

    def get_config(self):
        return GTransformerConfig(**TINY, dropout=0.0)

    def prepare_config_and_inputs_for_common(self):
        words = torch.randint(4, END_OF_DOCUMENT - 1, (self.batch_size, self.seq_length))
        words[:, [0, 6]], words[:, [5, 11]] = 0, 2  # two sentences
        inputs = {"input_ids": words, "attention_mask": words.ne(PAD).long(), "decoder_input_ids": words}
        return self.get_config(), inputs | {"decoder_attention_mask": inputs["attention_mask"]}


class TestCommon(ModelTesterMixin, GenerationTesterMixin, unittest.TestCase):
    all_model_classes = (GTransformerModel, GTransformerForConditionalGeneration)
    is_encoder_decoder = True
    max_new_tokens = 6  # the shortest document of two sentences

    def setUp(self):
        self.model_tester = TinyTester(self)
        self.tags = {}

    def _prepare_for_class(self, inputs_dict, model_class, *args, **kwargs):
        return super()._prepare_for_class(inputs_dict, model_class, *args, **kwargs) | self.tags

    def test_inputs_embeds_matches_input_ids(self):
        tags = torch.tensor([[1] * 6 + [2] * 6] * TinyTester.batch_size)  # embeddings do not show them
        self.tags = {"group_tags": tags, "decoder_group_tags": tags}
        super().test_inputs_embeds_matches_input_ids()

    def prepare_config_and_inputs_for_generate(self, *args, **kwargs):
        config, inputs = super().prepare_config_and_inputs_for_generate(*args, **kwargs)
        config.eos_token_id = EOS  # without it, as upstream has it, there are no sentences
        return config, inputs

    def _check_past_key_values_for_generate(self, batch_size, past_key_values, seq_length, config):
        config = copy.copy(config)
        config.num_key_value_heads, config.head_dim = 8, 4  # combined attention keeps keys of both kinds
        super()._check_past_key_values_for_generate(batch_size, past_key_values, seq_length, config)
