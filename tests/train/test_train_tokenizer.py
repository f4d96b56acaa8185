"""A tokenizer of one's own, as a model needs it."""

import pytest
from json_lines import write_json_lines
from transformers import AutoTokenizer

from train.train_tokenizer import main as train_tokenizer


def test_merges_of_a_unigram_model_are_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        train_tokenizer([str(tmp_path), "--files", "a", "--columns", "en", "--languages", "[en]", "--merges", "9",
                         "--model", "unigram"])  # fmt: skip
    assert "only BPE has merges" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_tokenizer_of_ones_own(tmp_path, kind):
    documents = [{"en": ["ba bu .", "to </s> ka .", "re .", "la lo ri ."], "de": ["x ba .", "y .", "z .", "w w ."]}]
    files, output = write_json_lines(tmp_path / "train.jsonl", documents), str(tmp_path / "tokenizer")
    settings = ["--columns", "en", "de", "--languages", "[en]", "[de]", "--vocab_size", "60", "--model", kind]
    train_tokenizer([output, "--files", files, *settings])
    tokenizer = AutoTokenizer.from_pretrained(output)
    assert tokenizer.convert_tokens_to_ids(["<s>", "<pad>", "</s>", "<unk>"]) == [0, 1, 2, 3]
    end = [len(tokenizer) - 3, len(tokenizer) - 2, len(tokenizer) - 1]
    assert tokenizer.convert_tokens_to_ids(["[en]", "[de]", "<mask>"]) == end
    for sentence in ("ba bu .", "la lo ri ."):
        ids = tokenizer(sentence, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(ids) == sentence and not {0, 1, 2, 3, *end} & set(ids)


def test_what_cannot_be_trained_or_saved_is_said(tmp_path, capsys):
    files = write_json_lines(tmp_path / "train.jsonl", [{"en": ["ba bu ."]}])
    settings = ["--files", files, "--columns", "en", "--languages", "[en]"]
    with pytest.raises(ValueError, match="would take the place of an input"):
        train_tokenizer([files, *settings])
    with pytest.raises(ValueError, match="No tokenizer can be trained: "):
        train_tokenizer([str(tmp_path / "tokenizer"), *settings, "--vocab_size", "1", "--model", "unigram"])
    with pytest.raises(SystemExit):
        train_tokenizer([str(tmp_path / "tokenizer"), *settings, "--vocab_size", "-5"])
