"""Tokenizers for models that start from random weights, and the command that trains them."""

import pytest
from json_lines import write_json_lines
from transformers import AutoTokenizer

from modeling_gtransformer.training.tokenizer import TokenizerOptions, convert_tokenizer, train_tokenizer


def test_merges_are_counted_without_the_characters():
    sentences = ["abab abab cdcd", "abab cdcd cdcd"]
    sizes = [len(train_tokenizer(sentences, ["[en]", "[de]"], merges=merges)) for merges in (0, 2, 3)]
    # Four special tokens, a b c d and the mark of a space, two languages and <mask>.
    assert sizes == [4 + 5 + 3, 4 + 5 + 3 + 2, 4 + 5 + 3 + 3]


def test_a_tokenizer_restores_its_text(tmp_path):
    documents = [{"en": ["ba bu .", "to </s> ka .", "re .", "la lo ri ."], "de": ["x ba .", "y .", "z .", "w w ."]}]
    files, output = [write_json_lines(tmp_path / "train.jsonl", documents)], tmp_path / "tokenizer"
    convert_tokenizer(TokenizerOptions(output, ["en", "de"], ["[en]", "[de]"], files, vocab_size=60))
    tokenizer = AutoTokenizer.from_pretrained(output)
    assert tokenizer.convert_tokens_to_ids(["<s>", "<pad>", "</s>", "<unk>"]) == [0, 1, 2, 3]
    end = [len(tokenizer) - 3, len(tokenizer) - 2, len(tokenizer) - 1]
    assert tokenizer.convert_tokens_to_ids(["[en]", "[de]", "<mask>"]) == end
    for sentence in ("ba bu .", "la lo ri ."):
        ids = tokenizer(sentence, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(ids) == sentence and not {0, 1, 2, 3, *end} & set(ids)


def test_a_language_code_is_no_word():
    with pytest.raises(ValueError, match=r"The language code en would match inside words: write \[en\]"):
        train_tokenizer(["denn"], ["en"])


def test_what_cannot_be_trained_or_saved_is_refused(tmp_path):
    file = write_json_lines(tmp_path / "train.jsonl", [{"en": ["ba bu ."]}])
    settings = {"columns": ["en"], "languages": ["[en]"], "files": [file]}
    with pytest.raises(FileExistsError, match="not an empty folder"):  # such as one with a model
        convert_tokenizer(TokenizerOptions(tmp_path, **settings))
    with pytest.raises(ValueError, match="either files or paper_corpus"):
        TokenizerOptions(tmp_path, **{**settings, "files": []})
