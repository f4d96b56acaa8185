"""Documents to ids and back: lists of sentences on one side, `<s> w w </s> <s> w </s>` on the other."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import BatchFeature, PreTrainedTokenizerBase, ProcessorMixin

from .hub import PublishMixin


class GTransformerProcessor(PublishMixin, ProcessorMixin):
    r"""
    Turns documents (lists of sentences) into model inputs around any Transformers tokenizer, and generated ids back
    into one string per source sentence.

    Text that looks like a structural token (`</s>`, `<s>`, a language code) is tokenized as text, so that the number
    of groups is the number of sentences whatever the document contains.

    Args:
        tokenizer: has `<s>`, `</s>`, padding and mask tokens, and the target language code in its vocabulary.
        src_lang (`str`, *optional*): source language code; by default the tokenizer's.
        tgt_lang (`str`, *optional*): target language code, the token that ends a document; by default the tokenizer's.
        normalization (`str` or `None`, defaults to `"NFKC"`): Unicode normalisation of all text. mBART was trained on
            NFKC, and Transformers 5 no longer does it for `MBartTokenizer`.

    Example:

    ```python
    >>> processor = GTransformerProcessor.from_pretrained(
    ...     "facebook/mbart-large-cc25", src_lang="en_XX", tgt_lang="de_DE"
    ... )  # doctest: +SKIP
    >>> inputs = processor(["The cat sleeps.", "It is old."], return_tensors="pt")  # doctest: +SKIP
    >>> processor.configure(model)  # doctest: +SKIP
    >>> processor.batch_decode_sentences(model.generate(**inputs))  # doctest: +SKIP
    [['Die Katze schläft.', 'Sie ist alt.']]
    ```"""

    auto_class = "AutoProcessor"

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        src_lang: str | None = None,
        tgt_lang: str | None = None,
        normalization: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = "NFKC",
        **kwargs,
    ):
        super().__init__(tokenizer, **kwargs)
        self.src_lang = src_lang or getattr(tokenizer, "src_lang", None)
        self.tgt_lang = tgt_lang or getattr(tokenizer, "tgt_lang", None)
        self.normalization = normalization
        for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
            if getattr(tokenizer, name) is None:
                raise ValueError(f"The tokenizer has no {name}: a document needs <s>, </s> and padding.")
        for language in (self.src_lang, self.tgt_lang):
            if language is not None:
                self._language_token_id(language)

    def _loaded_from(self) -> str:
        return self.tokenizer.name_or_path

    @property
    def bos_token_id(self) -> int:
        """`<s>`, which opens a sentence."""
        return self.tokenizer.bos_token_id

    @property
    def eos_token_id(self) -> int:
        """`</s>`, which closes a sentence."""
        return self.tokenizer.eos_token_id

    @property
    def pad_token_id(self) -> int:
        return self.tokenizer.pad_token_id

    @property
    def mask_token_id(self) -> int:
        """`<mask>`, which word dropout writes."""
        if self.tokenizer.mask_token_id is None:
            raise ValueError("The tokenizer has no mask token, which word dropout needs.")
        return self.tokenizer.mask_token_id

    @property
    def end_of_document_token_id(self) -> int:
        """The target language code, which ends a target document."""
        if self.tgt_lang is None:
            raise ValueError("The processor has no tgt_lang, whose code ends a document: pass e.g. tgt_lang='de_DE'.")
        return self._language_token_id(self.tgt_lang)

    def _language_token_id(self, language: str) -> int:
        index = self.tokenizer.convert_tokens_to_ids(language)  # get_vocab would copy the whole vocabulary
        if index is None or (index == self.tokenizer.unk_token_id and language != self.tokenizer.unk_token):
            known = [token for token in self._structural_tokens if len(token) > 3]
            raise ValueError(f"The tokenizer does not know the language {language!r}; its special tokens are {known}.")
        return index

    @cached_property
    def _structural_tokens(self) -> dict[str, int]:
        """Every token that is no word, with its id; `<unk>` stands for words."""
        tokens = {
            token.content: index for index, token in self.tokenizer.added_tokens_decoder.items() if token.special
        }
        tokens |= dict(zip(self.tokenizer.all_special_tokens, self.tokenizer.all_special_ids, strict=True))
        for language in getattr(self.tokenizer, "lang_code_to_id", {}), {self.src_lang, self.tgt_lang} - {None}:
            tokens |= {code: self.tokenizer.convert_tokens_to_ids(code) for code in language}
        tokens.pop(self.tokenizer.unk_token, None)
        return tokens

    @property
    def structural_token_ids(self) -> list[int]:
        """Ids of `<s>`, `</s>`, padding, `<mask>` and the language codes: everything that is no word."""
        return sorted(set(self._structural_tokens.values()))

    def encode_sentences(self, sentences: Iterable[str]) -> list[list[int]]:
        """
        The word ids of each sentence, without any structural id.

        Raises:
            ValueError: a sentence has no words.
        """
        texts = [self._normalize(sentence) for sentence in sentences]
        for number, text in enumerate(texts, 1):
            if not text:
                raise ValueError(f"Sentence {number} of the document is empty; every sentence needs a word.")
        if not texts:
            return []
        encoded = self.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        structural = set(self.structural_token_ids)
        for index, ids in enumerate(encoded):
            if not structural.isdisjoint(ids):
                encoded[index] = self._encode_as_text(texts[index])
            if not encoded[index]:
                raise ValueError(f"Sentence {index + 1} of the document, {texts[index]!r}, has no tokens.")
        return encoded

    def _normalize(self, text: str) -> str:
        return (unicodedata.normalize(self.normalization, text) if self.normalization else text).strip()

    def _encode_as_text(self, text: str) -> list[int]:
        """Encode a text that holds the name of a structural token, by cutting inside that name."""
        names = sorted(map(re.escape, self._structural_tokens), key=len, reverse=True)
        cuts = [match.start() + 1 for match in re.finditer("|".join(names), text)]
        structural = set(self.structural_token_ids)
        # Should a tokenizer's own normalisation still produce such a name, single characters cannot.
        for borders in (cuts, range(1, len(text))):
            parts = [text[start:end] for start, end in zip([0, *borders], [*borders, len(text)], strict=True)]
            encoded = self.tokenizer(parts, add_special_tokens=False, verbose=False)["input_ids"]
            ids = [token for part in encoded for token in part]
            if structural.isdisjoint(ids):
                return ids
        raise ValueError(f"The tokenizer turns a single character of {text!r} into a structural token.")

    def build_source(self, sentences: list[list[int]]) -> list[int]:
        """`<s> w w </s> <s> w </s>` of the word ids of each sentence."""
        return [token for words in sentences for token in (self.bos_token_id, *words, self.eos_token_id)]

    def build_labels(self, sentences: list[list[int]]) -> list[int]:
        """`w w </s> <s> w </s> [end of document]` of the word ids of each sentence: the first `<s>` is given."""
        return [*self.build_source(sentences)[1:], self.end_of_document_token_id]

    def __call__(
        self,
        documents: list[str] | list[list[str]],
        targets: list[str] | list[list[str]] | None = None,
        max_length: int | None = None,
        return_tensors: str | None = None,
    ) -> BatchFeature:
        """
        Model inputs of documents.

        Args:
            documents: a document as a list of sentences, or a list of such documents.
            targets: their translations, sentence by sentence.
            max_length: most tokens of a document; by default the tokenizer's `model_max_length`. Nothing is truncated.
            return_tensors: "pt" for padded tensors, `None` for lists.

        Returns:
            `input_ids`, `attention_mask` (`(B, S)`, padded on the tokenizer's side) and, given targets, `labels`
            (`(B, T)`, padded with -100).

        Raises:
            ValueError: a document is too long or empty, or source and target do not have the same sentences.
        """
        documents, targets = self._batch(documents), self._batch(targets) if targets is not None else None
        max_length = max_length or self.tokenizer.model_max_length
        sources = [self.encode_sentences(document) for document in documents]
        data = {"input_ids": [self._checked(self.build_source(ids), ids, max_length) for ids in sources]}
        data["attention_mask"] = [[1] * len(ids) for ids in data["input_ids"]]
        if targets is not None:
            translations = [self.encode_sentences(document) for document in targets]
            if [len(ids) for ids in sources] != [len(ids) for ids in translations]:
                raise ValueError("Every document needs as many target sentences as it has source sentences.")
            data["labels"] = [self._checked(self.build_labels(ids), ids, max_length) for ids in translations]
        if return_tensors is None:
            return BatchFeature(data)
        return BatchFeature(self.pad(data), tensor_type=return_tensors)

    @staticmethod
    def _batch(documents: list) -> list[list[str]]:
        if isinstance(documents, str):
            raise ValueError(
                "A document is a list of sentences, not a string: split it into lines, or use the pipeline."
            )
        batch = [documents] if documents and all(isinstance(sentence, str) for sentence in documents) else documents
        if any(isinstance(document, str) for document in batch):
            raise ValueError("A batch holds documents, each a list of sentences: it holds a string.")
        if not batch or not all(batch):
            raise ValueError("A document has no sentences.")
        return batch

    @staticmethod
    def _checked(ids: list[int], sentences: list[list[int]], max_length: int) -> list[int]:
        if len(ids) > max_length:
            longest = max(map(len, sentences)) + 2
            advice = "split that sentence" if longest > max_length else "split the document at sentence borders"
            raise ValueError(
                f"A document has {len(ids)} tokens, its longest sentence {longest}; at most {max_length}: {advice}."
            )
        return ids

    def pad(self, data: dict[str, list[list[int]]]) -> dict[str, Tensor]:
        """Pad lists of ids to tensors `(B, longest)`: target sides on the right (labels with -100), source sides where
        the tokenizer pads."""
        values = {"labels": -100, "attention_mask": 0}
        return {
            name: pad_sequence(
                [torch.tensor(row) for row in rows],
                batch_first=True,
                padding_value=values.get(name, self.pad_token_id),
                padding_side="right" if name in ("labels", "decoder_input_ids") else self.tokenizer.padding_side,
            )
            for name, rows in data.items()
            if rows
        }

    def batch_decode_sentences(self, sequences: Tensor | list[list[int]]) -> list[list[str]]:
        """
        The sentences of generated documents `(B, T)`: for each row as many strings as it opened sentences, that is, as
        the source document has.
        """
        documents = self.split_sentences(sequences)
        texts = iter(self.decode_sentences([ids for document in documents for ids in document]))
        return [[next(texts) for _ in document] for document in documents]

    def split_sentences(self, sequences: Tensor | list[list[int]]) -> list[list[list[int]]]:
        """The word ids of each sentence of generated documents `(B, T)`."""
        return [self._split(row) for row in (sequences.tolist() if isinstance(sequences, Tensor) else sequences)]

    def decode_sentences(self, sentences: list[list[int]]) -> list[str]:
        """The text of sentences given as word ids."""
        return [text.strip() for text in self.tokenizer.batch_decode(sentences)] if sentences else []

    def _split(self, ids: list[int]) -> list[list[int]]:
        structural = set(self.structural_token_ids)
        sentences: list[list[int]] = []
        for token in ids:
            if token == self.bos_token_id:
                sentences.append([])
            elif sentences and token not in structural:
                sentences[-1].append(token)
        return sentences

    def configure(self, model) -> None:
        """
        Set the model's generation config: the end of a document, and no structural tokens or `<unk>` among the words.

        Raises:
            ValueError: the tokenizer does not belong to the model.
        """
        for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
            if getattr(model.config, name) != getattr(self, name):
                raise ValueError(f"The {name} of tokenizer and model differ: this tokenizer belongs to another model.")
        if len(self.tokenizer) > model.config.vocab_size:
            raise ValueError(
                f"The tokenizer has {len(self.tokenizer)} tokens, the model {model.config.vocab_size}: "
                "call model.resize_token_embeddings(len(processor.tokenizer))."
            )
        end = self.end_of_document_token_id
        framed = {self.bos_token_id, self.eos_token_id, self.pad_token_id, end, None}
        unwanted = {*self.structural_token_ids, self.tokenizer.unk_token_id} - framed
        model.generation_config.eos_token_id = end
        model.generation_config.suppress_tokens = sorted(unwanted) or None

    @property
    def model_input_names(self) -> list[str]:
        return ["input_ids", "attention_mask"]


__all__ = ["GTransformerProcessor"]
