"""BLEU and chrF of sentence-aligned documents, and significance of the difference between two systems.

Scores come from sacrebleu, with its signatures. Papers define "document" differently, so the name of a score contains
its unit: d-BLEU is computed per whole document and, for translations made in segments, per segment (as in the paper,
with segments of fewer than 512 tokens).

A freely decoding system has another number of sentences, so its only score is d-BLEU.
"""

import itertools
import logging
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF


logger = logging.getLogger(__name__)

Documents = Sequence[Sequence[str]]
# Numbers of reference sentences in the segments of every document, if known.
Segments = Sequence[Sequence[int]] | None
# Sufficient statistics of each score, `(documents, statistics)`.
Statistics = dict[str, np.ndarray]
# Comparisons of fewer documents cause a warning.
FEW = 10
# Number of trials of every test over documents, and their seed.
TRIALS, SEED = 2000, 12345


# Unit that each score compares as one string.
UNITS = {
    "s-BLEU": "sentences",
    "d-BLEU/segment": "segments of documents",
    "d-BLEU/document": "whole documents",
    "chrF": "sentences",
}


def score_documents(
    hypotheses: Documents,
    references: Documents,
    segments: Segments = None,
    tokenize: str = "13a",
    aligned: bool = True,
) -> dict[str, dict[str, Any]]:
    """
    Scores translated documents.

    Args:
        hypotheses: documents as lists of sentences, one for each reference sentence. Documents that are not `aligned`
            are lists of segments, one string each.
        references: documents as lists of sentences.
        segments: numbers of reference sentences in the segments of every document; required for d-BLEU per segment.
        tokenize: sacrebleu's tokenizer for BLEU.
        aligned: whether hypotheses have the sentences of the references; if not, the only score is d-BLEU.

    Returns:
        By name (s-BLEU, d-BLEU/segment, d-BLEU/document, chrF): `score` in points of 100, `unit`, number of `units`
        and sacrebleu's `signature`.

    Raises:
        ValueError: numbers of sentences or segments differ from the reference.
    """
    _check(hypotheses, references, segments, aligned)
    expected = _strings(references, segments)
    scores = {}
    for name, documents in _strings(hypotheses, segments, aligned).items():
        scorer = _scorer(name, tokenize)
        hypothesis, reference = (list(itertools.chain(*strings)) for strings in (documents, expected[name]))
        scores[name] = {
            "score": scorer.corpus_score(hypothesis, [reference]).score,
            "unit": UNITS[name],
            "units": len(reference),
            "signature": scorer.get_signature().format(),
        }
    return scores


def compare_systems(
    hypotheses: Documents,
    baseline: Documents,
    references: Documents,
    segments: Segments = None,
    tokenize: str = "13a",
    trials: int = TRIALS,
    seed: int = SEED,
    aligned: bool = True,
    baseline_aligned: bool = True,
) -> dict[str, dict[str, Any]]:
    """
    Tests whether two systems differ. Sentences of a document are not independent, so tests sample and swap documents.

    Args:
        trials, seed: number of trials of each of the two tests, and their seed.
        aligned, baseline_aligned: whether each system has the sentences of the references, as in `score_documents`.
            Unless both do, only d-BLEU is compared.

    Returns:
        By name of the score: the result of `compare_statistics`.
    """
    ours = document_statistics(hypotheses, references, segments, tokenize, aligned)
    theirs = document_statistics(baseline, references, segments, tokenize, baseline_aligned)
    return compare_scores([ours], [theirs], tokenize, trials, seed)


def compare_scores(
    ours: Sequence[Statistics], theirs: Sequence[Statistics], tokenize: str, *draws: int
) -> dict[str, dict[str, Any]]:
    """Compares two systems, each with statistics per seed, by the scores that all of them have; `draws` are trials and
    seed of the tests."""
    results = {}
    for name in (name for name in ours[0] if all(name in each for each in (*ours, *theirs))):
        score = _scorer(name, tokenize)._compute_score_from_stats

        def scores(sums: np.ndarray, score=score) -> np.ndarray:
            return np.array([score(each).score for each in sums.tolist()])

        one, other = ([each[name] for each in side] for side in (ours, theirs))
        results[name] = compare_statistics(one, other, scores, *draws)
    return results


def document_statistics(
    hypotheses: Documents, references: Documents, segments: Segments, tokenize: str, aligned: bool
) -> Statistics:
    """Sums the sufficient statistics of every score of [`score_documents`] over each document."""
    _check(hypotheses, references, segments, aligned)
    expected, statistics = _strings(references, segments), {}
    for name, documents in _strings(hypotheses, segments, aligned).items():
        extract = _scorer(name, tokenize)._extract_corpus_statistics
        pairs = zip(documents, expected[name], strict=True)
        statistics[name] = np.array([np.sum(extract(ours, [theirs]), axis=0) for ours, theirs in pairs])
    return statistics


