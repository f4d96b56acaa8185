"""`pipeline("document-translation")`: translates the sentences of a document in each other's context."""

import os
import reprlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from queue import Queue
from threading import Event, Thread
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch.utils.data import Dataset
from transformers import Pipeline, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from .document_translation import result_of, translate_in_steps
from .hub import PIPELINES, PublishMixin, with_code
from .plain_text import (
    BilingualText,
    Splitter,
    SplitText,
    is_translatable,
    language_code,
    sentencex_splitter,
    split_text,
)
from .sentence import Sentence, TranslatedDocument, TranslatedSentence
from .sentence_level_models import from_sentence_level_model, load_processor
from .terminology import Terminology
from .translation_options import TranslationOptions


logger = logging.get_logger(__name__)

# Maximum documents and characters per chunk. A chunk shares batches; a longer document is a chunk by itself.
MAX_DOCUMENTS, MAX_CHARACTERS = 256, 200_000
OTHER_PLACEHOLDERS = "stays untranslated, because its translation has other placeholders."
# Options of `preprocess` and of `postprocess`. All others are arguments of `translate_in_steps`, as are two of these.
OF_PREPARATION = ("format", "splitter", "mark_fuzzy", "bilingual", "keep_placeholders", "word_alignment", "name")
OF_RESULT = ("confidence", "word_alignment", "alternatives")


def _formats() -> ModuleType:
    """Imports the package `files`, which checkpoints do not carry."""
    try:
        from modeling_gtransformer import files
    except ImportError as error:
        raise ImportError(
            "The code of a checkpoint translates plain text and lists of sentences. Other formats need the whole "
            "package: pip install 'gtransformer-hf[files]'"
        ) from error
    return files


class NamedDocument(NamedTuple):
    """A document with its name and, optionally, the places of its sentences, as warnings print them."""

    name: str
    document: str | bytes | list[str]
    places: Sequence[str] | None = None

    @property
    def characters(self) -> int:
        return len(self.document) if isinstance(self.document, str | bytes) else sum(map(len, self.document))


@dataclass(frozen=True)
class PreparedDocument:
    """
    A text, list or file, split into sentences.

    Attributes:
        documents: sentences of each document. A file may contain several independent documents.
        file: writes translations in place of the sentences.
    """

    documents: list[list[Sentence]]
    file: Any

    @property
    def sentences(self) -> list[Sentence]:
        return [sentence for document in self.documents for sentence in document]


def refuse_other_than_document(document: Any) -> None:
    """
    Checks the type of a document.

    Raises:
        ValueError: the document is neither text nor a list of sentences.
    """
    is_list = isinstance(document, list) and all(isinstance(sentence, str) for sentence in document)
    if not (is_list or isinstance(document, (str, bytes))):
        raise ValueError(f"A document is a string or a list of strings, not {reprlib.repr(document)}.")


def _refuse_batch_size(batch_size: int | None) -> None:
    if (batch_size or 1) > 1:
        raise ValueError("Set max_tokens instead of batch_size: batches consist of segments and are sized in tokens.")


def refuse_missing_tensors(name: str, missing: Sequence[str]) -> None:
    """
    Rejects a checkpoint with random weights.

    Raises:
        ValueError: the checkpoint lacks tensors.
    """
    if missing:
        raise ValueError(f"{name} lacks tensors: {', '.join(missing[:3])}{', ...' if missing[3:] else ''}.")


def chunks(documents: Iterable[NamedDocument]) -> Iterator[list[NamedDocument]]:
    """Groups documents into chunks of up to `MAX_DOCUMENTS` documents and `MAX_CHARACTERS` characters."""
    chunk: list[NamedDocument] = []
    characters = 0
    for document in documents:
        characters += document.characters
        if chunk and (len(chunk) == MAX_DOCUMENTS or characters > MAX_CHARACTERS):
            yield chunk
            chunk, characters = [], document.characters
        chunk.append(document)
    if chunk:
        yield chunk


def is_for_one_pair(model: PreTrainedModel, processor: Any) -> bool:
    """Returns whether the model was trained only on documents in the languages of its processor."""
    return bool(processor.tgt_lang) and getattr(model.config, "has_global_attention", False)


