"""Vocabularies in the files of saved tokenizers; `tests/train/test_trim_vocabulary.py` trims whole checkpoints."""

import json

import pytest
from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from modeling_gtransformer.training.vocabularies import renumber, vocabularies


@pytest.mark.parametrize("family, files", [("marian", 1), ("marian-two", 2), ("m2m_100", 1), ("mbart", 1)])
def test_only_kept_tokens_are_written(sentence_level_checkpoint, tmp_path, family, files):
    tokenizer = AutoTokenizer.from_pretrained(sentence_level_checkpoint(family))
    tokenizer.save_pretrained(tmp_path)
    parts = vocabularies(tokenizer)
    assert len(parts) == files
    for vocabulary in parts:
        kept = sorted(vocabulary.with_spelling({*tokenizer.all_special_ids}))
        assert len(kept) < len(vocabulary.ids)
        vocabulary.write(tmp_path, {old: new for new, old in enumerate(kept)})
    if family == "mbart":
        assert Tokenizer.from_file(str(tmp_path / "tokenizer.json")).get_vocab_size() == len(kept)
        return
    ids_of = {"source.spm": "vocab.json", "sentencepiece.bpe.model": "vocab.json"}
    ids_of["target.spm"] = "target_vocab.json" if files == 2 else "vocab.json"
    for file in (tmp_path / name for name in ids_of if (tmp_path / name).exists()):
        model = SentencePieceProcessor(model_file=str(file))
        pieces = {model.id_to_piece(piece) for piece in range(model.get_piece_size()) if not model.is_control(piece)}
        assert pieces <= json.loads((tmp_path / ids_of[file.name]).read_text()).keys()


def test_other_kinds_are_refused(sentence_level_checkpoint):
    with pytest.raises(ValueError, match="this one is a PLBartTokenizer"):
        vocabularies(AutoTokenizer.from_pretrained(sentence_level_checkpoint("plbart")))


def test_renumber():
    assert renumber([[1, 2.0], 5, None], {1: 7, 2: 8}) == [[7, 2.0], 5, None]
