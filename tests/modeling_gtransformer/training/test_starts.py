"""What the parts of a training ran on."""

from modeling_gtransformer.evaluation.provenance import ROOT, commit_of
from modeling_gtransformer.training.starts import keep_start, read_starts


def test_parts_are_kept_in_order(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert read_starts(first) == []
    keep_start(first, None)
    keep_start(first, None)  # begun anew in the place of the first
    assert [start["commit"] for start in read_starts(first)] == [commit_of(ROOT)]
    assert set(read_starts(first)[0]) == {"commit", "hardware", "versions"}
    keep_start(first, str(first / "checkpoint-5"))
    assert len(read_starts(first)) == 2
    keep_start(second, str(first / "checkpoint-5"))
    assert len(read_starts(second)) == 3
