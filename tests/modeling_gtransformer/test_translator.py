"""Translators by name: settings that travel, columns, languages, what cannot be loaded."""

import copy
import json
import pickle
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import pipeline

from modeling_gtransformer import GTransformerForConditionalGeneration, Translator
from modeling_gtransformer.evaluation.metrics import score_documents
from modeling_gtransformer.files.glossaries import Concept, Glossary
from modeling_gtransformer.runtime.int8_linear import Int8Linear
from modeling_gtransformer.runtime.translator import SMALL_MODEL
from modeling_gtransformer.runtime.usage_error import UsageError


TEXT = "The cat sleeps.  It is old.\n\n- the cat"


def test_what_the_pipeline_gives(checkpoint):
    """Options of the constructor are those of the pipeline, and a call may have others."""
    expected = pipeline("document-translation", model=checkpoint)(TEXT, splitter="sentencex", num_beams=2)
    assert Translator(checkpoint, splitter="sentencex", num_beams=2)(TEXT) == expected
    assert Translator(checkpoint)(TEXT, splitter="sentencex", num_beams=2) == expected
    assert sum(expected["segments"]) == len(expected["sentences"]) == 3


def test_a_pickled_translator_is_its_settings(checkpoint):
    translate = Translator(checkpoint, tgt_lang="de_DE", glossary={"cat": "katze"}, confidence=True)
    before = pickle.dumps(translate)
    expected = translate(TEXT)
    assert "katze" in expected["translation_text"] and expected["sentences"][0]["confidence"] < 0
    assert pickle.dumps(translate) == before and len(before) < 1000
    assert pickle.loads(before)(TEXT) == expected
    other = copy.deepcopy(translate)
    assert "pipeline" in vars(translate) and "pipeline" not in vars(other)


def test_a_glossary_is_for_its_languages(sentence_level_checkpoint):
    """A call in other languages has the terms of those, or none."""
    concept = {"en": [("cat", "")], "de": [("katze", "")], "fr": [("chien", "")]}
    named = Glossary("terms", [Concept("", concept)], names_languages=True)
    for glossary, french in (({"cat": "katze"}, False), (named, True)):
        languages = {"src_lang": "eng_Latn", "tgt_lang": "deu_Latn"}
        translate = Translator(sentence_level_checkpoint("m2m_100-nllb"), **languages, glossary=glossary)
        assert "katze" in translate("the cat", tgt_lang="deu_Latn")["translation_text"]
        for target, term in (("fra_Latn", "chien"), ("ron_Latn", "katze")):
            plain = Translator(translate.model, **languages)("the cat", tgt_lang=target)["translation_text"]
            expected = french and target == "fra_Latn"
            for given in ("the cat", {"source": ["the cat"]}):
                result = translate(given, tgt_lang=target)
                text = result["translation"][0] if isinstance(given, dict) else result["translation_text"]
                assert term in text if expected else text == plain
    with pytest.raises(UsageError, match="The glossary terms cannot be used: no concept has terms in both"):
        assert Translator(translate.model, src_lang="eng_Latn", tgt_lang="ron_Latn", glossary=named).pipeline


def test_the_small_model_translates_where_no_other_is_named():
    dialogue = json.loads((SMALL_MODEL / "dialogue.json").read_text(encoding="utf-8"))
    translate = Translator(num_beams=1)
    result = translate(dialogue["en"])
    translated = [pair["translation_text"] for pair in result["sentences"]]
    # Stored in half precision, in which a CPU is slow.
    assert translate.pipeline.model.dtype == pipeline("document-translation").model.dtype == torch.float32
    assert score_documents([translated], [dialogue["de"]])["s-BLEU"]["score"] > 20
    assert (SMALL_MODEL / "model.safetensors").stat().st_size < 12e6
    # A warning names text of another kind.
    assert not result["warnings"]
    for foreign in (["Parliament ratified the treaty yesterday"], ["Quantum fluctuations decohere rapidly."]):
        [warning] = translate(foreign)["warnings"]
        assert "is doubtful" in warning


def test_half_precision_is_not_used_on_a_cpu_unless_it_is_asked_for(checkpoint, caplog):
    GTransformerForConditionalGeneration.from_pretrained(checkpoint).half().save_pretrained(checkpoint)
    assert Translator(checkpoint).pipeline.model.dtype == torch.float32
    assert "float16" not in caplog.text
    assert pipeline("document-translation", model=checkpoint).model.dtype == torch.float16
    assert "slow on a CPU: pass dtype=torch.float32" in caplog.text


