"""Bootstrap intervals over documents, because sentences of a document are not independent."""

import numpy as np
from transformers.utils import logging

from .metrics import FEW, TRIALS


logger = logging.get_logger(__name__)


def ratio_interval(counts: np.ndarray, rng: np.random.Generator) -> tuple[float, list[float]]:
    """
    Computes the ratio of two sums over documents, and its 95 % bootstrap interval.

    Args:
        counts: numerator and denominator of every document, `(documents, 2)`; denominators are above 0.
    """
    if len(counts) < FEW:
        logger.warning_once(f"An interval over {len(counts)} documents says little: score {FEW} or more.")
    drawn = rng.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=TRIALS)
    return float(ratio(counts.sum(axis=0))), np.percentile(ratio(drawn @ counts), [2.5, 97.5]).tolist()


def ratio(counts: np.ndarray) -> np.ndarray:
    """Divides numerators by denominators, `(..., 2)`; the result is NaN where both are 0."""
    with np.errstate(invalid="ignore"):
        return counts[..., 0] / counts[..., 1]