def compare_statistics(
    ours: Sequence[np.ndarray],
    theirs: Sequence[np.ndarray],
    scores: Callable[[np.ndarray], np.ndarray],
    trials: int = TRIALS,
    seed: int = SEED,
) -> dict[str, Any]:
    """
    Tests whether two systems differ in a score computed from sums over documents. Translations of a document by all
    seeds stay together, because the tests sample documents, not seeds.

    Args:
        ours, theirs: by seed, sufficient statistics of the score for every document, `(documents, statistics)`.
        scores: computes scores from sums of statistics, `(sums, statistics)` to `(sums,)`; NaN for undefined scores.

    Returns:
        `difference` (ours minus theirs), `p_value` (two-sided approximate randomization, which swaps the outputs for
        random documents) and `interval` (95 % of the difference by paired bootstrap over documents).
    """
    # Systems with different numbers of seeds have equal weights.
    seeds = math.lcm(len(ours), len(theirs))
    one, other = (np.sum(side, axis=0) * (seeds // len(side)) for side in (ours, theirs))
    number = len(one)
    _warn_of_few(number)
    rng = np.random.default_rng(seed)
    swapped = rng.integers(2, size=(trials, number))
    drawn = rng.multinomial(number, np.full(number, 1 / number), size=trials)
    [observed] = scores(one.sum(0, keepdims=True)) - scores(other.sum(0, keepdims=True))
    shuffled = scores((1 - swapped) @ one + swapped @ other) - scores(swapped @ one + (1 - swapped) @ other)
    # Trials may equal the observed difference up to rounding. The observed difference counts as a trial.
    extreme = np.sum(np.abs(shuffled) >= abs(observed) - 1e-9)
    return {
        "difference": float(observed),
        "p_value": float((extreme + 1) / (trials + 1)),
        "interval": np.nanpercentile(scores(drawn @ one) - scores(drawn @ other), [2.5, 97.5]).tolist(),
    }


@cache
def _warn_of_few(documents: int) -> None:
    if documents < FEW:
        logger.warning(f"An interval or test over {documents} documents is unreliable: score {FEW} or more.")


def _scorer(name: str, tokenize: str) -> Any:
    return CHRF() if name == "chrF" else BLEU(tokenize=tokenize)


def _strings(documents: Documents, segments: Segments, aligned: bool = True) -> dict[str, list[list[str]]]:
    """Returns the strings that each score compares, by document."""
    sentences = [list(document) for document in documents]
    strings = {"s-BLEU": sentences} if aligned else {}
    if segments is not None:
        pairs = zip(documents, segments, strict=True)
        strings["d-BLEU/segment"] = [_joined(*pair) for pair in pairs] if aligned else sentences
    strings["d-BLEU/document"] = [[" ".join(document)] for document in documents]
    return strings | ({"chrF": sentences} if aligned else {})


def _joined(sentences: Sequence[str], sizes: Sequence[int]) -> list[str]:
    rest = iter(sentences)
    return [" ".join(itertools.islice(rest, size)) for size in sizes]


def _check(hypotheses: Documents, references: Documents, segments: Segments, aligned: bool) -> None:
    """
    Raises `ValueError` if numbers of documents, sentences or segments differ from the reference. By default, a
    document is one segment.
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} documents to score, but {len(references)} reference documents.")
    sizes = [[len(reference)] for reference in references] if segments is None else segments
    for number, (hypothesis, reference, size) in enumerate(zip(hypotheses, references, sizes, strict=True), 1):
        if not aligned and len(hypothesis) != len(size):
            raise ValueError(f"Document {number} has {len(hypothesis)} segments, its reference {len(size)}.")
        if len(reference) != sum(size) or (aligned and len(hypothesis) != len(reference)):
            raise ValueError(
                f"Document {number} has {len(hypothesis)} sentences, its reference {len(reference)}"
                + (f", its segments {sum(size)}." if segments is not None else ".")
            )


def ratio_interval(counts: np.ndarray, rng: np.random.Generator) -> tuple[float, list[float]]:
    """
    Computes the ratio of two sums over documents, and its 95 % bootstrap interval over documents.

    Args:
        counts: numerator and positive denominator of every document, `(documents, 2)`.
    """
    _warn_of_few(len(counts))
    drawn = rng.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=TRIALS)
    return float(ratio(counts.sum(axis=0))), np.percentile(ratio(drawn @ counts), [2.5, 97.5]).tolist()


def ratio(counts: np.ndarray) -> np.ndarray:
    """Divides numerators by denominators, `(..., 2)`; 0 / 0 is NaN."""
    with np.errstate(invalid="ignore"):
        return counts[..., 0] / counts[..., 1]
