"""The scores of a study: seeds in pairs, documents as the unit, and one table of all."""

import json

import pytest

from modeling_gtransformer.evaluation.metrics import compare_systems, score_documents
from modeling_gtransformer.evaluation.translations import SentenceCounts, Translations
from modeling_gtransformer.training.study_plan import TrainingRun
from modeling_gtransformer.training.study_results import describe_training, score_test, table, updates_until


REFERENCES = [["the cat sat on the mat .", "it was warm there today ."], ["a dog came in from the cold ."]]
SEGMENTS = [[1, 1], [1]]
COUNTS = SentenceCounts(3, 3, 0)


def translated(*wrong, aligned=True):
    """Translations in which these words are wrong."""
    documents = [
        [" ".join("x" if word in wrong else word for word in text.split()) for text in document]
        for document in REFERENCES
    ]
    return Translations(documents, SEGMENTS, aligned, COUNTS)


def joined(documents_of_seeds):
    return [[text for part in parts for text in part] for parts in zip(*documents_of_seeds, strict=True)]


def test_seeds_are_paired_and_documents_are_the_unit():
    """Whatever the order of the seeds, and where one of them is missing: over what both systems have."""
    ours = {1: translated(), 2: translated("cat"), 3: translated("dog", "it")}
    theirs = {3: translated("mat"), 2: translated("cat", "dog")}
    scores = score_test(ours, dict.fromkeys(("s-BLEU", "d-BLEU"), theirs), REFERENCES)
    both = [joined([system[seed].documents for seed in (2, 3)]) for system in (ours, theirs)]
    cuts = {"s-BLEU": [[4], [2]], "d-BLEU/segment": [[1] * 4, [1] * 2], "d-BLEU/document": [[2, 2], [1, 1]]}
    for name, segments in cuts.items():
        compared = compare_systems(*both, [document * 2 for document in REFERENCES], segments)
        expected = compared["s-BLEU" if name == "s-BLEU" else "d-BLEU/segment"]
        assert {key: scores[name][key] for key in expected} == expected
        singles = [score_documents(each.documents, REFERENCES, SEGMENTS)[name]["score"] for each in ours.values()]
        assert scores[name]["seeds"] == singles
        average = sum(singles) / 3
        deviation = (sum((single - average) ** 2 for single in singles) / 2) ** 0.5  # of a sample
        assert (scores[name]["mean"], scores[name]["spread"]) == pytest.approx((average, deviation))
    alone = score_test({1: ours[1]}, {"s-BLEU": theirs}, REFERENCES)["s-BLEU"]
    assert alone["spread"] is None and "p_value" not in alone


def test_every_score_has_its_own_baseline():
    same, worse = {1: translated("cat")}, {1: translated("cat", "dog", "it")}
    scores = score_test(same, {"s-BLEU": same, "d-BLEU": worse}, REFERENCES)
    assert scores["s-BLEU"]["difference"] == 0
    assert scores["d-BLEU/segment"]["difference"] > 0 and scores["d-BLEU/document"]["difference"] > 0
    assert "difference" not in score_test(same, {"s-BLEU": same}, REFERENCES)["d-BLEU/document"]


def test_systems_that_decoded_freely_in_other_segments_are_compared_by_documents():
    ours = {1: translated("cat", aligned=False)}
    other = Translations([["the cat sat"], ["a dog"]], [[2], [1]], False, COUNTS)
    scores = score_test(ours, {"d-BLEU": {1: other}}, REFERENCES)
    assert "difference" not in scores["d-BLEU/segment"] and "difference" in scores["d-BLEU/document"]
    assert "s-BLEU" not in scores


