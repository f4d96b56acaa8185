"""`pipeline("document-translation")`: a document in, the same sentences out, translated in each other's context."""

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

from torch.utils.data import Dataset
from transformers import Pipeline, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from .document_translation import result_of, translate_in_steps
from .hub import PublishMixin, brought_along, with_code
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

# Documents and characters that are prepared at a time, to be translated in large batches; a document may be longer.
MAX_DOCUMENTS, MAX_CHARACTERS = 256, 200_000
# Options that decide how a document is taken apart; `translate_in_steps` takes the rest.
OF_PREPARATION = ("format", "splitter", "mark_fuzzy", "bilingual", "keep_placeholders", "word_alignment", "name")


def _formats() -> ModuleType:
    """
    Returns the package that reads and writes files, which does not travel with a checkpoint.

    Raises:
        ImportError: only the code of a checkpoint is available.
    """
    try:
        from modeling_gtransformer import files
    except ImportError as error:
        raise ImportError(
            "A checkpoint translates plain text and lists of sentences; other formats need the whole package: "
            "pip install 'gtransformer-hf[files]'"
        ) from error
    return files


class NamedDocument(NamedTuple):
    """A document with its name in warnings and, if they are known, the places of its sentences."""

    name: str
    document: str | bytes | list[str]
    places: Sequence[str] | None = None

    @property
    def characters(self) -> int:
        return len(self.document) if isinstance(self.document, str | bytes) else sum(map(len, self.document))


@dataclass(frozen=True)
class PreparedDocument:
    """
    A text, list or file that is ready to be translated.

    Attributes:
        documents: its sentences; a file may hold several documents, which are translated independently.
        file: puts translations in the place of the sentences; `None` for a list.
    """

    documents: list[list[Sentence]]
    file: Any = None

    @property
    def sentences(self) -> list[Sentence]:
        return [sentence for document in self.documents for sentence in document]


def refuse_other_than_document(document: Any) -> None:
    """
    Refuses what is not a document.

    Raises:
        ValueError: it is neither text nor a list of sentences.
    """
    is_list = isinstance(document, list) and all(isinstance(sentence, str) for sentence in document)
    if not (is_list or isinstance(document, (str, bytes))):
        raise ValueError(f"A document is a string or a list of strings, not {reprlib.repr(document)}.")


def _refuse_batch_size(batch_size: int | None) -> None:
    if (batch_size or 1) > 1:
        raise ValueError("Batches are made of segments, by number of tokens: use max_tokens, not batch_size.")


def refuse_missing_tensors(name: str, missing: Sequence[str]) -> None:
    """
    Refuses a checkpoint with random weights.

    Raises:
        ValueError: names tensors that the checkpoint lacks.
    """
    if missing:
        raise ValueError(f"{name} lacks tensors: {', '.join(missing[:3])}{', ...' if missing[3:] else ''}.")


def chunks(documents: Iterable[NamedDocument]) -> Iterator[list[NamedDocument]]:
    """Yields lists of documents that are prepared together."""
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
    """Returns whether a model was trained on documents in the languages of its processor only."""
    return bool(processor.tgt_lang) and getattr(model.config, "has_global_attention", False)


def for_languages(model: PreTrainedModel, processor: Any, src_lang: str | None, tgt_lang: str | None) -> Any:
    """
    The processor for these languages. Warns if the model was trained on documents in other languages.

    Raises:
        ValueError: the tokenizer does not know a language, or the decoder of a model for one pair has no way to be
            told another one.
    """
    other = processor.for_languages(src_lang, tgt_lang)
    pair, own = (other.src_lang, other.tgt_lang), (processor.src_lang, processor.tgt_lang)
    if pair != own and None not in own and is_for_one_pair(model, processor):
        message = f"{model.name_or_path} translates documents from {own[0]} into {own[1]}"
        if model.config.template.language_setting == "eos_token_id":
            raise ValueError(f"{message} only, not from {pair[0]} into {pair[1]}.")
        logger.warning(f"{message}; it was not trained on documents from {pair[0]} into {pair[1]}.")
    return other


