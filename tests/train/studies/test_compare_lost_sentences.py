"""The command: the same paragraphs through both systems, counted in one way."""

import json

import pytest
from json_lines import read_json_lines, write_json_lines

from modeling_gtransformer import GTransformerForConditionalGeneration
from train.studies import compare_lost_sentences
from train.studies.compare_lost_sentences import ComparisonOptions


SENTENCES = ["The cat sleeps.", "It is old.", "The old cat is it.", "The cat is old."]
RECORDS = [{"source": SENTENCES, "target": SENTENCES}, {"source": SENTENCES[:2], "target": SENTENCES[:2]}]


@pytest.fixture
def compare(checkpoint, tmp_path, capsys):
    """Runs the command, and gives the counts, the table and the paragraphs that it writes."""
    corpus, output = write_json_lines(tmp_path / "test.jsonl", RECORDS), tmp_path / "new"

    def compare(**options):
        options = ComparisonOptions(corpus, output, checkpoint, checkpoint, num_beams=1, **options)
        counts = compare_lost_sentences.compare_lost_sentences(options)
        return counts, capsys.readouterr().out, read_json_lines(output / "lost.jsonl")

    return compare


def test_both_translate_the_same_paragraphs(compare, tmp_path):
    counts, table, rows = compare(paragraph_sentences=3)
    assert list(counts) == ["reference", f"{tmp_path}/new/plain.jsonl", f"{tmp_path}/new/ours.jsonl"]
    assert counts["reference"] == {"in": 6, "out": 6, "missing": 0}
    assert "| reference | 6 | 6 | 0 (0.0 %) |" in table
    assert json.loads((tmp_path / "new" / "counts.json").read_text())["counts"] == counts
    assert [len(row["reference"]["references"]) for row in rows] == [3, 1, 2]
    for name, count in counts.items():
        assert count["in"] == 6 and count["missing"] == sum(len(row[name]["missing"]) for row in rows)
        assert count["out"] == sum(len(row[name]["output"]) for row in rows)


def test_the_plain_translator_reads_a_paragraph_as_one_input_and_ours_its_sentences(compare, monkeypatch):
    read = []
    generate = GTransformerForConditionalGeneration.generate

    def recorded(model, input_ids, **arguments):
        read.append([(row == model.config.eos_token_id).sum().item() for row in input_ids])
        return generate(model, input_ids, **arguments)

    monkeypatch.setattr(GTransformerForConditionalGeneration, "generate", recorded)
    compare(paragraph_sentences=4)
    # Sentences that the model reads at once: two paragraphs as two inputs, then two documents.
    assert [sorted(each) for each in read] == [[1, 1], [2, 4]]


def test_a_paragraph_beyond_the_positions_is_refused(compare, monkeypatch):
    monkeypatch.setattr(compare_lost_sentences, "paragraphs", lambda sentences, size: [[" ".join(sentences * 20)]])
    with pytest.raises(ValueError, match=r"2 of 2 paragraphs do not fit the 128 positions of .*--paragraph_sentences"):
        compare()
