"""The command that counts forms of address: its table, its file, and translations that it refuses."""

import json

import pytest
from json_lines import write_json_lines

from train.score_address import main as score_address


REFERENCES = [["Was wollen Sie?", "Wo sind Sie?"], ["Bist du da?"]]


@pytest.fixture
def reference(tmp_path):
    return ["--reference", write_json_lines(tmp_path / "test.jsonl", [{"de": document} for document in REFERENCES]),
            "--reference_column", "de"]  # fmt: skip


def test_a_row_per_system(reference, tmp_path, capsys):
    rows = [{"translation": ["Was willst du?", "Wo sind Sie?"]}, {"translation": ["Bist du da?"]}]
    file, output = write_json_lines(tmp_path / "ours.jsonl", rows), tmp_path / "address.json"
    scores = score_address([file, *reference, "--json", str(output)])
    assert scores["reference"]["mixed"]["share"] == 0 and scores[file]["mixed"]["share"] == 1
    assert scores[file]["as_reference"]["share"] == pytest.approx(2 / 3)
    assert json.loads(output.read_text())["scores"] == scores
    head, people, ours = capsys.readouterr().out.splitlines()
    assert "documents that mix them" in head and people.endswith("reference")
    assert "100.0% [100.0%, 100.0%] of 1" in ours and "66.7% [50.0%, 100.0%] of 3" in ours


def test_other_sentences_than_those_of_the_references(reference, tmp_path):
    file = write_json_lines(tmp_path / "short.jsonl", [{"translation": ["Wo?"]}, {"translation": ["Wann?"]}])
    with pytest.raises(ValueError, match=r"short.jsonl does not have a sentence for every sentence"):
        score_address([file, *reference])