@brought_along("document-translation")
class DocumentTranslationPipeline(PublishMixin, Pipeline):
    """
    Translates documents of any length, aligned sentence by sentence: a document of `segment_tokens` tokens or more is
    cut between sentences into segments that are translated separately.

    The input is a document (a list of sentences, a text or the content of a file) or a list of documents (lists of
    sentences). A list of strings is always one document. Sentences without words, blank or only with numbers and
    addresses, are copied. Each document gives a dictionary:

    - `translation_text`: the translation. In a text or file, everything but the sentences stays unchanged; for a list,
      there is one sentence per line.
    - `sentences`: for each sentence of the document, in order, `source_text` and `translation_text`; with
      `confidence=True`, `confidence`, the mean log-probability of its tokens in nats; with `word_alignment=True`,
      `alignment`, for each word of the translation the weights of the words of the source. Both are `None` for copied
      sentences.
    - `segments`: the number of sentences in each segment that the model translated as one input, without copied ones.
    - `alternatives`, with `alternatives=n`: up to `n` other translations of the whole document, for texts and lists;
      the i-th has the i-th hypothesis of every segment.
    - `warnings`: messages that name the sentence; a call also logs them.

    The model is a G-Transformer, or a sentence-level translator (Opus-MT, NLLB, M2M100, mBART-50, a fine-tuned mBART),
    which translates every sentence of a document without context until it is fine-tuned.

    Placeholders such as `{name}` and `%s`, addresses, numbers and codes are preserved, and the terms of a glossary are
    enforced: a missing string replaces the words aligned with its source ([`with_required`]). If there are none, a
    warning names it.

    Keyword arguments, here or when the pipeline is made, are the fields of [`TranslationOptions`], the arguments of
    `generate`, and:

    - `format`: "text" (default), "wrapped" (text whose lines make up paragraphs), "markdown", "html", "subtitles"
      (SubRip or WebVTT), "ass" (also SSA), "po", "xliff"; "docx", "pptx", "odf" and "epub" take bytes.
    - `name`: the name of the document in warnings, such as that of its file.

    `splitter` may also be a function that returns the sentences of a string. The pipeline's `glossary` applies to its
    own languages only: calls for other languages take another `glossary`, or none.

    ```python
    >>> translate = pipeline("document-translation", model="path/to/checkpoint")  # doctest: +SKIP
    >>> translate("The cat sleeps.\\nIt is old.", num_beams=5)["translation_text"]  # doctest: +SKIP
    'Die Katze schläft.\\nSie ist alt.'
    ```"""

    # Optional, as Transformers finds only a tokenizer beside a sentence-level checkpoint.
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
        if is_sentence_level or src_lang or tgt_lang:
            # Another pipeline may use the same model for other languages.
            self._forward_params["processor"] = self.processor

    def save_pretrained(self, save_directory: str | os.PathLike, **kwargs: Any) -> None:
        """Saves model and processor with their code, as `push_to_hub` uploads them."""
        if "processor" in self._forward_params and self.processor.tgt_lang:
            self.processor.configure(self.model)
        with with_code(*self._parts()):
            for part in self._parts():
                part.save_pretrained(save_directory, **kwargs)

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """Codes of the source and the target language, such as "en" and "de"; `None` where the processor has none."""
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
        TranslationOptions(**{name: value for name, value in options.items() if name in known})
        names = ("confidence", "word_alignment", "alternatives")
        shown = {name: options[name] for name in names if options.get(name) is not None}
        preparation = {name: options.pop(name) for name in OF_PREPARATION if options.get(name) is not None}
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
        return preparation, {name: value for name, value in options.items() if name not in OF_PREPARATION}, shown

    def __call__(self, documents: Any, batch_size: int | None = None, **kwargs: Any):
        """Translates one document (a string or a list of sentences) or several (a list of lists, an iterator, or a
        column of the package datasets).

        Raises:
            ValueError: the input is of another type, or an option is out of bounds.
        """
        _refuse_batch_size(batch_size)
        if isinstance(documents, list) and all(isinstance(sentence, str) for sentence in documents):
            return super().__call__([documents], **kwargs)[0]
        if isinstance(documents, Sequence) and not isinstance(documents, str | bytes | tuple):
            kwargs.pop("num_workers", None)  # workers read only datasets
            for document in documents:
                refuse_other_than_document(document)
            named = (NamedDocument(f"Document {number}", document) for number, document in enumerate(documents, 1))
            return list(self.translate_all(named, **kwargs))
        if isinstance(documents, Iterator):
            return super().__call__((document for document in documents), **kwargs)
        if not isinstance(documents, (str, bytes, Dataset)):
            raise ValueError(
                "A document is a string or a list of strings; several are a list of lists, an iterator or a Dataset "
                f"of PyTorch, not a {type(documents).__name__}: try a list of its items."
            )
        return super().__call__(documents, **kwargs)

    def translate_all(self, documents: Iterable[NamedDocument], **kwargs: Any) -> Iterator[dict[str, Any]]:
        """Yields the result of each document, in order. They are read as needed, and translated in shared batches."""
        _, options, shown = self._sanitize_parameters(**kwargs)
        for chunk in chunks(documents):
            prepared = [self.prepare(document, **kwargs) for document in chunk]
            for output in self.forward(prepared, **{**self._forward_params, **options}):
                yield self.postprocess(output, **{**self._postprocess_params, **shown})

    def prepare(self, document: NamedDocument, **kwargs: Any) -> PreparedDocument:
        """Takes a document apart into its sentences, for `translate_in_steps`."""
        preparation, _, _ = self._sanitize_parameters(**kwargs)
        preparation = {**self._preprocess_params, "name": document.name, **preparation}
        return self.preprocess(document.document, places=document.places, **preparation)

    def translate_in_steps(
        self, prepared: Sequence[PreparedDocument], **kwargs: Any
    ) -> Generator[int, None, list[dict[str, Any]]]:
        """
        Translates prepared documents, a batch of segments per step, without logging their warnings.

        Yields:
            The number of sentences that the step has begun.

        Returns:
            The result of each document.
        """
        _, options, shown = self._sanitize_parameters(**kwargs)
        outputs = yield from self._steps(prepared, **{**self._forward_params, **options})
        return [self._result(*output, **{**self._postprocess_params, **shown}) for output in outputs]

    def stream(self, document: str | bytes | list[str], **kwargs: Any) -> Generator[dict[str, str], None, dict]:
        """
        Yields the sentences of a document in order, each as soon as it is certain: `source_text` and
        `translation_text`. With greedy search and sampling, a sentence is certain when it ends; with beams, when all
        of them agree on it; sentences that are decoded in parallel come a segment at a time. The generator returns
        what a call returns. If it is closed early, the model stops after its next sentence.

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
                [output] = self.forward([prepared], **options, on_sentence=on_sentence)
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
        """Returns the `sentences` of a call as the content of a file in the format "jsonl", "tsv" or "tmx"."""
        return _formats().ALIGNED_FORMATS[format](sentences, self.processor.src_lang, self.processor.tgt_lang)

    def preprocess(
        self,
        document: str | bytes | list[str],
        format: str = "text",
        splitter: Splitter | str | None = None,
        processor: Any = None,
        mark_fuzzy: bool = False,
        bilingual: bool = False,
        terminology: Terminology | None = None,
        keep_placeholders: bool = True,
        word_alignment: bool = False,
        name: str = "Document 1",
        places: Sequence[str] | None = None,
    ) -> PreparedDocument:
        """Takes a document apart into its sentences, and finds what their translations must contain."""
        file, texts, sizes = self._taken_apart(document, format, splitter, processor, mark_fuzzy, bilingual)
        terminology = terminology or Terminology()
        protected = getattr(file, "protected", None) or [[]] * len(texts)
        styled = getattr(file, "styled", None) or [False] * len(texts)
        has_words = is_translatable if keep_placeholders and file is None else str.strip
        sentences = []
        for number, text in enumerate(texts):
            is_translated, own = bool(has_words(text)), protected[number]
            required = terminology.required(text, keep_placeholders, own) if is_translated else []
            # Protected code may also be a placeholder; it is then required only once.
            required = _union(required, own) if own else required
            place = places[number] if places else f"{name}, sentence {number + 1}"
            aligned = word_alignment or styled[number]
            terms = terminology.terms(text) if is_translated else {}
            sentences.append(Sentence(text, place, is_translated, required, terms, is_translated and aligned))
        rest = iter(sentences)
        return PreparedDocument([[*islice(rest, size)] for size in sizes], file)

    def _taken_apart(
        self,
        document: str | bytes | list[str],
        format: str,
        splitter: Splitter | str | None,
        processor: Any,
        mark_fuzzy: bool,
        bilingual: bool,
    ) -> tuple[Any, list[str], list[int]]:
        """The file that takes the translations, the sentences, and their number in each document of the file."""
        refuse_other_than_document(document)
        if isinstance(document, list):
            if format != "text":
                raise ValueError(f"A list of sentences has no format such as {format!r}: pass a string.")
            if bilingual:
                raise ValueError("A list of sentences has no place for source and translation: pass a string.")
            return None, list(document), [len(document)]
        processor = processor or self.processor
        splitter = splitter or ("line" if format == "text" else "sentencex")
        if isinstance(splitter, str):
            splitter = None if splitter == "line" else sentencex_splitter(processor.src_lang)
        if format != "text":
            file = _formats().SplitFile(document, format, splitter, processor.tgt_lang, mark_fuzzy, bilingual)
            return file, file.sentences, file.document_sizes
        if isinstance(document, bytes):
            raise ValueError("the format 'text' takes a string")
        text = split_text(document, splitter)
        text = BilingualText(text.sentences, text.separators) if bilingual else text
        return text, text.sentences, [len(text.sentences)]

    def _forward(self, model_inputs: PreparedDocument | list[PreparedDocument], **options: Any) -> Any:
        """Translates a prepared document, or a list of them: each with its translation."""
        prepared = model_inputs if isinstance(model_inputs, list) else [model_inputs]
        outputs = result_of(self._steps(prepared, **options))
        return outputs if isinstance(model_inputs, list) else outputs[0]

    def _steps(
        self, prepared: Sequence[PreparedDocument], processor: Any = None, **options: Any
    ) -> Generator[int, None, list[tuple[PreparedDocument, TranslatedDocument]]]:
        """Translates the documents of each file, which become one. The processor is that of other languages."""
        if processor is not None:
            options = {**processor.generation_settings(self.model), **options}
        documents = [document for each in prepared for document in each.documents]
        translated = yield from translate_in_steps(self.model, processor or self.processor, documents, **options)
        rest = iter(translated)
        return [(each, TranslatedDocument.joined([*islice(rest, len(each.documents))])) for each in prepared]

    def postprocess(self, model_outputs: tuple[PreparedDocument, TranslatedDocument], **shown: Any) -> dict[str, Any]:
        """The result of a document, whose warnings are logged."""
        prepared, translated = model_outputs
        result = self._result(prepared, translated, **shown)
        for warning in result["warnings"]:
            logger.warning(warning)
        return result

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
        if file is None:
            text = "\n".join(texts)
        elif any(getattr(file, "styled", ())):
            text = file.rejoin(texts, [sentence.alignment for sentence in translated.sentences])
        else:
            text = file.rejoin(texts)
        result = {
            "translation_text": text,
            "sentences": pairs,
            "segments": translated.segments,
            "warnings": translated.warnings,
        }
        if alternatives:
            by_sentence = [
                sentence.alternatives or [sentence.text] * alternatives for sentence in translated.sentences
            ]
            others = zip(*by_sentence, strict=True)
            rejoin = "\n".join if file is None else file.rejoin
            # Other files may need the alignment of words, which only the translation has.
            known = map(rejoin, others) if file is None or isinstance(file, SplitText) else []
            result["alternatives"] = [other for other in dict.fromkeys(known) if other != text]
        return result


def _union(required: Sequence[str], own: Sequence[str]) -> list[str]:
    """Strings of both lists, each as often as in the list that has it more often."""
    counts: Counter[str] = Counter(required)
    counts |= Counter(own)
    return list(counts.elements())
