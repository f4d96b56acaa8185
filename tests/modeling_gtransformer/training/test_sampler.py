"""Token batches: within the limit, complete, reproducible, and the same for every number of processes."""

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


def test_epochs_shuffle_the_order_reproducibly_and_count_items_on():
    epochs = []
    for epoch in (0, 1, 1):
        batches = sampler()
        batches.set_epoch(epoch)
        epochs.append(list(batches))
    assert epochs[1] == epochs[2]
    first, second = ([[i % len(LENGTHS) for i in batch] for batch in epoch] for epoch in epochs[:2])
    assert first != second and sorted(map(sorted, first)) == sorted(map(sorted, second))
    assert all(i // len(LENGTHS) == 1 for batch in epochs[1] for i in batch)


def test_batches_are_the_same_in_every_version():
    """A seed means the same batches for ever: those of the first version, in which lengths were lists."""
    rng = random.Random(5)
    lengths = [(rng.randint(5, 90), rng.randint(5, 90)) for _ in range(24)]
    batches = TokenBatchSampler(lengths, max_tokens=300, seed=3, accumulation=4)
    packed = [[17, 10, 16], [14, 13, 5], [19, 23, 12, 21], [18, 7, 20], [1, 6, 11], [3, 2, 8], [9, 0, 15], [22, 4]]
    assert [batch.tolist() for batch in batches.batches] == packed
    batches.set_epoch(1)
    assert list(batches) == [[24 + index for index in packed[position]] for position in (2, 1, 4, 0, 5, 7, 6, 3)]


def test_segments_of_equal_length_are_packed_in_random_order():
    """Drawn by the seed; neighbours in the corpus would otherwise stand in the same batch in every training."""
    samplers = [TokenBatchSampler([(10, 10)] * 64, max_tokens=160, seed=seed) for seed in (1, 1, 2)]
    first, again, other = ([batch.tolist() for batch in each.batches] for each in samplers)
    assert first == again != other
    assert [index for batch in first for index in batch] != list(range(64))


def test_batches_are_of_similar_length():
    padding = sum(len(b) * max(max(LENGTHS[i]) for i in b) for b in sampler()) / sum(max(p) for p in LENGTHS)
    assert padding < 1.4


def test_too_long_an_instance_and_too_few_instances_are_errors():
    with pytest.raises(ValueError, match=r"1 segments do not fit .* max_tokens=8, the longest has 9"):
        TokenBatchSampler([(3, 9), (2, 2)], max_tokens=8, seed=0)
    with pytest.raises(ValueError, match="2 segments are too few for the 4 batches"):
        TokenBatchSampler([(3, 3), (2, 2)], max_tokens=8, seed=0, world_size=2, accumulation=2)