def for_languages(model: PreTrainedModel, processor: Any, src_lang: str | None, tgt_lang: str | None) -> Any:
    """
    Returns the processor for these languages. Warns if the model was trained on documents in other languages.

    Raises:
        ValueError: the tokenizer lacks a language, or the model was trained for one pair and its decoder reads no
            target language.
    """
    other = processor.for_languages(src_lang, tgt_lang)
    pair, own = (other.src_lang, other.tgt_lang), (processor.src_lang, processor.tgt_lang)
    if pair != own and None not in own and is_for_one_pair(model, processor):
        message = f"{model.name_or_path} translates documents from {own[0]} into {own[1]}"
        if model.config.template.language_setting == "eos_token_id":
            raise ValueError(f"{message} only, not from {pair[0]} into {pair[1]}.")
        logger.warning(f"{message}; it was not trained on documents from {pair[0]} into {pair[1]}.")
    return other


def _with_logged_warnings(result: dict[str, Any]) -> dict[str, Any]:
    for warning in result["warnings"]:
        logger.warning(warning)
    return result


class DocumentTranslationPipeline(PublishMixin, Pipeline):
    """
    Translates documents of any length, aligned sentence by sentence. The pipeline cuts a document of `segment_tokens`
    tokens or more between sentences into segments, and translates each segment separately.

    The input is a document (a list of sentences, a text or the content of a file) or a list of documents (lists of
    sentences). A list of strings is always one document. The pipeline copies sentences without words, such as numbers
    and addresses. It returns a dictionary per document:

    - `translation_text`: the translation. A text or file keeps everything but its sentences; a list becomes one
      sentence per line.
    - `sentences`: `source_text` and `translation_text` of each sentence, in order. `confidence=True` adds
      `confidence`, the mean log-probability of its tokens in nats. `word_alignment=True` adds `alignment`: a row per
      word of the translation, with the weights of the words of the source. Both are `None` for copied sentences.
    - `segments`: number of sentences in each segment that the model translated as one input, without copied sentences.
    - `alternatives`, with `alternatives=n`: up to `n` other translations of a text or list. The i-th consists of the
      i-th hypothesis of every segment.
    - `warnings`: messages with the place of their sentence; a call also logs them.

    The model is a G-Transformer or a sentence-level model (Opus-MT, NLLB, M2M100, mBART-50, a fine-tuned mBART).
    A sentence-level model ignores document context until it is fine-tuned.

    Translations keep placeholders such as `{name}` and `%s`, addresses, numbers and codes, and contain the terms of
    the glossary. [`with_required`] inserts missing strings by word alignment; a warning lists those without a place.

    Keyword arguments of calls and of the constructor are the fields of [`TranslationOptions`], the arguments of
    `generate`, and:

    - `format`: "text" (default), "wrapped" (hard-wrapped paragraphs), "markdown", "html", "subtitles" (SubRip or
      WebVTT), "ass" (also SSA), "po", "xliff"; "docx", "pptx", "odf" and "epub" take bytes.
    - `name`: the name of the document in warnings, such as its file name.

    `splitter` may also be a function that returns the sentences of a string. The pipeline's `glossary` applies to its
    own languages only; pass another `glossary` to calls for other languages.

    ```python
    >>> translate = pipeline("document-translation", model="path/to/checkpoint")  # doctest: +SKIP
    >>> translate("The cat sleeps.\\nIt is old.", num_beams=5)["translation_text"]  # doctest: +SKIP
    'Die Katze schläft.\\nSie ist alt.'
    ```"""

    # Sentence-level checkpoints contain a tokenizer and no processor.
    _load_processor = None
    _load_tokenizer = False
    _load_feature_extractor = False
    _load_image_processor = False

    def __init__(
        self,
        model: PreTrainedModel,
        *args: Any,
        processor: Any = None,
        tokenizer: PreTrainedTokenizerBase | None = None,
        src_lang: str | None = None,
        tgt_lang: str | None = None,
        **kwargs: Any,
    ):
        _refuse_batch_size(kwargs.get("batch_size"))
        refuse_missing_tensors(model.name_or_path, getattr(model, "missing_tensors", ()))
        is_sentence_level = model.config.model_type != "gtransformer"
        model = from_sentence_level_model(model) if is_sentence_level else model
        if processor is None:
            processor = load_processor(model, tokenizer)
        super().__init__(model, *args, processor=for_languages(model, processor, src_lang, tgt_lang), **kwargs)
        if self.device.type == "cpu" and model.dtype == torch.float16:
            logger.warning("The weights are float16, which is slow on a CPU: pass dtype=torch.float32.")
        if is_sentence_level or src_lang or tgt_lang:
            # Pipelines for other languages may share this model, so its generation config is not changed.
            self._forward_params["processor"] = self.processor

    def save_pretrained(self, save_directory: str | os.PathLike, **kwargs: Any) -> None:
        """Saves model and processor with their code, like `push_to_hub`."""
        if "processor" in self._forward_params and self.processor.tgt_lang:
            self.processor.configure(self.model)
        with with_code(*self._parts()):
            for part in self._parts():
                part.save_pretrained(save_directory, **kwargs)

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """Codes of the source and target languages, such as "en" and "de"; `None` if the processor has no language."""
        return language_code(self.processor.src_lang), language_code(self.processor.tgt_lang)

    def translates_between(self, src_lang: str | None, tgt_lang: str | None) -> bool:
        """Returns whether these are the pipeline's own languages; `None` stands for its own."""
        other = self.processor.for_languages(src_lang, tgt_lang)
        return (other.src_lang, other.tgt_lang) == (self.processor.src_lang, self.processor.tgt_lang)

    def _parts(self) -> list[Any]:
        return [self.model, self.processor]

    def _loaded_from(self) -> str:
        return self.model.name_or_path

    def _sanitize_parameters(
        self,
        src_lang: str | None = None,
        tgt_lang: str | None = None,
        glossary: Mapping[str, str] | None = None,
        **options: Any,
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        known = {field.name for field in fields(TranslationOptions)}
        own = {*known, *OF_PREPARATION}
        options = {name: value for name, value in options.items() if value is not None or name not in own}
        TranslationOptions(**{name: options[name] for name in known & options.keys()})
        shown = {name: options[name] for name in OF_RESULT if name in options}
        preparation = {name: options.pop(name) for name in OF_PREPARATION if name in options}
        format, splitter = preparation.get("format", "text"), preparation.get("splitter")
        if format != "text" and format not in (formats := _formats().FILE_FORMATS):
            raise ValueError(f"format must be one of text, {', '.join(formats)}, not {format!r}.")
        if isinstance(splitter, str) and splitter not in ("line", "sentencex"):
            raise ValueError(f"splitter must be 'line', 'sentencex' or a function, not {splitter!r}.")
        if src_lang or tgt_lang:
            options["processor"] = for_languages(self.model, self.processor, src_lang, tgt_lang)
            preparation["processor"] = options["processor"]
            if not self.translates_between(src_lang, tgt_lang):
                preparation["terminology"] = Terminology()
        if glossary is not None:
            preparation["terminology"] = Terminology(glossary)
        return preparation, options, shown

    def __call__(self, documents: Any, batch_size: int | None = None, **kwargs: Any):
        """
        Translates one document (a string or a list of sentences) or several (a list of lists, an iterator, or a
        column of the package datasets).

        Raises:
            ValueError: the input has another type, or an option is out of bounds.
        """
        _refuse_batch_size(batch_size)
        if isinstance(documents, list) and all(isinstance(sentence, str) for sentence in documents):
            return super().__call__([documents], **kwargs)[0]
        if isinstance(documents, Sequence) and not isinstance(documents, str | bytes | tuple):
            kwargs.pop("num_workers", None)  # for datasets only
            for document in documents:
                refuse_other_than_document(document)
            named = (NamedDocument(f"Document {number}", document) for number, document in enumerate(documents, 1))
            return list(self.translate_all(named, **kwargs))
        if isinstance(documents, Iterator):
            return super().__call__((document for document in documents), **kwargs)
        if not isinstance(documents, (str, bytes, Dataset)):
            raise ValueError(
                "A document is a string or a list of strings. Several are a list of lists, an iterator or a Dataset "
                f"of PyTorch, not a {type(documents).__name__}: try a list of its items."
            )
        return super().__call__(documents, **kwargs)

    def translate_all(self, documents: Iterable[NamedDocument], **kwargs: Any) -> Iterator[dict[str, Any]]:
        """Yields the result of each document, in order. Reads documents in chunks, which share batches."""
        for chunk in chunks(documents):
            prepared = [self.prepare(document, **kwargs) for document in chunk]
            for result in result_of(self.translate_in_steps(prepared, **kwargs)):
                yield _with_logged_warnings(result)

    def prepare(self, document: NamedDocument, **kwargs: Any) -> PreparedDocument:
        """Splits a document into sentences, for `translate_in_steps`."""
        preparation, _, _ = self._sanitize_parameters(**kwargs)
        preparation = {**self._preprocess_params, "name": document.name, **preparation}
        return self.preprocess(document.document, places=document.places, **preparation)

    def translate_in_steps(
        self, prepared: Sequence[PreparedDocument], **kwargs: Any
    ) -> Generator[int, None, list[dict[str, Any]]]:
        """
        Translates prepared documents, a batch of segments per step. Does not log warnings.

        Yields:
            Number of sentences that begin in the batch.

        Returns:
            The result of each document.
        """
        _, options, shown = self._sanitize_parameters(**kwargs)
        outputs = yield from self._steps(prepared, **{**self._forward_params, **options})
        return [self._result(*output, **{**self._postprocess_params, **shown}) for output in outputs]

    def stream(self, document: str | bytes | list[str], **kwargs: Any) -> Generator[dict[str, str], None, dict]:
        """
        Yields `source_text` and `translation_text` of each sentence in order, as soon as they are final: with greedy
        search and sampling at the end of the sentence, with beam search once all beams agree on it, with parallel
        decoding at the end of the segment. The generator returns the result of a call. If you close it early, the
        model stops after its next sentence.

        ```python
        >>> for sentence in translate.stream("The cat sleeps.\\nIt is old."):  # doctest: +SKIP
        ...     print(sentence["translation_text"])
        ```"""
        preparation, options, shown = self._sanitize_parameters(**kwargs)
        prepared = self.preprocess(document, **{**self._preprocess_params, **preparation})
        return self._stream(prepared, {**self._forward_params, **options}, {**self._postprocess_params, **shown})

    def _stream(
        self, prepared: PreparedDocument, options: dict[str, Any], shown: dict[str, Any]
    ) -> Generator[dict[str, str], None, dict[str, Any]]:
        events: Queue[Any] = Queue()
        abandoned = Event()

        def on_sentence(sentence: TranslatedSentence) -> None:
            if abandoned.is_set():
                raise GeneratorExit
            events.put(sentence)

        def work() -> None:
            try:
                output = self.forward(prepared, **options, on_sentence=on_sentence)
                events.put(self.postprocess(output, **shown))
            except BaseException as error:
                events.put(error)

        Thread(target=work, daemon=True).start()
        try:
            while isinstance(event := events.get(), TranslatedSentence):
                yield {"source_text": event.source.text, "translation_text": event.text}
        finally:
            abandoned.set()
        if isinstance(event, BaseException):
            raise event
        return event

    def export_pairs(self, sentences: Sequence[dict[str, Any]], format: str) -> str:
        """Formats the `sentences` of a call as "jsonl", "tsv" or "tmx", without word alignments.

        Raises:
            ValueError: the format is another one.
        """
        if format not in (formats := _formats().ALIGNED_FORMATS):
            raise ValueError(f"format must be one of {', '.join(formats)}, not {format!r}.")
        pairs = [{name: value for name, value in pair.items() if name != "alignment"} for pair in sentences]
        return formats[format](pairs, self.processor.src_lang, self.processor.tgt_lang)

    def preprocess(
        self,
        document: str | bytes | list[str],
        terminology: Terminology | None = None,
        keep_placeholders: bool = True,
        word_alignment: bool = False,
        name: str = "Document 1",
        places: Sequence[str] | None = None,
        **options: Any,
    ) -> PreparedDocument:
        """Splits a document into sentences, and lists the strings that their translations must contain."""
        file = self._split(document, **options)
        texts, terminology = file.sentences, terminology or Terminology()
        protected = getattr(file, "protected", None) or [[]] * len(texts)
        styled = getattr(file, "styled", None) or [False] * len(texts)
        has_words = is_translatable if keep_placeholders and isinstance(file, SplitText) else str.strip
        sentences = []
        for number, text in enumerate(texts):
            is_translated, own = bool(has_words(text)), protected[number]
            required = terminology.required(text, keep_placeholders, own) if is_translated else []
            # Protected code may also be a placeholder.
            required = [*(Counter[str](required) | Counter[str](own)).elements()] if own else required
            place = places[number] if places else f"{name}, sentence {number + 1}"
            aligned = word_alignment or styled[number]
            terms = terminology.terms(text, keep_placeholders, own) if is_translated else {}
            sentences.append(Sentence(text, place, is_translated, required, terms, is_translated and aligned))
        rest = iter(sentences)
        sizes = getattr(file, "document_sizes", [len(sentences)])
        return PreparedDocument([[*islice(rest, size)] for size in sizes], file)

    def _split(
        self,
        document: str | bytes | list[str],
        format: str = "text",
        splitter: Splitter | str | None = None,
        processor: Any = None,
        mark_fuzzy: bool = False,
        bilingual: bool = False,
    ) -> Any:
        """Splits a document into sentences. A list becomes a text with a sentence per line."""
        refuse_other_than_document(document)
        if isinstance(document, list):
            if format != "text":
                raise ValueError(f"The format {format!r} takes a string, not a list of sentences.")
            if bilingual:
                raise ValueError("bilingual takes a string, not a list of sentences.")
            separators = ["", *["\n"] * len(document)]
            separators[-1] = ""
            return SplitText(list(document), separators)
        processor = processor or self.processor
        splitter = splitter or ("line" if format == "text" else "sentencex")
        if isinstance(splitter, str):
            splitter = None if splitter == "line" else sentencex_splitter(processor.src_lang)
        if format != "text":
            return _formats().SplitFile(document, format, splitter, processor.tgt_lang, mark_fuzzy, bilingual)
        if isinstance(document, bytes):
            raise ValueError("The format 'text' takes a string, not bytes.")
        text = split_text(document, splitter)
        return BilingualText(text.sentences, text.separators) if bilingual else text

    def _forward(self, model_inputs: PreparedDocument, **options: Any) -> tuple[PreparedDocument, TranslatedDocument]:
        [output] = result_of(self._steps([model_inputs], **options))
        return output

    def _steps(
        self, prepared: Sequence[PreparedDocument], processor: Any = None, **options: Any
    ) -> Generator[int, None, list[tuple[PreparedDocument, TranslatedDocument]]]:
        """Translates all documents, and joins those of each file. `processor` is set for other languages."""
        if processor is not None:
            options = {**processor.generation_settings(self.model), **options}
        documents = [document for each in prepared for document in each.documents]
        translated = yield from translate_in_steps(self.model, processor or self.processor, documents, **options)
        rest = iter(translated)
        return [(each, TranslatedDocument.joined([*islice(rest, len(each.documents))])) for each in prepared]

    def postprocess(self, model_outputs: tuple[PreparedDocument, TranslatedDocument], **shown: Any) -> dict[str, Any]:
        """Makes the result of a document, and logs its warnings."""
        return _with_logged_warnings(self._result(*model_outputs, **shown))

    @staticmethod
    def _result(
        prepared: PreparedDocument,
        translated: TranslatedDocument,
        confidence: bool = False,
        word_alignment: bool = False,
        alternatives: int = 0,
    ) -> dict[str, Any]:
        pairs: list[dict[str, Any]] = []
        for sentence in translated.sentences:
            pairs.append({"source_text": sentence.source.text, "translation_text": sentence.text})
            pairs[-1] |= {"confidence": sentence.confidence} if confidence else {}
            pairs[-1] |= {"alignment": sentence.alignment} if word_alignment else {}
        file, texts = prepared.file, translated.texts
        if any(getattr(file, "styled", ())):
            text = file.rejoin(texts, [sentence.alignment for sentence in translated.sentences])
        else:
            text = file.rejoin(texts)
        unused = [translated.sentences[number].source.place for number in getattr(file, "untranslated", ())]
        result = {
            "translation_text": text,
            "sentences": pairs,
            "segments": translated.segments,
            "warnings": translated.warnings + [f"{place}: {OTHER_PLACEHOLDERS}" for place in unused],
        }
        if alternatives:
            by_sentence = [
                sentence.alternatives or [sentence.text] * alternatives for sentence in translated.sentences
            ]
            others = zip(*by_sentence, strict=True)
            # Formatted files need word alignment, which alternatives lack.
            known = map(file.rejoin, others) if isinstance(file, SplitText) else []
            result["alternatives"] = [other for other in dict.fromkeys(known) if other != text]
        return result


PIPELINES["document-translation"] = DocumentTranslationPipeline
