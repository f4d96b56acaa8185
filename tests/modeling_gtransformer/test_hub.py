"""Published, found, and used without this package."""

import json
import sys
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from repository import ROOT
from transformers import AutoConfig, AutoProcessor, pipeline
from transformers.dynamic_module_utils import get_imports

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.cli.main import main as command


@pytest.fixture
def checkpoint(save_checkpoint):
    folder = save_checkpoint()
    Path(folder, "README.md").write_text("---\nlicense: mit\ntags: [gtransformer]\n---\n# The card\n")
    return folder


PUBLISH = """
from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
model = GTransformerForConditionalGeneration.from_pretrained({folder!r})
before = dict(vars(model.config))
model.push_to_hub("someone/model", commit_message="A model", tags=["mine"])
GTransformerProcessor.from_pretrained({folder!r}).push_to_hub("someone/model")
assert vars(model.config) == before
model.save_pretrained("plain")
"""
USE = """
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoProcessor, pipeline
import json
import sys
own = {"trust_remote_code": True}
model = AutoModelForSeq2SeqLM.from_pretrained("someone/model", **own)
processor = AutoProcessor.from_pretrained("someone/model", **own)
outputs = model.generate(**processor(["the cat", "it is"], return_tensors="pt"))
[[*sentences]] = processor.batch_decode_sentences(outputs)
assert type(AutoModel.from_pretrained("someone/model", **own)).__name__ == "GTransformerModel"
translate = pipeline(model="someone/model", **own)
translated = translate("the cat\\n\\n- it is\\n")
try:
    translate("# the *cat*\\n", format="markdown")
    raise AssertionError
except ImportError as error:
    assert "pip install 'gtransformer-hf[files]'" in str(error)
"""


def test_round_trip(checkpoint, hub, run, run_without_package, tmp_path):
    run(PUBLISH.format(folder=checkpoint), PYTHONPATH=str(ROOT))
    repository = hub.repositories["someone/model"]
    assert repository.commits == ["A model", "Upload processor"]
    files = set(repository.files)
    assert {"model.safetensors", "config.json", "generation_config.json", "processor_config.json"} <= files
    assert {"tokenizer.json", "modeling_gtransformer.py", "pipeline_gtransformer.py", "terminology.py"} <= files
    card = ModelCard(repository.files["README.md"].decode())
    assert "# The card" in card.text and {"mine", "document-translation"} <= set(card.data.tags)
    # A checkpoint that stays at home has no code.
    assert not list((tmp_path / "plain").glob("*.py"))
    assert "auto_map" not in json.loads((tmp_path / "plain" / "config.json").read_text())

    translate = pipeline("document-translation", model=checkpoint)
    expected = [pair["translation_text"] for pair in translate(["the cat", "it is"])["sentences"]]
    for offline in ("0", "1"):
        out = run_without_package(USE + "print(json.dumps([sentences, translated]))", HF_HUB_OFFLINE=offline)
        sentences, translated = json.loads(out.splitlines()[-1])
        assert sentences == expected == [pair["translation_text"] for pair in translated["sentences"]]
        assert translated["translation_text"] == f"{expected[0]}\n\n- {expected[1]}\n"

    # What was loaded from the Hub can be published again, as a whole.
    run_without_package(USE + "translate.push_to_hub('someone/again')")
    again = hub.repositories["someone/again"]
    assert set(again.files) == files and len(again.commits) == 1
    assert (
        json.loads(again.files["config.json"])["auto_map"] == json.loads(repository.files["config.json"])["auto_map"]
    )


def test_a_folder_with_code(checkpoint, run_without_package, tmp_path):
    pipeline("document-translation", model=checkpoint).save_pretrained(tmp_path / "with_code")
    config = json.loads((tmp_path / "with_code" / "config.json").read_text())
    assert set(config["auto_map"]) == {"AutoConfig", "AutoModel", "AutoModelForSeq2SeqLM"}
    out = run_without_package(USE.replace("someone/model", str(tmp_path / "with_code")) + "print(len(sentences))")
    assert out.splitlines()[-1] == "2"
    (tmp_path / "a.txt").write_text("the cat")
    arguments = ["--model", str(tmp_path / "with_code"), "--output", str(tmp_path / "out")]
    assert command(["translate", str(tmp_path / "a.txt"), *arguments]) == 0
    translated = pipeline("document-translation", model=checkpoint)("the cat")["translation_text"]
    assert (tmp_path / "out" / "a.txt").read_text() == translated
    # With the package its own classes are used, without trust in what lies in the folder.
    model = GTransformerForConditionalGeneration.from_pretrained(tmp_path / "with_code")
    assert type(AutoConfig.from_pretrained(tmp_path / "with_code", trust_remote_code=False)) is type(model.config)
    processor = AutoProcessor.from_pretrained(tmp_path / "with_code", trust_remote_code=False)
    assert type(processor) is GTransformerProcessor


def test_a_card_of_another_model_stays_at_home(checkpoint, hub, run):
    (Path(checkpoint) / "README.md").write_text("---\ntags: [mbart]\n---\n# Somebody's card\n")
    code = "import logging; logging.basicConfig(format='%(message)s')\n" + PUBLISH.format(folder=checkpoint)
    out = run(f"import sys; sys.stderr = sys.stdout\n{code}", PYTHONPATH=str(ROOT))
    assert "README.md, which has no tag gtransformer: add the tag" in out
    assert "Somebody" not in hub.repositories["someone/model"].files["README.md"].decode()


def test_the_code_needs_transformers_only():
    """Transformers refuses code of the Hub whose imports, but for those in a `try`, are not all installed."""
    files = (ROOT / "modeling_gtransformer").glob("*.py")
    imported = {name for file in files for name in get_imports(file)} - set(sys.stdlib_module_names)
    assert imported == {"huggingface_hub", "safetensors", "torch", "transformers"}
