"""Intervals of a ratio over documents."""

import numpy as np
import pytest

from modeling_gtransformer.evaluation.bootstrap import ratio_interval


def test_the_ratio_of_sums_lies_in_its_interval():
    counts = np.array([[1.0, 2], [3, 4], [0, 10], [2, 2]])
    ratio, (low, high) = ratio_interval(counts, np.random.default_rng(0))
    assert ratio == pytest.approx(6 / 18)  # not the mean of the documents' ratios
    assert 0 < low < ratio < high <= 1


def test_few_documents_are_named(monkeypatch):
    warned = list[str]()
    monkeypatch.setattr("modeling_gtransformer.evaluation.bootstrap.logger.warning_once", warned.append)
    for documents in (10, 9):
        ratio_interval(np.tile([[1.0, 2]], (documents, 1)), np.random.default_rng(0))
    assert warned == ["An interval over 9 documents says little: score 10 or more."]


def test_more_documents_narrow_the_interval():
    counts = np.array([[1.0, 2], [3, 4], [0, 10], [2, 2]])
    few, many = (ratio_interval(np.tile(counts, (n, 1)), np.random.default_rng(0))[1] for n in (1, 25))
    assert many[1] - many[0] < (few[1] - few[0]) / 3
