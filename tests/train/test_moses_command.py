"""The paper's preprocessing there and back; sentences and further fields stay where they are."""

import pytest
from json_lines import read_json_lines, write_json_lines

from train.moses import main as moses


TRAIN = [
    {
        "id": 1,
        "en": ["The cat isn't here.", "So left the cat."],
        "de": ["Die Katze ist weg.", "„Sie“ ging, die Katze."],
    }
]
TEST = [{"id": 2, "en": ['The dog & The "cat".'], "de": ["Die „Katze“ (alt) ist weg."]}]


@pytest.fixture
def files(tmp_path):
    for name, documents in (("train", TRAIN), ("test", TEST)):
        write_json_lines(tmp_path / f"{name}.jsonl", documents)
    moses(
        ["tokenize", str(tmp_path / "moses"), "--files", str(tmp_path / "train.jsonl"), str(tmp_path / "test.jsonl")]
    )
    return tmp_path


def test_tokenized_and_truecased(files):
    [train], [test] = read_json_lines(files / "moses" / "train.jsonl"), read_json_lines(files / "moses" / "test.jsonl")
    # "cat" and "the" are known in lower case from the middle of a sentence.
    assert train["en"] == ["the cat isn &apos;t here .", "So left the cat ."] and train["id"] == 1
    assert test["en"] == ["the dog &amp; the &quot; cat &quot; ."] and test["id"] == 2
    assert test["de"][0].endswith("ist weg .")


def test_detokenized(files):
    moses(["detokenize", str(files / "moses" / "test.jsonl"), str(files / "back.jsonl"), "--column", "de"])
    [back] = read_json_lines(files / "back.jsonl")
    assert back["de"][0].lower() == TEST[0]["de"][0].lower() and back["en"][0].startswith("the dog &amp;")


def test_an_input_is_not_overwritten(files):
    before = (files / "train.jsonl").read_text()
    with pytest.raises(ValueError, match=r"train.jsonl would take the place of an input"):
        moses(["tokenize", str(files), "--files", str(files / "train.jsonl")])
    with pytest.raises(ValueError, match="would take the place of an input"):
        moses(["detokenize", str(files / "train.jsonl"), str(files / "train.jsonl"), "--column", "de"])
    assert (files / "train.jsonl").read_text() == before


def test_only_json_lines(files, capsys):
    with pytest.raises(SystemExit):
        moses(["tokenize", str(files / "out"), "--files", "a.txt"])
    assert "a.txt: expected files named *.jsonl" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        moses(["tokenize", str(files / "out"), "--files", "a/train.jsonl", "b/train.jsonl.xz"])
    assert "would overwrite each other" in capsys.readouterr().err
