"""The command that writes the card of a model."""

import shutil

import pytest
from huggingface_hub import ModelCard

from hub_cards.model_card import main as model_card


def test_card_of_a_folder(trained_model, tmp_path, capsys):
    folder = shutil.copytree(trained_model, tmp_path / "model")
    model_card([str(folder), "--license", "mit", "--dataset", "user/corpus", "--repository", "user/name"])
    assert capsys.readouterr().out == f"{folder / 'README.md'}\n"
    card = ModelCard.load(folder / "README.md")
    assert (card.data.license, card.data.datasets) == ("mit", ["user/corpus"])
    assert 'pipeline(model="user/name"' in card.text


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="mbart52 is not a folder"):
        model_card([str(tmp_path / "mbart52")])