@pytest.mark.parametrize(
    ("source", "lacks", "expected"),
    [
        ("My order is late.", "Auftrag", 4),
        ("My account number is 98765432.", "98765432", 4),
        ("Call +49 30 1234567 please.", "1234567", 3),
        ("My order number is 4432-AB.", "4432-AB", 4),
        ("My account number is 98765432 and 98765432.", "98765432", 5),
    ],
)
def test_what_the_small_model_gets_wrong_is_put_right(source, lacks, expected):
    """And the rest of the sentence stays, also in a stream."""
    translate = Translator(glossary={"order": "Auftrag"} if lacks == "Auftrag" else None)
    text = translate([source])["translation_text"]
    assert text.count(lacks) == source.count("98765432" if "98765432" in source else lacks.replace("Auftrag", "order"))
    assert len(text.split()) >= expected
    assert [pair["translation_text"] for pair in translate.pipeline.stream([source])] == [text]


ROWS = {"id": [1, 2, 3], "en": ["the cat.\n\nit is", ["it is", "", "the cat"], ["the cat sleeps"]]}


def test_columns(checkpoint):
    """Many documents share batches, and a translation is of the kind of its source."""
    translate = Translator(checkpoint, source_column="en", target_column="de", confidence=True)
    columns = translate(ROWS)
    assert [*columns] == ["id", "en", "de", "confidence"] and columns["id"] == [1, 2, 3]
    text, sentences, single = columns["de"]
    assert text == translate(ROWS["en"][0])["translation_text"] and "\n\n" in text
    assert sentences == [pair["translation_text"] for pair in translate(ROWS["en"][1])["sentences"]]
    assert sentences[1] == "" and len(single) == 1
    assert [len(scores) for scores in columns["confidence"]] == [2, 3, 1] and columns["confidence"][1][1] is None


def test_arrays_as_ray_gives_them(checkpoint):
    """Batches of Ray are columns of arrays, of arrays where a column holds lists."""
    translate = Translator(checkpoint, source_column="en")
    texts = np.empty(3, dtype=object)
    texts[:] = [ROWS["en"][0], *map(np.array, ROWS["en"][1:])]
    batch = {"id": np.array([1, 2, 3]), "en": texts, "confidence": 1}
    translated = translate(batch)
    assert translated["translation"] == translate(ROWS)["translation"]
    assert translated["id"] is batch["id"] and translated["confidence"] == 1  # which this translator does not give


def test_datasets(checkpoint):
    """In this process and in two others; what a dataset has cached is known again after the model was loaded."""
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"source": [["the cat"], ["it is", "the cat"]] * 3})
    translate = Translator(checkpoint)
    here = dataset.map(translate, batched=True, batch_size=4)
    assert here["translation"][1] == [
        pair["translation_text"] for pair in translate(["it is", "the cat"])["sentences"]
    ]
    assert dataset.map(translate, batched=True, batch_size=4)._fingerprint == here._fingerprint
    there = dataset.map(translate, batched=True, batch_size=4, num_proc=2)
    assert there["translation"][:] == here["translation"][:]


@pytest.mark.parametrize(
    "columns, words",
    [
        ({"text": ["a"]}, "No column 'source', only text: set source_column"),
        ({"source": ["a"], "translation": ["b"]}, "The column 'translation' already exists"),
        (
            {"source": ["a", None]},
            "row 1 of the column 'source' must hold a text or a list of sentences, not NoneType",
        ),
        ({"source": ["a"], "confidence": [1]}, "The column 'confidence' already exists"),
        ({"source": "the cat"}, r"a single row, not a column: use map\(\.\.\., batched=True\)"),
    ],
)
def test_columns_that_hold_no_documents(checkpoint, columns, words):
    with pytest.raises(ValueError, match=words):
        Translator(checkpoint, confidence="confidence" in columns)(columns)


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_precision(sentence_level_checkpoint, precision):
    translate = Translator(sentence_level_checkpoint("marian"), precision=precision)
    assert translate("the cat sleeps")["translation_text"] == "die katze schläft"
    layer = translate.pipeline.model.model.decoder.layers[0].fc1
    if precision == "int8":
        assert isinstance(layer, Int8Linear)
        with pytest.raises(UsageError, match="int8 needs a CPU, but the device is meta"):
            assert Translator(sentence_level_checkpoint("marian"), precision="int8", device="meta").pipeline
    else:
        assert layer.weight.dtype == torch.bfloat16


