"""Tokenizers for models that start from random weights: one vocabulary for both languages.

The vocabulary is `<s> <pad> </s> <unk>`, pieces, language codes, `<mask>`. Texts are normalized to NFKC, and spaces
are part of the pieces, so decoding restores the text.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast


SPECIAL_TOKENS = ["<s>", "<pad>", "</s>", "<unk>"]


def train_tokenizer(
    sentences: Iterable[str],
    languages: Sequence[str],
    vocab_size: int = 30000,
    model: str = "bpe",
    merges: int | None = None,
) -> PreTrainedTokenizerFast:
    """
    Trains a tokenizer with one vocabulary for all languages.

    Args:
        languages: language codes, each of which becomes one token.
        vocab_size: number of tokens without the language codes and `<mask>`.
        model: "bpe" (as in the paper) or "unigram".
        merges: number of BPE merges (in the paper 30000), instead of `vocab_size`, which is then that number and the
            number of single characters.
    """
    if merges is not None:
        if model != "bpe":
            raise ValueError("Only BPE has merges.")
        sentences = list(sentences)
        characters = {character for sentence in sentences for character in unicodedata.normalize("NFKC", sentence)}
        # Pieces write spaces as one more character.
        vocab_size = merges + len(characters - set(" ")) + 1 + len(SPECIAL_TOKENS)
    settings: dict[str, Any] = {"vocab_size": vocab_size, "special_tokens": SPECIAL_TOKENS}
    tokenizer, trainer = {
        "bpe": (Tokenizer(models.BPE(unk_token="<unk>")), trainers.BpeTrainer(**settings)),
        "unigram": (Tokenizer(models.Unigram()), trainers.UnigramTrainer(**settings, unk_token="<unk>")),
    }[model]
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(sentences, trainer)
    tokenizer.add_special_tokens([*languages, "<mask>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
        extra_special_tokens=list(languages),
    )
