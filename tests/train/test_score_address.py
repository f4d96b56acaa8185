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
    scores = score_address([file, *reference, "--json", str(output)])["scores"]
    assert scores["reference"]["mixed"]["share"] == 0 and scores[file]["mixed"]["share"] == 1
    assert scores[file]["as_reference"]["share"] == pytest.approx(2 / 3)
    assert json.loads(output.read_text())["scores"] == scores
    head, people, ours = capsys.readouterr().out.splitlines()
    assert "documents that mix them" in head and people.endswith("reference")
    assert "100.0% [100.0%, 100.0%] of 1" in ours and "66.7% [50.0%, 100.0%] of 3" in ours


def test_against_a_baseline_of_several_seeds(reference, tmp_path, capsys):
    """Which are taken together, as the seeds of the other side."""
    good = write_json_lines(tmp_path / "good.jsonl", [{"translation": document} for document in REFERENCES])
    rows = [{"translation": ["Was willst du?", "Wo sind Sie?"]}, {"translation": ["Bist du da?"]}]
    mixing = write_json_lines(tmp_path / "mixing.jsonl", rows)
    again = write_json_lines(tmp_path / "again.jsonl", rows)
    results = score_address([good, *reference, "--baseline", mixing, again])
    assert set(results["scores"]) == {"reference", good, mixing, again}
    assert results["differences"]["mixed"]["difference"] == -1
    assert results["differences"]["as_reference"]["difference"] == pytest.approx(1 / 3)
    printed = capsys.readouterr().out
    assert "documents that mix them, against the baseline: -100.0%" in printed


def test_other_sentences_than_those_of_the_references(reference, tmp_path):
    file = write_json_lines(tmp_path / "short.jsonl", [{"translation": ["Wo?"]}, {"translation": ["Wann?"]}])
    with pytest.raises(ValueError, match=r"short.jsonl does not have one sentence for every sentence"):
        score_address([file, *reference])
