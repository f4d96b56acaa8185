"""Tokenizers for models from random weights, with one vocabulary for both languages.

The vocabulary is `<s> <pad> </s> <unk>`, pieces, language codes, `<mask>`. Texts are normalized to NFKC. Spaces are
part of the pieces, so decoding restores the text.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from ..corpora.corpus import read_documents
from ..runtime.atomic_file import atomic_folder
from ..translation_options import option
from .paper_corpora import PaperCorpus, paper_corpus


SPECIAL_TOKENS = ["<s>", "<pad>", "</s>", "<unk>"]


@dataclass(frozen=True)
class TokenizerOptions:
    """Options of `gtransformer convert tokenizer`."""

    output: Path = option(MISSING, "New folder for the tokenizer.", argument=True)
    columns: list[str] = option(MISSING, "Columns with lists of sentences.")
    languages: list[str] = option(MISSING, 'Language codes, e.g. "[en]" "[de]".')
    files: list[str] = option([], "Training documents.")
    paper_corpus: PaperCorpus | None = option(None, "One of the paper's corpora on the Hub, instead of files.")
    vocab_size: int = option(30000, "Number of tokens in the vocabulary.", 1)
    merges: int | None = option(None, "Number of BPE merges (paper: 30000), instead of vocab_size.", 0)

    def __post_init__(self) -> None:
        if bool(self.files) == bool(self.paper_corpus):
            raise ValueError("Give either files or paper_corpus.")


def convert_tokenizer(options: TokenizerOptions) -> None:
    """
    Trains a tokenizer on documents, for a model from random weights.

    Raises:
        ValueError: the documents have problems.
        FileExistsError: the output is not a new or empty folder.
    """
    with atomic_folder(options.output) as folder:
        files = paper_corpus(options.paper_corpus, "train", options.columns) if options.paper_corpus else options.files
        documents = read_documents(files, options.columns)
        sentences = (sentence for document in documents for column in options.columns for sentence in document[column])
        tokenizer = train_tokenizer(sentences, options.languages, options.vocab_size, options.merges)
        tokenizer.save_pretrained(folder)
    print(f"{len(tokenizer)} tokens in {options.output}")


def train_tokenizer(
    sentences: Iterable[str],
    languages: Sequence[str],
    vocab_size: int = 30000,
    merges: int | None = None,
) -> PreTrainedTokenizerFast:
    """
    Trains a BPE tokenizer with one vocabulary for all languages.

    Args:
        languages: language codes, one token each.
        vocab_size: number of tokens without the language codes and `<mask>`.
        merges: number of BPE merges (paper: 30000), instead of `vocab_size`, which is then their sum with the number
            of single characters and special tokens.

    Raises:
        ValueError: a language code consists of letters, as it would match inside words.
    """
    refuse_bare_codes(languages)
    if merges is not None:
        sentences = list(sentences)
        characters = {character for sentence in sentences for character in unicodedata.normalize("NFKC", sentence)}
        # A space is one more character of the pieces.
        vocab_size = merges + len(characters - set(" ")) + 1 + len(SPECIAL_TOKENS)
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=SPECIAL_TOKENS)
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


def refuse_bare_codes(languages: Sequence[str]) -> None:
    """Raises `ValueError` for a new language code of letters only."""
    if bare := [language for language in languages if language.isalpha()]:
        raise ValueError(f"The language code {bare[0]} would match inside words: write [{bare[0]}].")
