import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import BOS, EOS, PAD, TINY

from modeling_gtransformer import GTransformerConfig
from modeling_gtransformer.group_tags import (
    closed_group_tags,
    group_tags,
    last_place,
    read_group_tags,
    sentence_lengths,
    sentence_positions,
    sentence_progress,
)
from modeling_gtransformer.sentence_template import SENTENCE_TEMPLATES


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


@given(st.sampled_from(sorted(SENTENCE_TEMPLATES)), st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_prefixes_of_targets_in_any_template(name, lengths):
    """The words so far, the number of closed sentences and the place of the next token, after every prefix."""
    template = SENTENCE_TEMPLATES[name].in_ids(
        {"bos": BOS, "pad": PAD, "eos": EOS, "tgt_lang": 49, "decoder_start": 3}.get
    )
    ids = template.read([[5] * length for length in lengths])
    places = [
        (number, words)
        for number, length in enumerate(lengths, 1)
        for words in range(-len(template.prefix), length + 1)
    ]
    places.append((len(lengths) + 1, -len(template.prefix)))
    for length in range(1, len(ids) + 1):
        prefix = torch.tensor([ids[:length]])
        closed = ids[:length].count(EOS) - (template.eos_opens_next and template.start == EOS)
        number, words = sentence_progress(prefix, template)
        assert (number.item(), words.item()) == places[length - template.head]
        assert number.item() == closed + 1
        padded = [PAD] * 2 + ids[:length] + [PAD] * 2 * (length == len(ids))
        split = [words for words in template.split(padded) if words]
        assert [len(words) for words in split[:closed]] == lengths[:closed]
        assert sum(map(len, split)) == ids[:length].count(5)


def test_tags_of_sentences_told_apart_by_what_closes_them():
    ids = torch.tensor([[9, 5, EOS, 9, 5, 6, EOS, PAD], [PAD, 9, 5, 6, EOS, 9, 5, EOS]])
    real = ids != PAD
    tags = closed_group_tags(ids, EOS, real, eos_opens_next=False, suffix=0)
    assert tags.tolist() == [[1, 1, 1, 2, 2, 2, 2, 0], [0, 1, 1, 1, 1, 2, 2, 2]]
    behind = closed_group_tags(ids, EOS, real, eos_opens_next=False, suffix=1)
    assert behind.tolist() == [[1, 1, 1, 1, 2, 2, 2, 0], [0, 1, 1, 1, 1, 1, 2, 2]]
    read = torch.tensor([[EOS, 9, 5, EOS, 9, 6, 6, EOS]])
    opened = closed_group_tags(read, EOS, torch.ones_like(read).bool(), eos_opens_next=True, suffix=0)
    assert opened.tolist() == [[1, 1, 1, 2, 2, 2, 2, 3]]
    empty = torch.tensor([[EOS, EOS, 5, EOS]])
    opened = closed_group_tags(empty, EOS, torch.ones_like(empty).bool(), eos_opens_next=True, suffix=0)
    assert opened.tolist() == [[1, 2, 2, 3]]


def test_ids_are_read_without_padding_and_masked_tokens():
    names = ("paper", "marian", "mbart")
    paper, marian, mbart = (GTransformerConfig(**TINY, sentence_template=name) for name in names)
    ids, mask = torch.tensor([[BOS, 5, EOS, BOS, 6, EOS]]), torch.tensor([[1, 1, 1, 0, 0, 0]])
    assert read_group_tags(ids, paper, True, mask).tolist() == [[1, 1, 1, 0, 0, 0]]
    ids = torch.tensor([[PAD, 5, EOS, PAD, PAD]])
    assert read_group_tags(ids, marian, True).tolist() == [[1, 1, 2, 0, 0]]
    assert read_group_tags(torch.tensor([[48, 5, EOS, PAD, PAD]]), mbart, True).tolist() == [[1, 1, 1, 0, 0]]


def test_without_tokens_there_are_no_sentences():
    assert sentence_lengths(torch.zeros(2, 0, dtype=torch.long)).shape == (2, 0)
    template = SENTENCE_TEMPLATES["paper"].in_ids({"bos": BOS, "pad": PAD, "eos": EOS, "tgt_lang": 49}.get)
    assert template.split([PAD, PAD]) == []


@pytest.mark.parametrize("ids", [[PAD], [EOS], [7, EOS], [PAD, PAD], [7]])
def test_a_prefix_without_a_sentence_is_before_the_first_one(ids):
    template = SENTENCE_TEMPLATES["paper"].in_ids({"bos": BOS, "pad": PAD, "eos": EOS, "tgt_lang": 49}.get)
    number, words = sentence_progress(torch.tensor([ids]), template)
    assert (number.item(), words.item()) == (1, -1)


def test_padding_before_a_prefix_opens_no_sentence():
    """The last padding starts the document."""
    template = SENTENCE_TEMPLATES["marian"].in_ids({"pad": PAD, "eos": EOS}.get)
    number, words = sentence_progress(torch.tensor([[PAD, PAD, PAD, 5, 6]]), template)
    assert (number.item(), words.item()) == (1, 2)


def test_positions_count_sentences_and_not_the_padding_behind_them():
    """A batch may have more padding than a model has learned positions."""
    tags = torch.tensor([[1, 1, 1, 2, 2, 3], [1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]])
    expected = [[0, 1, 2, 0, 1, 0], [0, 1, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5]]
    assert sentence_positions(tags).tolist() == expected


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=3))
def test_last_place(rows):
    """The place of the last true element up to each token, counted from 1; 0 where there is none."""
    expected = [[max((k + 1 for k in range(i + 1) if row[k]), default=0) for i in range(5)] for row in rows]
    assert last_place(torch.tensor(rows)).tolist() == expected
