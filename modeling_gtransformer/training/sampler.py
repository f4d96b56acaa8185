"""Batches by number of tokens, independent of the number of processes."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import Sampler

from ..runtime.usage_error import UsageError
from ..segmentation import token_batches


class TokenBatchSampler(Sampler[list[int]]):
    """
    Batches for one of several data-parallel processes.

    Batches are packed once, from segments shuffled by the seed and then sorted by (source length, target length).
    Their order changes in each epoch. A global step takes the next `world_size * accumulation` batches, so two
    processes train on the global batches of one process with twice the gradient accumulation. The largest batches are
    halved to make their number fit, so an epoch has every segment exactly once.

    The index of segment `i` in epoch `e` is `e * len(lengths) + i`, so that noise can be a pure function of the index.

    Args:
        lengths: numbers of source and target tokens of each segment, `(N, 2)`.
        max_tokens: upper bound on the tokens in a batch of one process, padding included.
        rank, world_size: number of this process, from 0, and number of processes.
        accumulation: number of batches per process and update.

    Raises:
        UsageError: a segment is longer than `max_tokens`, or there are fewer segments than batches in a global step.
    """

    def __init__(
        self,
        lengths: ArrayLike,
        max_tokens: int,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
        accumulation: int = 1,
    ):
        pairs = np.asarray(lengths)
        shuffled = np.random.default_rng(seed).permutation(len(pairs))
        source, target = pairs[shuffled].T
        order = shuffled[np.lexsort((target, source))]  # a stable sort keeps equal lengths shuffled
        try:
            batches = token_batches(pairs.max(axis=1).tolist(), order, max_tokens)
        except ValueError as error:
            raise UsageError(str(error)) from error
        self.batches = _round_up(batches, world_size * accumulation)
        self.segments, self.seed, self.rank, self.world_size, self.epoch = len(pairs), seed, rank, world_size, 0

    def set_epoch(self, epoch: int) -> None:
        """Selects the epoch, from 0, of the next iteration."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.batches) // self.world_size

    def __iter__(self) -> Iterator[list[int]]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(len(self.batches))
        for position in order[self.rank :: self.world_size]:
            yield (self.epoch * self.segments + self.batches[position]).tolist()


def _round_up(batches: list[NDArray], multiple: int) -> list[NDArray]:
    """Halves the largest batches until their number is divisible by `multiple`."""
    batches = list(batches)
    while len(batches) % multiple:
        largest = max(range(len(batches)), key=lambda position: len(batches[position]))
        batch = batches[largest]
        if len(batch) == 1:
            raise UsageError(
                f"{len(batches)} segments are too few for the {multiple} batches of a global step: lower "
                "tokens_per_update or gradient_accumulation_steps."
            )
        half = len(batch) // 2
        batches[largest : largest + 1] = [batch[:half], batch[half:]]
    return batches
