"""Intervals and significance over documents, whose sentences are not independent of each other."""

from typing import Any

import numpy as np
from transformers.utils import logging

from .metrics import FEW


logger = logging.get_logger(__name__)

TRIALS, SEED = 2000, 12345


def ratio_interval(counts: np.ndarray, rng: np.random.Generator) -> tuple[float, list[float]]:
    """
    The ratio of two sums over documents, and its 95 % interval by bootstrap.

    Args:
        counts: numerator and denominator of every document, `(documents, 2)`; denominators above 0.
    """
    if len(counts) < FEW:
        logger.warning_once(f"An interval over {len(counts)} documents says little: score {FEW} or more.")
    drawn = rng.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=TRIALS)
    return float(_ratio(counts.sum(axis=0))), np.percentile(_ratio(drawn @ counts), [2.5, 97.5]).tolist()


def ratio_difference(ours: np.ndarray, theirs: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    """
    Whether the ratios of two systems differ that were measured on the same documents.

    Args:
        ours, theirs: numerator and denominator of every document, `(documents, 2)`.

    Returns:
        `difference` of the ratios, its 95 % `interval` by paired bootstrap, and `p_value` of approximate randomization
        (two-sided), in which the systems are swapped document by document.
    """
    if len(ours) < FEW:
        logger.warning_once(f"A difference over {len(ours)} documents says little: score {FEW} or more.")
    drawn = rng.multinomial(len(ours), np.full(len(ours), 1 / len(ours)), size=TRIALS)
    observed = float(_ratio(ours.sum(axis=0)) - _ratio(theirs.sum(axis=0)))
    swapped = rng.integers(2, size=(TRIALS, len(ours)))
    one, other = (1 - swapped) @ ours + swapped @ theirs, swapped @ ours + (1 - swapped) @ theirs
    # A trial may equal the observed difference up to rounding, and the observed one counts as a trial.
    extreme = np.sum(np.abs(_ratio(one) - _ratio(other)) >= abs(observed) - 1e-9)
    return {
        "difference": observed,
        # A few documents may be drawn of which none counts.
        "interval": np.nanpercentile(_ratio(drawn @ ours) - _ratio(drawn @ theirs), [2.5, 97.5]).tolist(),
        "p_value": float((extreme + 1) / (TRIALS + 1)),
    }


def _ratio(counts: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return counts[..., 0] / counts[..., 1]
