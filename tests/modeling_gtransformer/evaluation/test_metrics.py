"""Scores are sacrebleu's on the strings they name; the unit of the significance test is the document."""

import itertools

import numpy as np
import pytest
import sacrebleu

from modeling_gtransformer.evaluation import metrics
from modeling_gtransformer.evaluation.metrics import (
    compare_statistics,
    compare_systems,
    ratio,
    ratio_interval,
    score_documents,
)


REFERENCES = [
    ["the cat sat on the mat .", "it was very warm there .", "then it slept ."],
    ["a dog came in from the cold .", "the cat ran up the tree ."],
]
HYPOTHESES = [
    ["the cat sat on a mat .", "it was warm there .", "then it slept ."],
    ["a dog came in from the rain .", "the cat ran up a tree ."],
]
SEGMENTS = [[2, 1], [2]]


def test_scores_are_those_of_sacrebleu():
    scores = score_documents(HYPOTHESES, REFERENCES, SEGMENTS)
    cuts = {
        "s-BLEU": lambda document: document,
        "d-BLEU/segment": lambda document: [" ".join(document[:2]), *document[2:]],
        "d-BLEU/document": lambda document: [" ".join(document)],
        "chrF": lambda document: document,
    }
    assert list(scores) == list(cuts)
    for name, cut in cuts.items():
        hypotheses, references = (list(itertools.chain(*map(cut, d))) for d in (HYPOTHESES, REFERENCES))
        expected = (sacrebleu.corpus_chrf if name == "chrF" else sacrebleu.corpus_bleu)(hypotheses, [references])
        assert (scores[name]["score"], scores[name]["units"]) == (expected.score, len(references))
        assert ("tok:13a" in scores[name]["signature"]) == (name != "chrF") and "version:" in scores[name]["signature"]


FREE = [["the cat sat on a mat , it was warm .", "then it slept ."], ["a dog . the cat ran up a tree ."]]


def test_documents_that_were_decoded_freely_have_only_d_bleu():
    scores = score_documents(FREE, REFERENCES, SEGMENTS, aligned=False)
    segments = [" ".join(REFERENCES[0][:2]), REFERENCES[0][2], " ".join(REFERENCES[1])]
    whole = [" ".join(document) for document in FREE], [" ".join(document) for document in REFERENCES]
    assert {name: score["score"] for name, score in scores.items()} == {
        "d-BLEU/segment": sacrebleu.corpus_bleu([text for document in FREE for text in document], [segments]).score,
        "d-BLEU/document": sacrebleu.corpus_bleu(whole[0], [whole[1]]).score,
    }
    with pytest.raises(ValueError, match="Document 1 has 1 segments, its reference 2"):
        score_documents([FREE[0][:1], FREE[1]], REFERENCES, SEGMENTS, aligned=False)


def test_a_free_system_is_compared_with_an_aligned_one():
    compared = compare_systems(HYPOTHESES, FREE, REFERENCES, SEGMENTS, trials=20, baseline_aligned=False)
    assert set(compared) == {"d-BLEU/segment", "d-BLEU/document"}
    ours = score_documents(HYPOTHESES, REFERENCES, SEGMENTS)
    theirs = score_documents(FREE, REFERENCES, SEGMENTS, aligned=False)
    for name, result in compared.items():
        assert result["difference"] == pytest.approx(ours[name]["score"] - theirs[name]["score"])
    other_way = compare_systems(FREE, HYPOTHESES, REFERENCES, SEGMENTS, trials=20, aligned=False)
    assert other_way["d-BLEU/segment"]["difference"] == -compared["d-BLEU/segment"]["difference"]


def test_documents_are_drawn_whole():
    # One document has all the errors: sentence by sentence the difference would be certain, by document it is chance.
    references = [REFERENCES[0] * 10, *[REFERENCES[1]] * 3]
    baseline = [[s.replace("it", "he") for s in references[0]], *references[1:]]
    assert all(
        result["p_value"] > 0.9 for result in compare_systems(references, baseline, references, trials=200).values()
    )


