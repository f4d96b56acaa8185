"""Segments and batches: cut at sentence borders, within their limits, nothing lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_gtransformer.segmentation import longest_first_batches, segment, split_long_sentence, token_batches


def test_segments_follow_the_paper():
    assert segment([5, 5, 5], 11) == [slice(0, 2), slice(2, 3)]
    assert segment([5, 5, 5], 10) == [slice(0, 1), slice(1, 2), slice(2, 3)]  # strictly less than the maximum
    assert segment([5, 600, 5], 512) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert segment([5, 5, 5], 512, segment_sentences=2) == [slice(0, 2), slice(2, 3)]
    assert segment([], 512) == []


@given(st.text(alphabet="ab ,.;。x", min_size=1, max_size=80), st.integers(1, 20))
def test_parts_are_the_sentence_again(text, size):
    text = text.strip() or "a"
    parts = split_long_sentence(text, lambda part: len(part) <= size)
    assert "".join(gap + part for gap, part in parts) == text
    assert all(len(part) <= size for _, part in parts)
    assert all(not gap.strip() for gap, _ in parts) and parts[0][0] == ""


@pytest.mark.parametrize("whole", ["10:30", "1,250.75", "https://example.com/a", "e.g.this"])
def test_no_cut_inside_a_number_or_address(whole):
    text = " ".join([*["one two"] * 4, whole, *["three four"] * 4])
    assert any(whole in part for _, part in split_long_sentence(text, lambda part: len(part) < 50))


def test_the_best_place_to_cut():
    def halves(text):
        return [part for _, part in split_long_sentence(text, lambda part: len(part) < len(text))]

    assert halves("one two; three four, five six") == ["one two;", "three four, five six"]
    assert halves("one two three, four five six") == ["one two three,", "four five six"]
    assert halves("one two three four five six") in (
        ["one two three", "four five six"],
        ["one two", "three four five six"],
    )
    assert halves("abcdef") == ["abc", "def"]
    # A border far from the middle is worse than a comma near it.
    assert halves("a. one two three, four five six") == ["a. one two three,", "four five six"]
    # Even in the first quarter.
    assert halves("abcdefgh, abcde abcdefghi abcdefgh abcde") == ["abcdefgh, abcde", "abcdefghi abcdefgh abcde"]
    # So is a comma in the last quarter.
    assert halves("seventh seventh,next") == ["seventh", "seventh,next"]
    with pytest.raises(ValueError, match="does not fit"):
        split_long_sentence("abc", lambda part: False)


@pytest.mark.parametrize(
    ("lengths", "max_tokens", "sizes"),
    [
        ([7] * 45, 100, [8, 8, 8, 8, 13]),
        # What a cut leaves behind keeps the limit: two long items go with eight short ones, not with ninety.
        ([10] * 15 + [600], 4096, [8, 7, 1]),
        ([10] * 10 + [1] * 90, 100, [8, 8, 84]),
    ],
)
def test_batches_are_multiples_of_eight(lengths, max_tokens, sizes):
    batches = token_batches(lengths, range(len(lengths)), max_tokens)
    assert [len(batch) for batch in batches] == sizes


def test_an_item_that_fits_into_no_batch_is_refused():
    with pytest.raises(ValueError, match=r"1 segments exceed max_tokens=8, the longest with 9.*or cut shorter"):
        token_batches([8, 9], [0, 1], max_tokens=8)
    assert token_batches([4, 4], [0, 1], max_tokens=8) == [[0, 1]]
    assert token_batches([8], [0], max_tokens=8) == [[0]]
    assert token_batches([], [], max_tokens=8) == []


@given(st.lists(st.integers(1, 60), max_size=60), st.sampled_from([False, True, None]))
def test_no_batch_is_larger_than_the_limit(lengths, descending):
    """In any order, and with what a cut to a multiple of eight leaves behind."""
    order = list(range(len(lengths)))
    if descending is not None:
        order.sort(key=lengths.__getitem__, reverse=descending)
    batches = token_batches(lengths, order, max_tokens=100)
    assert [index for batch in batches for index in batch] == order
    assert all(len(batch) * max(lengths[index] for index in batch) <= 100 for batch in batches)


def test_a_long_item_does_not_make_other_batches_longer():
    """One a thousand times as long as the rest is alone, as is another one above the maximum."""
    batches = longest_first_batches([30, 20_000, *[20] * 98, 101], max_tokens=100)
    assert batches[:2] == [[1], [100]] and sorted(index for batch in batches for index in batch) == [*range(101)]
    assert all(len(batch) <= 5 for batch in batches)
