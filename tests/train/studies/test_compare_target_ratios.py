"""Ways to cut documents before their translations are known, on sentences whose lengths are known."""

import json

import pytest
from json_lines import write_json_lines

from train.studies.compare_target_ratios import RatioOptions, compare_target_ratios, count


@pytest.mark.parametrize(
    "ratio, expected",
    [
        (1.0, (1, 2)),  # 4 + 4, 4: the first two have 14 tokens in the reference
        (1.5, (0, 3)),
        (None, (0, 3)),
    ],
)
def test_segments_that_are_too_long(ratio, expected):
    source, target = ([[1] * n for n in lengths] for lengths in ((2, 2, 2), (5, 5, 2)))
    assert count(source, target, ratio, template=2, segment_tokens=9) == expected


def test_the_table(checkpoint, tmp_path, capsys):
    train = write_json_lines(tmp_path / "train.jsonl", [{"source": ["the cat"], "target": ["the cat is old"]}])
    short = {"source": ["the cat"] * 4, "target": ["the cat"] * 4}
    test = write_json_lines(tmp_path / "test.jsonl", [short, {**short, "target": ["the cat is old"] * 4}])
    report = tmp_path / "ratios.json"
    options = RatioOptions([test], [train], checkpoint, quantiles=[0.5], segment_tokens=9, json=report)
    rows = compare_target_ratios(options)
    assert [(row["name"], row["ratio"]) for row in rows] == [
        ("the source", 1.0), ("the mean", 2.0), ("50% of the text", 2.0), ("the references", None)
    ]  # fmt: skip
    # Two sentences of four tokens make a segment, or one where six are expected of it.
    counts = [row["files"]["test.jsonl"] for row in rows]
    assert counts[0] == {"too_long": 2, "segments": 4} and counts[1] == counts[2] == {"too_long": 0, "segments": 8}
    assert counts[3] == {"too_long": 0, "segments": 6}
    assert json.loads(report.read_text())["rows"] == rows
    assert "the mean, 2.000: test.jsonl 0 of 8" in capsys.readouterr().out