@pytest.mark.parametrize(
    "family, languages, words",
    [
        ("m2m_100-nllb", {"tgt_lang": "deu"}, "has no language 'deu'. Similar codes: deu_Latn"),
        ("m2m_100-nllb", {"src_lang": "en", "tgt_lang": "deu_Latn"}, "has no language 'en'. Similar codes: "),
        ("mbart-50", {"tgt_lang": "de"}, "has no language 'de'. Similar codes: de_DE"),
        ("m2m_100", {"tgt_lang": "dee"}, "has no language 'dee'. Similar codes: de"),
        ("marian-many", {"tgt_lang": "xx"}, r"has no language 'xx'\. Its codes: deu, fra, ron\."),
        ("marian", {"tgt_lang": "fr"}, "translates only into 'de', not into 'fr'"),
        ("marian-many", {}, "has no tgt_lang"),
    ],
)
def test_unknown_languages_are_refused_with_those_near_them(sentence_level_checkpoint, family, languages, words):
    with pytest.raises(UsageError, match=words) as error:
        assert Translator(sentence_level_checkpoint(family), **languages).pipeline
    assert "</s>" not in str(error.value) and "Its codes: xx" not in str(error.value)


def cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


def write_config(folder, content):
    (folder / "config.json").write_text(content if isinstance(content, str) else json.dumps(content))


def without_tokenizer(folder):
    for file in folder.iterdir():
        if file.name not in ("config.json", "generation_config.json", "model.safetensors"):
            file.unlink()


def drop_tensor(folder, name):
    weights = load_file(folder / "model.safetensors")
    del weights[name]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


DAMAGES = {
    "missing tensor": (
        lambda folder: drop_tensor(folder, "model.decoder.layers.1.fc1.weight"),
        "lacks tensors: model.decoder.layers.1.fc1.weight",
    ),
    "empty": (lambda folder: [file.unlink() for file in folder.iterdir()], "has no config.json"),
    "truncated": (lambda folder: cut(folder / "model.safetensors", 3000), "cannot be loaded: SafetensorError: "),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "no file named model.safetensors"),
    "broken config": (lambda folder: write_config(folder, "{"), "config.json describes no model"),
    "config of a list": (lambda folder: write_config(folder, []), "config.json describes no model"),
    "config of nothing": (lambda folder: write_config(folder, {}), "config.json describes no model"),
    "decoder only": (lambda folder: write_config(folder, {"model_type": "gpt2"}), "unsupported type 'gpt2'"),
    "no tokenizer": (without_tokenizer, "its tokenizer has no vocabulary"),
    "broken tokenizer": (lambda folder: cut(folder / "tokenizer.json", 100), "cannot be loaded: "),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_refused_in_a_sentence(sentence_level_checkpoint, tmp_path, damage):
    folder = shutil.copytree(sentence_level_checkpoint("mbart-50"), tmp_path / "model")
    break_it, words = DAMAGES[damage]
    break_it(folder)
    with pytest.raises(UsageError, match=words) as error:
        assert Translator(str(folder), tgt_lang="de_DE").pipeline
    assert str(folder) in str(error.value) and "\n" not in str(error.value)


def test_what_is_no_translator_is_refused_when_it_is_needed(sentence_level_checkpoint, tmp_path):
    for model, words in {
        f"{sentence_level_checkpoint('mbart-50')}/model.safetensors": "is a file: pass the folder of a checkpoint",
        str(tmp_path / "none"): "is a folder that does not exist",
        "nobody/none": "not a folder, so looked up on the Hub",
        sentence_level_checkpoint("bart"): "is pretrained, but cannot translate yet",
    }.items():
        translate = Translator(model)
        with pytest.raises(UsageError, match=words):
            assert translate.pipeline
    with pytest.raises(ValueError, match="precision must be one of float32, bfloat16, float16, int8, not 'int4'"):
        Translator("any", precision="int4")
