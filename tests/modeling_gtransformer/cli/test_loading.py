"""Translators by name: every family and language, and in words what cannot be loaded."""

import json
import shutil
from pathlib import Path

import pytest
from plain_translators import FAMILIES, PAIRS

from modeling_gtransformer.cli.errors import UsageError
from modeling_gtransformer.cli.loading import load_translator


SENTENCES = [*PAIRS][:3]
TRANSLATORS = [family for family in FAMILIES if family.name != "bart"]


@pytest.mark.parametrize("family", TRANSLATORS, ids=lambda family: family.name)
def test_plain_translators(plain_checkpoint, family):
    translate = load_translator(plain_checkpoint(family.name), tgt_lang=family.languages[1])
    translated = translate(SENTENCES)["sentences"]
    assert [pair["translation_text"] for pair in translated] == [PAIRS[sentence] for sentence in SENTENCES]


@pytest.mark.parametrize(
    "family, languages, words",
    [
        ("m2m_100-nllb", {"tgt_lang": "deu"}, "does not know the language 'deu'; near it are deu_Latn"),
        ("m2m_100-nllb", {"src_lang": "en", "tgt_lang": "deu_Latn"}, "does not know the language 'en'; near it are "),
        ("mbart-50", {"tgt_lang": "de"}, "does not know the language 'de'; near it are de_DE"),
        ("m2m_100", {"tgt_lang": "dee"}, "does not know the language 'dee'; near it are de"),
        ("marian-many", {"tgt_lang": "xx"}, r"does not know the language 'xx'; it knows deu, fra, ron\."),
        ("marian", {"tgt_lang": "fr"}, "translates into 'de' only, not into 'fr'"),
        ("marian-many", {}, "has no tgt_lang"),
    ],
)
def test_unknown_languages_are_refused_with_those_near_them(plain_checkpoint, family, languages, words):
    with pytest.raises(UsageError, match=words) as error:
        load_translator(plain_checkpoint(family), **languages)
    assert "</s>" not in str(error.value) and "it knows xx" not in str(error.value)


def cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


def write_config(folder, content):
    (folder / "config.json").write_text(content if isinstance(content, str) else json.dumps(content))


def without_tokenizer(folder):
    for file in folder.iterdir():
        if file.name not in ("config.json", "generation_config.json", "model.safetensors"):
            file.unlink()


DAMAGES = {
    "empty": (lambda folder: [file.unlink() for file in folder.iterdir()], "has no config.json"),
    "truncated": (lambda folder: cut(folder / "model.safetensors", 3000), "cannot be loaded: SafetensorError: "),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "no file named model.safetensors"),
    "broken config": (lambda folder: write_config(folder, "{"), "config.json describes no model"),
    "config of a list": (lambda folder: write_config(folder, []), "config.json describes no model"),
    "config of nothing": (lambda folder: write_config(folder, {}), "config.json describes no model"),
    "decoder only": (lambda folder: write_config(folder, {"model_type": "gpt2"}), "'gpt2', which cannot translate"),
    "no tokenizer": (without_tokenizer, "its tokenizer has no words"),
    "broken tokenizer": (lambda folder: cut(folder / "tokenizer.json", 100), "cannot be loaded: "),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_refused_in_a_sentence(plain_checkpoint, tmp_path, damage):
    folder = shutil.copytree(plain_checkpoint("mbart-50"), tmp_path / "model")
    break_it, words = DAMAGES[damage]
    break_it(folder)
    with pytest.raises(UsageError, match=words) as error:
        load_translator(str(folder), tgt_lang="de_DE")
    assert str(folder) in str(error.value) and "\n" not in str(error.value)


def test_what_is_no_folder_of_a_checkpoint(plain_checkpoint, tmp_path):
    file = Path(plain_checkpoint("mbart-50")) / "model.safetensors"
    with pytest.raises(UsageError, match=r"model\.safetensors is a file: give the folder of a checkpoint"):
        load_translator(str(file))
    with pytest.raises(UsageError, match="there is no such folder, so from the Hub"):
        load_translator(str(tmp_path / "none"))


def test_a_pretrained_model_is_no_translator(plain_checkpoint):
    with pytest.raises(UsageError, match="is pretrained, but no translator"):
        load_translator(plain_checkpoint("bart"))
