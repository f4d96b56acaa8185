"""An adapter is trained alone, resumed, small, and loads on top of its base; quantised bases work, too."""

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM, BitsAndBytesConfig

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.group_attention import GTransformerGate
from modeling_gtransformer.hub import with_code
from modeling_gtransformer.training.recipe import parse_recipe, read_recipe
from train.train import main
from train.translate import main as translate


LORA = read_recipe(Path(__file__).parents[2] / "train" / "recipes" / "mbart25_lora.yaml")["lora"]


@pytest.fixture(scope="module")
def adapter(experiment, tiny_config):
    """The folders of a base model without global attention, and of an adapter that was interrupted once."""
    base = experiment("base", config=tiny_config | {f"{s}_global_layers": 0 for s in ("encoder", "decoder", "cross")})
    main([base])
    base_folder = yaml.safe_load(Path(base).read_text())["output_dir"]
    settings = {"model_name_or_path": base_folder, "lora": LORA, "config": tiny_config}
    settings |= {"save_strategy": "steps", "save_steps": 4, "load_best_model_at_end": True}
    settings |= {"metric_for_best_model": "loss"}
    straight, stopped = experiment("lora_straight", **settings), experiment("lora", **settings)
    main([straight])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformers.Trainer._maybe_log_save_evaluate", stop_after(5))
        with pytest.raises(KeyboardInterrupt):
            main([stopped])
    main([stopped])
    folders = [Path(yaml.safe_load(Path(recipe).read_text())["output_dir"]) for recipe in (straight, stopped)]
    return base_folder, *folders


def stop_after(step):
    from transformers import Trainer

    original = Trainer._maybe_log_save_evaluate

    def maybe_stop(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if self.state.global_step == step:
            raise KeyboardInterrupt

    return maybe_stop


def test_only_the_adapter_is_trained_and_saved(adapter):
    _, straight, resumed = adapter
    assert not (resumed / "model.safetensors").exists()
    weights, expected = (load_file(folder / "adapter_model.safetensors") for folder in (resumed, straight))
    assert weights.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(weights[name], value)
    # LoRA in the group attention, global attention and gates as a whole, nothing else.
    assert {"lora_A" in name or "_global." in name or "_gate." in name or "lora_B" in name for name in weights} == {
        True
    }
    assert any("self_attn.q_proj.lora_A" in name for name in weights)
    assert any("encoder_attn_global.q_proj.weight" in name for name in weights)
    assert not any("_global" in name and "lora" in name for name in weights)


def test_the_adapter_on_top_of_its_base(adapter, experiment, tmp_path):
    base, _, folder = adapter
    config = json.loads((Path(base) / "config.json").read_text())
    layers = {f"{stack}_global_layers": 1 for stack in ("encoder", "decoder", "cross")}
    types = {f"{stack}_attention_types": None for stack in ("encoder", "decoder", "cross")}
    assert config["encoder_global_layers"] == 0
    by_hand = GTransformerForConditionalGeneration.from_pretrained(base, **layers, **types)
    by_hand.load_adapter(str(folder))
    processor = GTransformerProcessor.from_pretrained(folder)
    recipe = yaml.safe_load(Path(experiment("any")).read_text())
    processor.configure(by_hand)
    document = json.loads(Path(recipe["validation_files"][0]).read_text().splitlines()[0])["source"]
    [expected] = translate_documents(by_hand, processor, [document])
    plain = GTransformerForConditionalGeneration.from_pretrained(base)
    processor.configure(plain)
    inputs = processor(document, targets=document, return_tensors="pt")
    assert (plain(**inputs).logits - by_hand(**inputs).logits).abs().max() > 1e-2
    # The folder of the adapter is enough.
    output = tmp_path / "translated.jsonl"
    translate([str(folder), recipe["validation_files"][0], str(output)])
    translation = json.loads(output.read_text().splitlines()[0])["translation"]
    assert translation == expected.sentences
    through_auto = AutoModelForSeq2SeqLM.from_pretrained(folder)
    assert through_auto(**inputs).loss == by_hand(**inputs).loss


def test_an_adapter_needs_a_base(experiment):
    with pytest.raises(ValueError, match="lora needs model_name_or_path"):
        parse_recipe([experiment("baseless", lora=LORA)])


@pytest.mark.parametrize("bits", [8, 4])
def test_quantised_linear_layers(tiny_model, documents, tmp_path, bits):
    bitsandbytes = pytest.importorskip("bitsandbytes")
    model = tiny_model(d_model=64, encoder_ffn_dim=64, decoder_ffn_dim=64)
    model.save_pretrained(tmp_path)
    settings = {8: {"load_in_8bit": True}, 4: {"load_in_4bit": True, "bnb_4bit_compute_dtype": torch.float32}}
    quantised = GTransformerForConditionalGeneration.from_pretrained(
        tmp_path, quantization_config=BitsAndBytesConfig(**settings[bits]), device_map="cpu"
    )
    layer = quantised.model.decoder.layers[1]
    assert isinstance(layer.self_attn_global.q_proj, (bitsandbytes.nn.Linear8bitLt, bitsandbytes.nn.Linear4bit))
    assert type(layer.self_attn_gate) is GTransformerGate
    labels = documents["input_ids"].masked_fill(documents["input_ids"] == 1, -100)
    losses = [m(**documents, labels=labels).loss.item() for m in (model, quantised)]
    assert losses[1] == pytest.approx(losses[0], rel=0.2) and losses[1] != losses[0]


PUSH = """
import json
import shutil
from pathlib import Path
from modeling_gtransformer import GTransformerForConditionalGeneration
model = GTransformerForConditionalGeneration.from_pretrained({adapter!r})
try:
    model.push_to_hub("someone/adapter")
except ValueError as error:
    assert "is a folder of this machine" in str(error)
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


def test_an_adapter_on_the_hub(adapter, hub, run, tmp_path):
    """Its base must be there, too; what is global comes along."""
    base, _, folder = adapter
    copy = shutil.copytree(folder, tmp_path / "adapter")
    run(PUSH.format(base=base, adapter=str(copy)), PYTHONPATH=str(Path(__file__).parents[2]))
    files = hub.repositories["someone/adapter"].files
    assert {"adapter_model.safetensors", "adapter_config.json", "config.json", "modeling_gtransformer.py"} <= set(
        files
    )
    assert "model.safetensors" not in files
    # With its code in it the folder still is an adapter's.
    model = GTransformerForConditionalGeneration.from_pretrained(folder)
    with with_code(model):
        model.save_pretrained(tmp_path / "again")
    again = GTransformerForConditionalGeneration.from_pretrained(tmp_path / "again", dropout=0.44)
    assert again.config.encoder_attention_types == model.config.encoder_attention_types
    assert again.config.dropout == 0.44
