"""Confidence intervals over documents, whose sentences are not independent of each other."""

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
    drawn = rng.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=TRIALS) @ counts
    numerator, denominator = counts.sum(axis=0)
    return float(numerator / denominator), np.percentile(drawn[:, 0] / drawn[:, 1], [2.5, 97.5]).tolist()
