"""An adapter brings the configuration of its global attention, and loads on top of its base by itself."""

import sys

import pytest
import torch
from peft import LoraConfig
from repository import ROOT
from tiny import GROUP_BELOW_COMBINED, ONLY_GROUP, STACKS
from transformers import AutoModelForSeq2SeqLM

from modeling_gtransformer import GTransformerConfig, GTransformerForConditionalGeneration
from modeling_gtransformer.hub import with_code
from modeling_gtransformer.training.recipe import read_recipe


LORA = read_recipe("mbart25_lora")["lora"]
pytestmark = pytest.mark.usefixtures("adapters")
COMBINED_ON_TOP = {stack: ["group", "combined"] for stack in STACKS}


@pytest.fixture
def base(save_checkpoint):
    """The folder of a model without global attention."""
    return save_checkpoint(**ONLY_GROUP)


@pytest.fixture
def adapter(base, tmp_path):
    """The folder of an adapter for it, with global attention in its upper layer and weights that matter."""
    model = GTransformerForConditionalGeneration.from_pretrained(base, **GROUP_BELOW_COMBINED)
    model.add_adapter(LoraConfig(**LORA))
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(tmp_path / "adapter")
    return tmp_path / "adapter"


def attention_types(config):
    return {stack: config.attention_types(stack) for stack in STACKS}


def test_an_adapter_is_loaded_on_top_of_its_base(base, adapter, documents):
    model = GTransformerForConditionalGeneration.from_pretrained(adapter).eval()
    assert attention_types(model.config) == COMBINED_ON_TOP
    assert (model.adapter_base, model.adapter_folder) == (base, str(adapter))

    by_hand = GTransformerForConditionalGeneration.from_pretrained(base, **GROUP_BELOW_COMBINED)
    by_hand.load_adapter(str(adapter))
    plain = GTransformerForConditionalGeneration.from_pretrained(base)
    assert attention_types(plain.config) == {stack: ["group", "group"] for stack in STACKS}
    inputs = {**documents, "decoder_input_ids": documents["input_ids"]}
    auto = AutoModelForSeq2SeqLM.from_pretrained(adapter)
    expected = by_hand.eval()(**inputs).logits
    for loaded in (model, auto):
        torch.testing.assert_close(loaded(**inputs).logits, expected)
    assert (plain.eval()(**inputs).logits - expected).abs().max() > 1e-2


def test_an_adapter_of_all_linear_layers(base, documents):
    """The gate is none: it has two inputs."""
    model = GTransformerForConditionalGeneration.from_pretrained(base, **GROUP_BELOW_COMBINED)
    model.add_adapter(LoraConfig(target_modules="all-linear"))
    model(**documents, labels=documents["input_ids"]).loss.backward()
    trained = [name for name, parameter in model.named_parameters() if parameter.grad is not None]
    assert any("fc1" in name for name in trained) and not any("gate" in name for name in trained)
    assert model.eval().generate(**documents).shape[0] == 2


def test_which_configuration_counts(adapter):
    """The adapter's; fields that are given change it, and a whole one that is given takes its place."""
    changed = GTransformerForConditionalGeneration.from_pretrained(adapter, dropout=0.44)
    assert changed.config.dropout == 0.44 and attention_types(changed.config) == COMBINED_ON_TOP
    config = GTransformerConfig.from_pretrained(adapter)
    config.activation_dropout = 0.33
    given, report = GTransformerForConditionalGeneration.from_pretrained(
        adapter, config=config, output_loading_info=True
    )
    assert given.config.activation_dropout == 0.33 and given.adapter_folder == str(adapter)
    # The base has none of the global attention, which the adapter brings.
    assert all("_global." in name or "_gate." in name for name in report["missing_keys"])


def test_saved_again_it_still_is_an_adapter(adapter, tmp_path):
    model = GTransformerForConditionalGeneration.from_pretrained(adapter)
    with with_code(model):
        model.save_pretrained(tmp_path / "again")
    assert not (tmp_path / "again" / "model.safetensors").exists()
    again = GTransformerForConditionalGeneration.from_pretrained(tmp_path / "again")
    assert attention_types(again.config) == COMBINED_ON_TOP
    own = [name for name in model.state_dict() if "lora" in name or "modules_to_save" in name]
    assert own and all(model.state_dict()[name].equal(again.state_dict()[name]) for name in own)


def test_without_peft(base, adapter, monkeypatch):
    model = GTransformerForConditionalGeneration.from_pretrained(base)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ImportError, match="pip install peft"):
        model.set_adapter_weights(adapter / "adapter_model.safetensors")


PUSH = """
import json
from pathlib import Path
from modeling_gtransformer import GTransformerForConditionalGeneration
model = GTransformerForConditionalGeneration.from_pretrained({adapter!r})
try:
    model.push_to_hub("someone/adapter")
except ValueError as error:
    assert "is a local folder" in str(error)
else:
    raise AssertionError
GTransformerForConditionalGeneration.from_pretrained({base!r}).push_to_hub("someone/base")
config = Path({adapter!r}) / "adapter_config.json"
config.write_text(json.dumps(json.loads(config.read_text()) | {{"base_model_name_or_path": "someone/base"}}))
model = GTransformerForConditionalGeneration.from_pretrained({adapter!r})
model.push_to_hub("someone/adapter")
loaded = GTransformerForConditionalGeneration.from_pretrained("someone/adapter")
assert loaded.config.encoder_attention_types[-1] == "combined"
for name, value in model.state_dict().items():
    # What stood in the place of the adapter's global attention is random, and unused.
    assert "original_module" in name or loaded.state_dict()[name].equal(value), name
"""


def test_an_adapter_on_the_hub(base, adapter, hub, run):
    """Its base must be there, too; what is global comes along."""
    run(PUSH.format(base=base, adapter=str(adapter)), PYTHONPATH=str(ROOT))
    files = hub.repositories["someone/adapter"].files
    assert {"adapter_model.safetensors", "adapter_config.json", "config.json", "modeling_gtransformer.py"} <= set(
        files
    )
    assert "model.safetensors" not in files
