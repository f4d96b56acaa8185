"""Ways to cut documents before their translations are known, on sentences whose lengths are known."""

import json

from json_lines import write_json_lines

from train.studies.compare_target_ratios import RatioOptions, compare_target_ratios


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