def test_the_table_marks_what_is_significant():
    score = {"mean": 12.344, "spread": 0.5, "seeds": [12, 13], "signature": "tok:13a|version:2"}
    curves = [
        {"eval_loss": [[1, 3.0], [2, loss], [3, 2.9]], "eval_entropy_cross_group": [[1, 4], [3, bits]]}
        for loss, bits in ((2.5, 1.0), (2.7, 2.0))
    ]
    row = {"system": "new", "value": None, "seeds": [1, 2], "failures": {}, "curves": curves}
    row["trainings"] = [{"minutes": minutes, "commits": ["abc"]} for minutes in (2.0, 5.0)]
    row["scores"] = {
        "test": {
            "s-BLEU": {**score, "p_value": 0.002},
            "d-BLEU/segment": {**score, "p_value": 0.02},
            "d-BLEU/document": score,
            "sentences": [],
        }
    }
    baseline = {"s-BLEU": "old", "d-BLEU": "documents"}
    lines = table({"rows": [row], "baseline": baseline, "varied": None, "until": None}).splitlines()
    assert lines[2] == r"| new | 2 | 2, 2 | 2.60 | 1.50 group | 12.34 ± 0.50\* | 12.34 ± 0.50 | 12.34 ± 0.50 |"
    test = "(approximate randomization over the documents of these trainings, not over seeds)"
    assert rf"\* differs from old in s-BLEU at p < 0.01 {test}" in lines
    assert rf"no system differs from documents in d-BLEU at p < 0.01 {test}" in lines
    assert "d-BLEU/document, d-BLEU/segment, s-BLEU: tok:13a|version:2" in lines
    assert "trainings took 3.5 minutes (median), since they were started or last continued" in lines
    assert "trained at abc" in lines
    assert not any("not tested" in line for line in lines)


def test_notes_name_the_value_of_what_is_varied():
    counts = [{"source": 9, "written": 8, "missing": 1}]
    row = {"system": "free", "value": 64, "seeds": [1, 2], "failures": {2: "killed"}, "curves": []}
    row |= {"scores": {"test": {"sentences": counts}}, "trainings": []}
    lines = table({"rows": [row], "baseline": {}, "varied": "segment_tokens", "until": None}).splitlines()
    assert "free, 64, test, decoded freely, in its own segments: 9 sentences in, 8 out, 1 missing" in lines
    assert "free, 64, seed 2: killed" in lines


def test_the_table_says_what_was_not_tested():
    score = {"mean": 12.3, "spread": None, "signature": ""}
    scores = {"d-BLEU/segment": score, "d-BLEU/document": {**score, "p_value": 0.5}, "s-BLEU": score, "sentences": []}
    row = {"system": "new", "value": None, "seeds": [1], "failures": {}, "curves": [{"loss": [[1, 2.0]]}]}
    row |= {"scores": {"test": scores}, "trainings": [{"minutes": 2.0, "commits": []}]}
    results = {"rows": [row], "baseline": {"d-BLEU": "documents"}, "varied": None, "until": None}
    lines = table(results).splitlines()
    assert "d-BLEU/segment is not tested against documents, whose segments differ" in lines
    assert "cross-attention" not in lines[0]  # no entropies were measured
    assert lines[2].startswith("| new | 1 | – | – |") and not any("trained at" in line for line in lines)


def test_a_training_takes_the_time_since_it_was_last_continued(tmp_path):
    run = TrainingRun("ours", 1, None, tmp_path, str)
    records = [{"train_runtime": 600.0, "step": 5}, {"loss": 1.0, "step": 6}, {"train_runtime": 90.0, "step": 9}]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": records}))
    starts = [{"commit": "a"}, {"commit": "b"}, {"commit": "a"}]
    (tmp_path / "starts.json").write_text(json.dumps(starts))
    assert describe_training(run) == {"minutes": 1.5, "commits": ["a", "b"]}


def test_updates_until_a_loss_is_reached():
    curves = {"eval_loss": [(1, 0.5), (2, 0.25), (3, 0.125)]}
    for loss, step in ((0.6, 1), (0.25, 2), (0.2, 3), (0.1, None)):
        assert updates_until(curves, {"eval_loss": loss}) == step
