"""Encodes documents (lists of sentences) as ids, such as `<s> w w </s> <s> w </s>`, and decodes generated ids."""

import contextlib
import copy
import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import BatchFeature, PreTrainedConfig, PreTrainedTokenizerBase, ProcessorMixin

from .configuration_gtransformer import GTransformerConfig
from .hub import HUB_ARGUMENTS, PublishMixin
from .language_tokens import LanguageTokens
from .sentence_template import SentenceTemplate, TargetTemplate, template_named


# Tabs and line breaks.
BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")

# Values of `padding` in Transformers, and whether they pad.
PADDING = {True: True, "longest": True, False: False, "do_not_pad": False}


class GTransformerProcessor(PublishMixin, ProcessorMixin):
    r"""
    Encodes documents (lists of sentences) as model inputs with any Transformers tokenizer, and decodes generated ids
    into one string per source sentence.

    Text that looks like a structural token (`</s>`, `<s>`, a language code) is tokenized as text, so any document has
    as many groups as sentences.

    Args:
        tokenizer: its vocabulary has `</s>`, padding and all other tokens of the sentence template.
        src_lang (`str`, *optional*): source language code; by default the tokenizer's.
        tgt_lang (`str`, *optional*): target language code; by default the tokenizer's.
        normalization (`str` or `None`, defaults to `"NFKC"`): Unicode normalisation of all text. mBART was trained on
            NFKC text, and the `MBartTokenizer` of Transformers 5 no longer normalises.
        sentence_template (`str`, defaults to `"paper"`): the tokens around every sentence, a key of
            `SENTENCE_TEMPLATES`. `from_pretrained` reads it from the checkpoint.
        target_ratio (`float`, defaults to 1.0): target tokens per source token. Segments leave this much space, so
            translations are rarely longer than the training targets. Training measures it for its language pair;
            other languages have 1.0.
        typical_confidence (`float`, *optional*): mean log-probability of generated tokens on texts like the training
            data, in nats. Training measures it for its language pair. If it is set, documents with far lower
            confidence get a warning.

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
        sentence_template: str = "paper",
        target_ratio: float = 1.0,
        typical_confidence: float | None = None,
        **kwargs,
    ):
        sentence_template = kwargs.pop("sentence_frame", sentence_template)  # version 0.2
        super().__init__(tokenizer, **kwargs)
        self._languages: tuple[tuple, LanguageTokens] | None = None
        self.src_lang = src_lang or getattr(tokenizer, "src_lang", None) or getattr(tokenizer, "source_lang", None)
        self.tgt_lang = tgt_lang or getattr(tokenizer, "tgt_lang", None) or getattr(tokenizer, "target_lang", None)
        self.normalization = normalization
        self.sentence_template = sentence_template
        self.target_ratio = target_ratio
        self.typical_confidence = typical_confidence
        needed = {"eos", "pad"} | self.template.roles - {"src_lang", "tgt_lang"}
        for name in sorted(f"{role}_token_id" for role in needed):
            if getattr(tokenizer, name) is None:
                raise ValueError(f"The tokenizer has no {name}, which the sentence template needs: set it.")
        if not tgt_lang and self._has_targets and self.languages.find(self.tgt_lang) is None:
            # A tokenizer with several target languages contains the code of their group, such as "roa".
            self.tgt_lang = None
        self._check_languages()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, **kwargs):
        """Loads like Transformers. For a sentence-level checkpoint without a processor, takes the sentence template
        from the configuration of the model."""
        hub = {name: kwargs[name] for name in HUB_ARGUMENTS if name in kwargs}
        if "sentence_template" not in kwargs:
            saved, _ = cls.get_processor_dict(pretrained_model_name_or_path, **hub)
            config: dict[str, Any] = {}
            with contextlib.suppress(OSError):  # without a model
                config, _ = PreTrainedConfig.get_config_dict(pretrained_model_name_or_path, **hub)
            if "sentence_template" not in saved and config.get("model_type"):
                kwargs["sentence_template"] = GTransformerConfig.from_dict(config).sentence_template
        return super().from_pretrained(pretrained_model_name_or_path, **kwargs)

    def for_languages(self, src_lang: str | None = None, tgt_lang: str | None = None) -> "GTransformerProcessor":
        """
        Returns a copy of the processor for other languages; `None` keeps a language.

        Raises:
            ValueError: the tokenizer lacks a language.
        """
        if not (src_lang or tgt_lang):
            return self
        other = copy.copy(self)
        other.src_lang, other.tgt_lang = self._code(src_lang, self.src_lang), self._code(tgt_lang, self.tgt_lang)
        other._check_languages()
        if (other.src_lang, other.tgt_lang) != (self.src_lang, self.tgt_lang):
            other.target_ratio, other.typical_confidence = 1.0, None
        return other

    def _code(self, requested: str | None, own: str | None) -> str | None:
        """Returns the requested language, in the processor's own spelling if the languages are equal."""
        with contextlib.suppress(ValueError):
            if requested and own and self.languages.id_of(requested) == self.languages.id_of(own):
                return own
        return requested or own

    @property
    def languages(self) -> LanguageTokens:
        """Structural tokens; reread when languages change or the tokenizer grows."""
        key = (self.src_lang, self.tgt_lang, len(self.tokenizer))
        if self._languages is None or self._languages[0] != key:
            self._languages = key, LanguageTokens(self.tokenizer, filter(None, key[:2]))
        return self._languages[1]

    def _loaded_from(self) -> str:
        return self.tokenizer.name_or_path

    @property
    def template(self) -> SentenceTemplate:
        """Roles of the tokens around every sentence."""
        return template_named(self.sentence_template)

    @property
    def target_template(self) -> TargetTemplate:
        """Ids of the tokens around every target sentence."""
        return self.template.in_ids(self._id_of)

    def _id_of(self, role: str) -> int:
        if role not in ("src_lang", "tgt_lang"):
            return getattr(self.tokenizer, f"{role}_token_id")
        language = getattr(self, role)
        if language is None:
            raise ValueError(
                f"The processor has no {role}, which its sentence template needs: pass {role}, one of "
                f"{', '.join(self.language_codes)}."
            )
        return self.languages.id_of(language)

    @property
    def bos_token_id(self) -> int | None:
        """`<s>`, which opens a sentence in the template of the paper."""
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
        """The token for word dropout: `<mask>`, or `<unk>` if the tokenizer has no `<mask>`."""
        token = self.tokenizer.mask_token_id
        return self.tokenizer.unk_token_id if token is None else token

    @property
    def sentence_tokens(self) -> int:
        """Maximum number of tokens that the template adds to a source or target sentence."""
        template = self.template
        source = len(template.source_prefix) + len(template.source_suffix) + bool(self._source_code)
        return 1 + max(source, len(template.target_prefix))

    def _check_languages(self) -> None:
        """Raises `ValueError` if the tokenizer lacks a language of the template."""
        languages = [self.src_lang, self.tgt_lang] if {"src_lang", "tgt_lang"} & self.template.roles else []
        languages += [self.tgt_lang] if self._has_targets else []
        for language in languages:
            if language is not None:
                self.languages.id_of(language)
        only = getattr(self.tokenizer, "target_lang", None)
        if only and self.tgt_lang and not self.language_codes and not self.tgt_lang.startswith(only):
            raise ValueError(f"The model translates only into {only!r}, not into {self.tgt_lang!r}.")

    @property
    def _has_targets(self) -> bool:
        """Whether this is a Marian tokenizer with several target languages."""
        return bool(getattr(self.tokenizer, "supported_language_codes", None))

    @property
    def _source_code(self) -> list[int]:
        """Target language token before every source sentence, for models with several target languages."""
        if self.template.source_code is None or not self._has_targets:
            return []
        return [self._id_of(self.template.source_code)]

    @property
    def language_codes(self) -> list[str]:
        """Codes of the tokenizer's languages: possible values of `src_lang` and `tgt_lang`."""
        return self.languages.codes

    @property
    def structural_token_ids(self) -> list[int]:
        """Ids of `<s>`, `</s>`, padding, `<mask>` and the language codes."""
        return sorted(set(self.languages.ids.values()))

    def unknown_words(self, text: str, ids: Collection[int]) -> list[str]:
        """Returns the words of a source text with these ids whose characters the tokenizer does not know."""
        if self.tokenizer.unk_token_id not in ids:
            return []
        words = self._normalize(text).split()
        encoded = self._encode(words, is_target=False) if words else []
        unknown = [word for word, ids in zip(words, encoded, strict=True) if self.tokenizer.unk_token_id in ids]
        return [word.rstrip(".,;:!?") or word for word in unknown]

    def encode_sentences(self, sentences: Iterable[str], is_target: bool = False) -> list[list[int]]:
        """
        Returns the word ids of each sentence, without structural ids.

        Args:
            is_target: whether these are target sentences. Some tokenizers have a separate target vocabulary.

        Raises:
            ValueError: a sentence is empty, has no tokens, or contains an unpaired surrogate.
        """
        texts = [self._normalize(sentence) for sentence in sentences]
        for number, text in enumerate(texts, 1):
            if not text:
                raise ValueError(f"Sentence {number} of the document is empty; every sentence needs a word.")
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise ValueError(f"Sentence {number} of the document has an unpaired surrogate.")
        if not texts:
            return []
        encoded = self._encode(texts, is_target)
        structural = set(self.structural_token_ids)
        for index, ids in enumerate(encoded):
            if not structural.isdisjoint(ids) or self._begins_with_code(texts[index]):
                encoded[index] = self._encode_as_text(texts[index], is_target)
            if not encoded[index]:
                raise ValueError(f"Sentence {index + 1} of the document, {texts[index]!r}, has no tokens.")
        return encoded

    def _encode(self, texts: list[str], is_target: bool) -> list[list[int]]:
        # Only Marian has a separate target vocabulary; `text_target` switches the state of every tokenizer.
        side = {"text_target": texts} if is_target and hasattr(self.tokenizer, "spm_target") else {"text": texts}
        return self.tokenizer(**side, add_special_tokens=False, verbose=False)["input_ids"]

    def _begins_with_code(self, text: str) -> bool:
        """Whether Marian would read the start of a text as a language code, which may be unknown to it."""
        remove_language_code = getattr(self.tokenizer, "remove_language_code", None)
        return remove_language_code is not None and bool(remove_language_code(text)[0])

    def _normalize(self, text: str) -> str:
        text = BREAKS.sub(" ", text)  # unknown to custom tokenizers
        return (unicodedata.normalize(self.normalization, text) if self.normalization else text).strip()

    def _encode_as_text(self, text: str, is_target: bool) -> list[int]:
        """Encodes a text that contains the name of a structural token, in parts that split the name."""
        names = sorted(map(re.escape, [*self.languages.ids, ">>"]), key=len, reverse=True)
        cuts = [match.start() + 1 for match in re.finditer("|".join(names), text)]
        structural = set(self.structural_token_ids)
        # The tokenizer's own normalisation may still produce a name. Single characters cannot form one.
        for boundaries in (cuts, range(1, len(text))):
            parts = [text[start:end] for start, end in pairwise([0, *boundaries, len(text)])]
            encoded = self._encode(parts, is_target)
            ids = [token for part in encoded for token in part]
            if structural.isdisjoint(ids):
                return ids
        raise ValueError(f"The tokenizer turns a single character of {text!r} into a structural token.")

    def build_source(self, sentences: list[list[int]]) -> list[int]:
        """Builds source ids, such as `<s> w w </s> <s> w </s>`, from the word ids of each sentence."""
        prefix = [*self._source_code, *map(self._id_of, self.template.source_prefix)]
        suffix = [self.eos_token_id, *map(self._id_of, self.template.source_suffix)]
        return [token for words in sentences for token in (*prefix, *words, *suffix)]

    def build_target(self, sentences: list[list[int]]) -> list[int]:
        """Builds decoder inputs from the word ids of each sentence."""
        return self.target_template.read(sentences)

    def build_labels(self, sentences: list[list[int]]) -> list[int]:
        """Builds labels, such as `w w </s> <s> w </s> [end]`, from the word ids of each sentence: the decoder inputs
        without their first token, then the end token of the template."""
        end = [self._id_of(self.template.label_end)] if self.template.label_end else []
        return [*self.build_target(sentences)[1:], *end]

    def __call__(
        self,
        documents: list[str] | list[list[str]],
        targets: list[str] | list[list[str]] | None = None,
        max_length: int | None = None,
        return_tensors: str | None = None,
        padding: bool | Literal["longest", "do_not_pad"] | None = None,
        text_target: list[str] | list[list[str]] | None = None,
    ) -> BatchFeature:
        """
        Encodes documents as model inputs.

        Args:
            documents: a document as a list of sentences, or a list of documents.
            targets: their translations, sentence by sentence.
            max_length: maximum number of tokens of a document or, where positions count from the start of a sentence,
                of a sentence; by default the tokenizer's `model_max_length`. Longer inputs raise an error.
            return_tensors: "pt" for tensors, `None` for lists.
            padding: whether to pad documents to the longest one; by default only tensors are padded.
            text_target: the name of `targets` in processors of Transformers.

        Returns:
            `input_ids`, `attention_mask` (`(B, S)`, padded on the tokenizer's side) and, given targets, `labels`
            (`(B, T)`, padded with -100).

        Raises:
            ValueError: a document is too long or empty, source and target differ in their number of sentences, or
                `padding` has another value.
        """
        if padding not in (None, *PADDING):
            raise ValueError(f"padding must be one of {', '.join(map(repr, PADDING))}, not {padding!r}.")
        documents, targets = self._batch(documents), targets if text_target is None else text_target
        max_length = max_length or self.tokenizer.model_max_length
        sources = [self.encode_sentences(document) for document in documents]
        data = {"input_ids": [self._checked(self.build_source(ids), ids, max_length) for ids in sources]}
        data["attention_mask"] = [[1] * len(ids) for ids in data["input_ids"]]
        if targets is not None:
            translations = [self.encode_sentences(document, is_target=True) for document in self._batch(targets)]
            if [len(ids) for ids in sources] != [len(ids) for ids in translations]:
                raise ValueError("A document and its target differ in the number of sentences: align them.")
            data["labels"] = [self._checked(self.build_labels(ids), ids, max_length) for ids in translations]
        if return_tensors if padding is None else PADDING[padding]:
            data = {name: rows if return_tensors else rows.tolist() for name, rows in self.pad(data).items()}
        return BatchFeature(data, tensor_type=return_tensors)

    @staticmethod
    def _batch(documents: list) -> list[list[str]]:
        if isinstance(documents, str):
            raise ValueError(
                "A document is a list of sentences, not a string: split it into sentences, or use the pipeline."
            )
        documents = list(documents)
        batch = [documents] if documents and all(isinstance(sentence, str) for sentence in documents) else documents
        if any(isinstance(document, str) for document in batch):
            raise ValueError("A batch is a list of documents, each a list of sentences: remove single strings.")
        if not batch or not all(batch):
            raise ValueError("A document has no sentences: pass at least one.")
        return batch

    def _checked(self, ids: list[int], sentences: list[list[int]], max_length: int) -> list[int]:
        in_sentence = max(map(len, sentences)) + self.sentence_tokens
        counted = len(ids) if self.template.position_scope == "document" else in_sentence
        if counted > max_length:
            advice = "split that sentence" if in_sentence > max_length else "split the document at sentence boundaries"
            raise ValueError(
                f"A document has {len(ids)} tokens, its longest sentence {in_sentence}. The maximum is {max_length}: "
                f"{advice}."
            )
        return ids

    def pad(self, data: dict[str, list[list[int]]]) -> dict[str, Tensor]:
        """Pads lists of ids to tensors `(B, T)`: targets on the right (labels with -100), sources on the tokenizer's
        side."""
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
        """Decodes generated documents `(B, T)` into one string per source sentence of each row."""
        return [self.decode_sentences(document) for document in self.split_sentences(sequences)]

    def split_sentences(self, sequences: Tensor | list[list[int]]) -> list[list[list[int]]]:
        """Returns the word ids of each sentence of generated documents `(B, T)`."""
        structural = set(self.structural_token_ids)
        rows = sequences.tolist() if isinstance(sequences, Tensor) else sequences
        documents = map(self.target_template.split, rows)
        return [[[token for token in ids if token not in structural] for ids in document] for document in documents]

    def decode_sentences(self, sentences: list[list[int]]) -> list[str]:
        """Decodes the word ids of each sentence."""
        if not sentences:
            return []
        return [text.strip().removesuffix(self._joiner) for text in self.tokenizer.batch_decode(sentences)]

    @cached_property
    def _joiner(self) -> str:
        """The continuation mark of subword-nmt, if the tokenizer joins words at it. A truncated sentence ends in
        it."""
        return "@@" if self.tokenizer.convert_tokens_to_string(["a@@", "b"]) == "ab" else ""

    def configure(self, model) -> None:
        """
        Writes [`GTransformerProcessor.generation_settings`] to the model's generation config.

        Raises:
            ValueError: the tokenizer does not belong to the model, or the processor has no target language.
        """
        for name, value in self.generation_settings(model).items():
            setattr(model.generation_config, name, value)

    def generation_settings(self, model) -> dict[str, Any]:
        """
        Returns arguments of `model.generate`: the target language, and structural tokens and `<unk>` to suppress.

        Raises:
            ValueError: the tokenizer does not belong to the model, or the processor has no target language.
        """
        self._check_model(model.config)
        template = self.target_template
        around_words = {self.bos_token_id, self.eos_token_id, self.pad_token_id, *template.prefix, template.end, None}
        # The output layer may have more rows than the tokenizer has tokens.
        without_token = range(len(self._target_vocabulary), model.config.decoder_vocab_size)
        unwanted = {*self.structural_token_ids, self.tokenizer.unk_token_id, *without_token} - around_words
        setting = self.template.language_setting
        language = {setting: self._id_of("tgt_lang")} if setting else {}
        return {**language, "suppress_tokens": sorted(unwanted) or None}

    def _check_model(self, config) -> None:
        """Raises `ValueError` if the tokenizer does not belong to a model with this configuration."""
        if config.sentence_template != self.sentence_template:
            raise ValueError(
                f"The model has the sentence template {config.sentence_template!r}, the processor "
                f"{self.sentence_template!r}: load both from one checkpoint, or pass sentence_template to both."
            )
        for role in sorted({"eos", "pad"} | {"bos"} & self.template.roles):
            name = f"{role}_token_id"
            if getattr(config, name) != getattr(self, name):
                raise ValueError(f"Tokenizer and model differ in {name}: load both from one checkpoint.")
        if self.template.start and config.decoder_start_token_id != self._id_of(self.template.start):
            raise ValueError(
                f"The model starts with token {config.decoder_start_token_id}, not with the {self.template.start} "
                "token of this tokenizer: load both from one checkpoint."
            )
        if (tokens := len(self._target_vocabulary)) > config.decoder_vocab_size:
            raise ValueError(
                f"The tokenizer has {tokens} tokens, the model {config.decoder_vocab_size}: call "
                "model.resize_token_embeddings(len(processor.tokenizer))."
            )

    @property
    def _target_vocabulary(self) -> Any:
        return getattr(self.tokenizer, "target_encoder", None) or self.tokenizer

    @property
    def model_input_names(self) -> list[str]:
        return ["input_ids", "attention_mask"]


__all__ = ["GTransformerProcessor"]
