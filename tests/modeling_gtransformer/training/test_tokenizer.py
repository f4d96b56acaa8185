"""Tokenizers for models that start from random weights."""

from modeling_gtransformer.training.tokenizer import train_tokenizer


def test_merges_are_counted_without_the_characters():
    sentences = ["abab abab cdcd", "abab cdcd cdcd"]
    sizes = [len(train_tokenizer(sentences, ["[en]", "[de]"], merges=merges)) for merges in (0, 2, 3)]
    # Four special tokens, a b c d and the mark of a space, two languages and <mask>.
    assert sizes == [4 + 5 + 3, 4 + 5 + 3 + 2, 4 + 5 + 3 + 3]