@pytest.mark.parametrize(
    "hypotheses, segments, message",
    [
        (HYPOTHESES[:1], None, "1 documents to score, but 2 reference"),
        ([HYPOTHESES[0][:2], HYPOTHESES[1]], None, "Document 1 has 2 sentences, its reference 3"),
        (HYPOTHESES, [[2, 1], [1]], "Document 2 has 2 sentences, its reference 2, its segments 1"),
    ],
)
def test_documents_that_are_not_aligned_are_refused(hypotheses, segments, message):
    with pytest.raises(ValueError, match=message):
        score_documents(hypotheses, REFERENCES, segments)


def better_on(better, same):
    """Hypotheses that are right, a baseline that is wrong in so many documents, and the references."""
    right, wrong = ["the cat sat on the mat .", "it was warm ."], ["a dog ran up the tree .", "it was warm ."]
    return [right] * (better + same), [wrong] * better + [right] * same, [right] * (better + same)


def test_a_clear_difference_is_significant_and_a_chance_one_is_not():
    right, wrong, references = better_on(better=40, same=0)
    for result in compare_systems(right, wrong, references, trials=200).values():
        # The observed difference counts among the trials, so no p-value is 0.
        assert result["p_value"] == pytest.approx(1 / 201) and result["interval"][0] > 0
    # Each is better on half of the documents.
    one, other = [*right[:20], *wrong[20:]], [*wrong[:20], *right[20:]]
    for result in compare_systems(one, other, references, trials=200).values():
        assert result["p_value"] > 0.5 and result["interval"][0] < 0 < result["interval"][1]


def test_intervals_leave_out_two_and_a_half_percent_on_each_side():
    """No document with a difference is drawn in (1/3)**3 = 3.7 % of the trials, in (2/5)**5 = 1.0 % of the others."""
    for (better, same), holds_zero in {(2, 1): True, (3, 2): False}.items():
        hypotheses, baseline, references = better_on(better, same)
        for result in compare_systems(hypotheses, baseline, references).values():
            assert (result["interval"][0] == 0) == holds_zero and result["interval"][1] > 0
        for result in compare_systems(baseline, hypotheses, references).values():
            assert (result["interval"][1] == 0) == holds_zero and result["interval"][0] < 0


def test_draws_in_which_no_document_counts_are_left_out():
    counts = np.array([[1.0, 2], [0, 0], [0, 0]])
    assert compare_statistics([counts], [counts / 2], ratio)["interval"] == [0, 0]


def test_a_comparison_of_few_documents_is_announced(monkeypatch):
    warned = list[str]()
    monkeypatch.setattr("modeling_gtransformer.evaluation.metrics.logger.warning", warned.append)
    metrics._warn_of_few.cache_clear()
    for documents in (10, 9):
        compare_systems(*[[["a cat sat on it"]] * documents] * 3, trials=2)
    assert warned == ["An interval or test over 9 documents is unreliable: score 10 or more."]


def test_a_swap_that_changes_nothing_but_the_rounding_counts():
    """Only one document differs, so every swap gives the difference that there is, or its opposite."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        ours = rng.random((12, 1))
        theirs = ours.copy()
        theirs[3] += 0.1
        assert compare_statistics([ours], [theirs], lambda sums: sums[:, 0] / 3, trials=50)["p_value"] == 1


def test_the_ratio_of_sums_lies_in_its_interval():
    counts = np.array([[1.0, 2], [3, 4], [0, 10], [2, 2]])
    found, few = ratio_interval(counts, np.random.default_rng(0))
    assert found == pytest.approx(6 / 18)  # not the mean of the documents' ratios
    assert 0 < few[0] < found < few[1] <= 1
    many = ratio_interval(np.tile(counts, (25, 1)), np.random.default_rng(0))[1]
    assert many[1] - many[0] < (few[1] - few[0]) / 3
