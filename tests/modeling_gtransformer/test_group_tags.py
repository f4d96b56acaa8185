import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import BOS, EOS

from modeling_gtransformer.group_tags import group_tags, sentence_lengths, sentence_positions


def slow_tags(ids, mask):
    """The definition, token by token."""
    tags, sentence, inside = [], 0, False
    for token, real in zip(ids, mask, strict=True):
        if real and token == BOS:
            sentence, inside = sentence + 1, True
        tags.append(sentence if real and inside else 0)
        if real and token == EOS:
            inside = False
    return tags


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30))
def test_any_ids(tokens):
    ids, mask = zip(*tokens, strict=True)
    tags = group_tags(torch.tensor([ids]), BOS, EOS, torch.tensor([mask]).long())
    assert tags.tolist() == [slow_tags(ids, mask)]


def test_tokens_outside_of_sentences_have_tag_0():
    ids = torch.tensor([[49, 0, 5, 2, 0, 6, 7, 2, 48, 1], [1, 1, 1, 0, 5, 2, 0, 7, 2, 49]])
    tags = [[0, 1, 1, 1, 2, 2, 2, 2, 0, 0], [0, 0, 0, 1, 1, 1, 2, 2, 2, 0]]
    assert group_tags(ids, BOS, EOS).tolist() == tags
    assert sentence_lengths(torch.tensor(tags)).tolist() == [[3, 4], [3, 3]]
    assert group_tags(ids, None, None).tolist() == torch.zeros_like(ids).tolist()


def test_positions_count_sentences_and_not_the_padding_behind_them():
    """A batch may have more padding than a model has learned positions."""
    tags = torch.tensor([[1, 1, 1, 2, 2, 3], [1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]])
    expected = [[0, 1, 2, 0, 1, 0], [0, 1, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5]]
    assert sentence_positions(tags).tolist() == expected
