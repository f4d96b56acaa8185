"""Intervals over documents, whose sentences are not independent of each other."""

import numpy as np
from transformers.utils import logging

from .metrics import FEW, TRIALS


logger = logging.get_logger(__name__)


def ratio_interval(counts: np.ndarray, rng: np.random.Generator) -> tuple[float, list[float]]:
    """
    The ratio of two sums over documents, and its 95 % interval by bootstrap.

    Args:
        counts: numerator and denominator of every document, `(documents, 2)`; denominators above 0.
    """
    if len(counts) < FEW:
        logger.warning_once(f"An interval over {len(counts)} documents says little: score {FEW} or more.")
    drawn = rng.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=TRIALS)
    return float(ratio(counts.sum(axis=0))), np.percentile(ratio(drawn @ counts), [2.5, 97.5]).tolist()


def ratio(counts: np.ndarray) -> np.ndarray:
    """The ratio of a numerator and its denominator, `(..., 2)`; NaN where both are 0."""
    with np.errstate(invalid="ignore"):
        return counts[..., 0] / counts[..., 1]
