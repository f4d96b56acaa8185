"""Token batches: within the limit, complete, and the same for every number of processes."""

import random

import pytest

from modeling_gtransformer.training.sampler import TokenBatchSampler


RNG = random.Random(5)
LENGTHS = [(RNG.randint(5, 90), RNG.randint(5, 90)) for _ in range(203)]


def sampler(**kwargs):
    return TokenBatchSampler(LENGTHS, max_tokens=300, seed=3, **kwargs)


@pytest.mark.parametrize("world_size, accumulation", [(1, 1), (3, 1), (4, 5)])
def test_every_instance_once_and_no_batch_over_the_limit(world_size, accumulation):
    ranks = [sampler(rank=r, world_size=world_size, accumulation=accumulation) for r in range(world_size)]
    batches = [batch for rank in ranks for batch in rank]
    assert sorted(i for batch in batches for i in batch) == list(range(len(LENGTHS)))
    assert all(len(batch) * max(max(LENGTHS[i]) for i in batch) <= 300 for batch in batches)
    assert len({len(list(rank)) for rank in ranks}) == 1
    assert all(len(rank) == len(list(rank)) and len(rank) % accumulation == 0 for rank in ranks)


def test_too_long_an_instance_and_too_few_instances_are_errors():
    with pytest.raises(ValueError, match=r"1 segments exceed max_tokens=8, the longest with 9"):
        TokenBatchSampler([(3, 9), (2, 2)], max_tokens=8, seed=0)
    with pytest.raises(ValueError, match="2 segments are too few for the 4 batches"):
        TokenBatchSampler([(3, 3), (2, 2)], max_tokens=8, seed=0, world_size=2, accumulation=2)
