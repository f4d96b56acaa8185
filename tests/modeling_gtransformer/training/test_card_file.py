"""A card that was edited by hand is kept; one that was generated follows what it describes."""

import pytest
from huggingface_hub import ModelCard

from modeling_gtransformer.training.card_file import save_card


def card(text):
    return ModelCard(f"---\nlicense: mit\n---\n\n# {text}\n")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "README.md"


def test_a_generated_card_is_replaced(path):
    save_card(card("one"), path)
    save_card(card("two"), path)
    assert "# two" in path.read_text() and "# one" not in path.read_text()
    assert ModelCard.load(path).data.license == "mit"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))  # as a checkout may have it
    save_card(card("three"), path)
    assert "# three" in path.read_text()


@pytest.mark.parametrize(
    "edit", [lambda text: text.replace("# one", "# ours"), lambda text: text + "ours", lambda _: ""]
)
def test_an_edited_card_is_kept_unless_told_otherwise(path, caplog, edit):
    save_card(card("one"), path)
    path.write_text(edit(path.read_text()))
    edited = path.read_text()
    save_card(card("two"), path)
    assert path.read_text() == edited and "edited by hand and is kept: --overwrite_card replaces it" in caplog.text
    save_card(card("two"), path, overwrite=True)
    assert "# two" in path.read_text()
