"""Tokenizers with the pieces of subword-nmt or SentencePiece and the ids of a fairseq dictionary."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec  # type: ignore[attr-defined]
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PhobertTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast
from transformers.utils import logging

from .tokenizer import SPECIAL_TOKENS


logger = logging.get_logger(__name__)

CODES_HEADER = "#version: 0.2"
# Score of an unknown character in a Unigram model, below that of its rarest piece.
UNKNOWN_PENALTY = 10


@dataclass(frozen=True)
class Dictionary:
    """
    The meaning of the ids of a run.

    Attributes:
        words: all tokens in the order of their ids.
        structure: tokens that are not words: language codes, and fillers that round up the size of the dictionary.
    """

    words: list[str]
    structure: list[str]

    def __len__(self) -> int:
        return len(self.words)


def read_dictionary(path: str | os.PathLike, languages: Sequence[str]) -> Dictionary:
    """
    Reads the dictionary of a `dict.txt` with lines `word count`, and completes it as the authors' task does:
    `<s> <pad> </s> <unk>` come before its words, the language codes `[en]`, ... and `<mask>` after them.

    Args:
        languages: languages of the run's `--langs`, in the same order.

    Raises:
        ValueError: a line has another form, or a word occurs twice.
    """
    words = dict.fromkeys(SPECIAL_TOKENS)
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            word, _, count = line.rstrip().rpartition(" ")
            if not word or not count.isdecimal() or word in words:
                raise ValueError(f"{path}, line {number}: expected a new word and its count, found {line.rstrip()!r}.")
            words[word] = None
    codes = [f"[{language}]" for language in languages]
    words |= dict.fromkeys([*codes, "<mask>"])
    return Dictionary([*words], [*filter(re.compile(r"madeupword\d{4}").fullmatch, words), *codes])


def bpe_tokenizer(dictionary: Dictionary, codes: str | os.PathLike, folder: str | os.PathLike) -> PhobertTokenizer:
    """
    Makes a tokenizer with the pieces of subword-nmt, marked `@@` where a word continues, and their ids in fairseq:
    pieces that the dictionary does not have are `<unk>`. PhoBERT was trained with fairseq, so its tokenizer does this.

    Args:
        codes: file that `subword-nmt learn-bpe` wrote.
        folder: folder for the files of the tokenizer.

    Raises:
        ValueError: the codes have another version or form.
    """
    header, *merges = Path(codes).read_text(encoding="utf-8").rstrip("\n").split("\n")
    if header != CODES_HEADER:
        raise ValueError(f"{codes} begins with {header!r}, but codes of subword-nmt begin with {CODES_HEADER!r}.")
    for number, merge in enumerate(merges, 2):
        if len(merge.split()) != 2:
            raise ValueError(f"{codes}, line {number}: expected two pieces to merge, found {merge!r}.")
    # In both files, the tokenizer expects a count at the end of a line, and ignores it.
    lines = {"vocab.txt": dictionary.words[len(SPECIAL_TOKENS) :], "bpe.codes": dict.fromkeys(merges)}
    files = [Path(folder, name) for name in lines]
    for file, content in zip(files, lines.values(), strict=True):
        file.write_text("".join(f"{line} 0\n" for line in content), encoding="utf-8")
    tokenizer = PhobertTokenizer(*map(str, files), clean_up_tokenization_spaces=False, **named_tokens(dictionary))
    return checked(tokenizer, dictionary)


def sentencepiece_tokenizer(dictionary: Dictionary, file: str | os.PathLike) -> PreTrainedTokenizerFast:
    """
    Makes a tokenizer with the pieces of a SentencePiece model and the ids of the dictionary. Where fairseq reads
    `<unk>` for a piece that the dictionary does not have, shorter pieces take its place.

    Args:
        file: a Unigram model with SentencePiece's default treatment of spaces, such as mBART's.

    Raises:
        ValueError: the model has another type.
    """
    model = ModelProto.FromString(Path(file).read_bytes())
    refuse_other_kinds(model, file)
    scores = {piece.piece: piece.score for piece in model.pieces if piece.type == piece.NORMAL}
    if missing := sorted(scores.keys() - {*dictionary.words}):
        logger.warning(
            f"The dictionary lacks {len(missing)} pieces of {file}, such as {missing[:5]}: shorter pieces take their "
            "place, where fairseq reads <unk>."
        )
    # The dictionary may have characters that SentencePiece does not know.
    unknown = min(scores.values()) - UNKNOWN_PENALTY
    vocabulary = [(word, scores.get(word, unknown)) for word in dictionary.words]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=SPECIAL_TOKENS.index("<unk>")))
    charsmap = model.normalizer_spec.precompiled_charsmap
    spaces = [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap)] * bool(charsmap) + spaces)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return checked(PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named_tokens(dictionary)), dictionary)


def refuse_other_kinds(model: ModelProto, file: str | os.PathLike) -> None:
    """Raises a `ValueError` unless the model has the type that [`sentencepiece_tokenizer`] converts."""
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    usual_spaces = trainer.split_by_whitespace and not trainer.treat_whitespace_as_suffix
    usual_spaces &= normalizer.add_dummy_prefix and normalizer.remove_extra_whitespaces
    other_pieces = {piece.type for piece in model.pieces} & {
        ModelProto.SentencePiece.USER_DEFINED,
        ModelProto.SentencePiece.BYTE,
    }
    if trainer.model_type != TrainerSpec.UNIGRAM or not usual_spaces or other_pieces:
        raise ValueError(
            f"{file}: only SentencePiece models of the type unigram are converted, with its default treatment of "
            "spaces and without byte fallback and user-defined symbols."
        )


def named_tokens(dictionary: Dictionary) -> dict[str, Any]:
    """Gives a tokenizer's arguments for the tokens that are not words."""
    names = ("bos_token", "pad_token", "eos_token", "unk_token")
    named = dict(zip(names, SPECIAL_TOKENS, strict=True))
    return {**named, "mask_token": "<mask>", "extra_special_tokens": dictionary.structure}


def checked(tokenizer: PreTrainedTokenizerBase, dictionary: Dictionary) -> Any:
    """Returns the tokenizer if its ids are those of the dictionary, and raises a `ValueError` otherwise."""
    ids = {word: index for index, word in enumerate(dictionary.words)}
    if other := [word for word, index in tokenizer.get_vocab().items() if ids.get(word) != index]:
        raise ValueError(
            f"{type(tokenizer).__name__} gives other ids than the dictionary, for example to {other[:5]}."
        )
    return tokenizer
