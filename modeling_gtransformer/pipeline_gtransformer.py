"""`pipeline("document-translation")`: a document in, the same sentences out, translated in each other's context."""

import os
import reprlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice
from queue import Queue
from threading import Event, Thread
from types import ModuleType
from typing import Any, NamedTuple

from torch.utils.data import Dataset
from transformers import Pipeline, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from .document_translation import TranslatedDocument, translate_documents
from .hub import PublishMixin, brought_along, with_code
from .plain_text import BilingualText, Splitter, is_translatable, language_code, sentencex_splitter, split_text
from .segment_plan import name_sentences
from .sentence_level_models import from_sentence_level_model, load_processor
from .terminology import Terminology


logger = logging.get_logger(__name__)


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


# How much is prepared at a time, to be translated in large batches; a single document may be longer.
MAX_DOCUMENTS, MAX_CHARACTERS = 256, 200_000


class NamedDocument(NamedTuple):
    """A document with its name in warnings and, if they are known, the places of its sentences."""

    name: str
    document: str | bytes | list[str]
    places: list[str] | None = None

    @property
    def characters(self) -> int:
        return len(self.document) if isinstance(self.document, str | bytes) else sum(map(len, self.document))


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


def asked_sentences(document: Mapping[str, Any], keep_placeholders: bool = True) -> list[bool]:
    """Tells which sentences of a prepared document are translated; in a list of sentences, those with words."""
    has_words = is_translatable if keep_placeholders and document["file"] is None else str.strip
    return [bool(has_words(sentence)) for sentence in document["sentences"]]


def knows_one_pair(model: PreTrainedModel, processor: Any) -> bool:
    """Tells whether a model was trained on documents in the languages of its processor, and knows no others."""
    return bool(processor.tgt_lang) and getattr(model.config, "has_global_attention", False)


def for_languages(model: PreTrainedModel, processor: Any, src_lang: str | None, tgt_lang: str | None) -> Any:
    """The processor for these languages. Warns if the model was trained on documents in its own languages and has not
    learnt these."""
    other = processor.for_languages(src_lang, tgt_lang)
    pair, own = (other.src_lang, other.tgt_lang), (processor.src_lang, processor.tgt_lang)
    if pair != own and None not in own and knows_one_pair(model, processor):
        logger.warning(
            f"{model.name_or_path} has learnt to translate documents from {own[0]} into {own[1]}, not from {pair[0]} "
            f"into {pair[1]}."
        )
    return other


@brought_along("document-translation")
class DocumentTranslationPipeline(PublishMixin, Pipeline):
    """
    Translates documents of any length, aligned sentence by sentence: a document of `segment_tokens` tokens or more is
    cut at sentence borders into segments that are translated separately.

    Inputs are a document as a list of sentences, as text or as the content of a file, or a list of documents (lists of
    sentences). A list of strings is always one document. A sentence that is blank, or has no words but numbers and
    addresses, stays as it is. Each document gives a dictionary:

    - `translation_text`: the translation. In a text or file, everything but the sentences is as it was; for a list,
      there is one sentence per line.
    - `sentences`: for each sentence of the document, in order, `source_text` and `translation_text` and, with
      `confidence=True`, `confidence`, the mean log-probability of its tokens in nats.
    - `segments`: the number of sentences in each segment that the model translated as one input; sentences that stay
      as they are do not count.

    The model is a G-Transformer, or a sentence-level translator (Opus-MT, NLLB, M2M100, mBART-50, a fine-tuned mBART),
    which translates every sentence of a document without context, as if it stood alone, until it is fine-tuned.

    Placeholders such as `{name}` and `%s` and addresses stay as they are: a segment that has lost one is translated
    again under constraint, and a warning names what is still missing.

    Keyword arguments, here or when the pipeline is made:

    - `src_lang`, `tgt_lang`: languages, if the model knows several; by default those of the processor.
    - `format`: "text" (default), "wrapped" (text whose lines make up paragraphs), "markdown", "html", "subtitles"
      (SubRip or WebVTT), "ass" (also SSA), "po", "xliff"; "docx", "pptx" and "epub" take bytes.
    - `splitter`: finds the sentences of a paragraph: "sentencex" uses that package, for the processor's source
      language; "line", the default for text, takes every line or paragraph as one; or a function that returns the
      sentences of a string.
    - `mark_fuzzy`: whether to mark new translations of a "po" or "xliff" file for review.
    - `bilingual`: whether to leave the source in place and put the translation after every paragraph, marked as such;
      for "text", "html", "docx" and "epub".
    - `glossary`: a dictionary of terms and the translations that they must have. That of the pipeline is for its own
      languages: a call for other languages has its own glossary, or none.
    - `keep_placeholders` (True): whether translations must contain the placeholders of their sources, and sentences
      without words stay as they are.
    - `segment_tokens` (512, as in the paper, or the model's positions), `max_tokens` (the source tokens in a batch of
      segments: 16384 divided by the number of beams, but at least 4096), `segment_sentences` (1 for a model that was
      trained on single sentences), `carried_sentences` (0: how many of a segment's last sentences the next one repeats
      at its start, with their translations), `confidence`, and the arguments of `generate`, among them `num_beams` and
      `parallel_sentences`.
    - `name`: the name of the document in warnings, such as that of its file.

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
        """Tells whether these are the pipeline's own languages; `None` stands for its own."""
        other = self.processor.for_languages(src_lang, tgt_lang)
        return (other.src_lang, other.tgt_lang) == (self.processor.src_lang, self.processor.tgt_lang)

    def _parts(self) -> list[Any]:
        return [self.model, self.processor]

    def _loaded_from(self) -> str:
        return self.model.name_or_path

    def _sanitize_parameters(
        self,
        format: str | None = None,
        splitter: Splitter | str | None = None,
        glossary: Mapping[str, str] | None = None,
        src_lang: str | None = None,
        tgt_lang: str | None = None,
        mark_fuzzy: bool | None = None,
        bilingual: bool | None = None,
        **translate_kwargs: Any,
    ):
        switches = {"mark_fuzzy": mark_fuzzy, "bilingual": bilingual}
        preprocess_kwargs: dict[str, Any] = {name: value for name, value in switches.items() if value is not None}
        if src_lang or tgt_lang:
            translate_kwargs["processor"] = for_languages(self.model, self.processor, src_lang, tgt_lang)
            preprocess_kwargs["processor"] = translate_kwargs["processor"]
            if not self.translates_between(src_lang, tgt_lang):
                translate_kwargs["terminology"] = Terminology()
        if format is not None:
            if format != "text" and format not in (known := _formats().FILE_FORMATS):
                raise ValueError(f"format must be one of text, {', '.join(known)}, not {format!r}.")
            preprocess_kwargs["format"] = format
        if splitter is not None:
            if isinstance(splitter, str) and splitter not in ("line", "sentencex"):
                raise ValueError(f"splitter must be 'line', 'sentencex' or a function, not {splitter!r}.")
            preprocess_kwargs["splitter"] = splitter
        if glossary is not None:
            translate_kwargs["terminology"] = Terminology(glossary)
        return preprocess_kwargs, translate_kwargs, {}

    def __call__(self, documents: Any, batch_size: int | None = None, **kwargs: Any):
        """Translates one document (a string or a list of sentences) or several (a list of lists, or an iterator)."""
        _refuse_batch_size(batch_size)
        if isinstance(documents, list) and all(isinstance(sentence, str) for sentence in documents):
            return super().__call__([documents], **kwargs)[0]
        if isinstance(documents, list):
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
        """Yields what a call returns for each of the documents, in order. They are read as needed, and translated in
        batches that many of them share."""
        preprocess_kwargs, forward_kwargs, _ = self._sanitize_parameters(**kwargs)
        for chunk in chunks(documents):
            prepared = [self._prepare(document, preprocess_kwargs) for document in chunk]
            yield from self._translate_prepared(prepared, forward_kwargs)

    def prepare(self, document: NamedDocument, **kwargs: Any) -> dict[str, Any]:
        """Prepares a document for `translate_prepared`: takes it apart into its `sentences`."""
        preprocess_kwargs, _, _ = self._sanitize_parameters(**kwargs)
        return self._prepare(document, preprocess_kwargs)

    def translate_prepared(self, documents: Sequence[dict[str, Any]], **kwargs: Any) -> list[dict[str, Any]]:
        """Returns what a call returns for each of the documents, translated in batches that they share. `on_sentence`,
        a keyword argument of [`translate_documents`], is not called for sentences that stay as they are."""
        _, forward_kwargs, _ = self._sanitize_parameters(**kwargs)
        return self._translate_prepared(documents, forward_kwargs)

    def _prepare(self, document: NamedDocument, preprocess_kwargs: dict[str, Any]) -> dict[str, Any]:
        inputs = self.preprocess(document.document, **{**self._preprocess_params, **preprocess_kwargs})
        return {**inputs, "name": document.name, "places": document.places}

    def _translate_prepared(
        self, documents: Sequence[dict[str, Any]], forward_kwargs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        outputs = self.forward({"documents": list(documents)}, **{**self._forward_params, **forward_kwargs})
        return [self.postprocess(output) for output in outputs["documents"]]

    def stream(self, document: str | bytes | list[str], **kwargs: Any) -> Generator[dict[str, str], None, dict]:
        """
        Yields the sentences of a document in order, each as soon as it is certain: `source_text` and
        `translation_text`. With greedy search and sampling, a sentence is certain when it ends; with beams, when all
        of them agree on it; sentences that are decoded side by side, as with `parallel_sentences`, come a segment at a
        time. The generator returns what a call returns. If it is closed early, the model works on until its next
        sentence.

        ```python
        >>> for sentence in translate.stream("The cat sleeps.\\nIt is old."):  # doctest: +SKIP
        ...     print(sentence["translation_text"])
        ```"""
        preprocess_kwargs, forward_kwargs, _ = self._sanitize_parameters(**kwargs)
        inputs = self.preprocess(document, **{**self._preprocess_params, **preprocess_kwargs})
        return self._stream(inputs, {**self._forward_params, **forward_kwargs})

    def _stream(
        self, inputs: dict[str, Any], forward_kwargs: dict[str, Any]
    ) -> Generator[dict[str, str], None, dict[str, Any]]:
        events: Queue[tuple[str, Any]] = Queue()
        abandoned = Event()

        def on_sentence(_: int, number: int, text: str) -> None:
            if abandoned.is_set():
                raise GeneratorExit
            events.put(("sentence", text))

        def work() -> None:
            try:
                outputs = self.forward(inputs, **forward_kwargs, on_sentence=on_sentence)
                events.put(("result", self.postprocess(outputs)))
            except BaseException as error:
                events.put(("error", error))

        Thread(target=work, daemon=True).start()
        is_asked = asked_sentences(inputs, forward_kwargs.get("keep_placeholders", True))
        sentences = zip(inputs["sentences"], is_asked, strict=True)
        try:
            while True:
                kind, event = events.get()
                if kind == "error":
                    raise event
                for source, asked in sentences:
                    yield {"source_text": source, "translation_text": event if asked else source.strip()}
                    if kind == "sentence" and asked:
                        break
                if kind == "result":
                    return event
        finally:
            abandoned.set()

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
    ) -> dict[str, Any]:
        processor = processor or self.processor
        refuse_other_than_document(document)
        if isinstance(document, list):
            if format != "text":
                raise ValueError(f"A list of sentences has no format such as {format!r}: pass a string.")
            if bilingual:
                raise ValueError("A list of sentences has no place for source and translation: pass a string.")
            return {"sentences": list(document), "file": None, "document_sizes": None}
        if splitter is None:
            splitter = "line" if format == "text" else "sentencex"
        if isinstance(splitter, str):
            splitter = None if splitter == "line" else sentencex_splitter(processor.src_lang)
        if format == "text":
            if isinstance(document, bytes):
                raise ValueError("the format 'text' takes a string")
            text = split_text(document, splitter)
            text = BilingualText(text.sentences, text.separators) if bilingual else text
            return {"sentences": text.sentences, "file": text, "document_sizes": None}
        file = _formats().SplitFile(document, format, splitter, processor.tgt_lang, mark_fuzzy, bilingual)
        return {"sentences": file.sentences, "file": file, "document_sizes": file.document_sizes}

    def _forward(
        self,
        model_inputs: dict[str, Any],
        terminology: Terminology | None = None,
        keep_placeholders: bool = True,
        processor: Any = None,
        name: str | None = None,
        **translate_kwargs: Any,
    ) -> dict[str, Any]:
        """Translates what `preprocess` returns for one document, or for several `documents`."""
        if processor is not None:
            translate_kwargs = {**processor.generation_settings(self.model), **translate_kwargs}
        documents = model_inputs.get("documents", [model_inputs])
        asked = [asked_sentences(document, keep_placeholders) for document in documents]
        texts = [list(compress(document["sentences"], own)) for document, own in zip(documents, asked, strict=True)]
        required = [
            _required(document, sentences, terminology or Terminology(), keep_placeholders)
            for document, sentences in zip(documents, texts, strict=True)
        ]
        places = [
            list(
                compress(
                    document.get("places")
                    or name_sentences(document["sentences"], name or document.get("name", "Document 1")),
                    own,
                )
            )
            for document, own in zip(documents, asked, strict=True)
        ]
        sizes = [document["document_sizes"] or [len(own)] for document, own in zip(documents, texts, strict=True)]
        translated = iter(
            translate_documents(
                self.model,
                processor or self.processor,
                _cut(texts, sizes),
                required=_cut(required, sizes),
                places=_cut(places, sizes),
                **translate_kwargs,
            )
        )
        joined = [TranslatedDocument.joined([*islice(translated, len(own))]) for own in sizes]
        alignments = _alignments(self.model, processor or self.processor, documents, joined)
        outputs = [
            {**document, "asked": is_asked, "translated": each, "alignments": own}
            for document, is_asked, each, own in zip(documents, asked, joined, alignments, strict=True)
        ]
        return {"documents": outputs} if "documents" in model_inputs else outputs[0]

    def postprocess(self, model_outputs: dict[str, Any]) -> dict[str, Any]:
        sentences, is_asked, file, translated, alignments = (
            model_outputs[name] for name in ("sentences", "asked", "file", "translated", "alignments")
        )
        translations, confidences = iter(translated.sentences), iter(translated.confidences or [])
        pairs = []
        for sentence, asked in zip(sentences, is_asked, strict=True):
            pairs.append(
                {"source_text": sentence, "translation_text": next(translations) if asked else sentence.strip()}
            )
            if translated.confidences is not None:
                pairs[-1]["confidence"] = next(confidences) if asked else None
        texts = [pair["translation_text"] for pair in pairs]
        if file is None:
            text = "\n".join(texts)
        else:
            text = file.rejoin(texts, alignments) if alignments else file.rejoin(texts)
        return {"translation_text": text, "sentences": pairs, "segments": translated.segments}


def _cut(files: list[list[Any]], sizes: list[list[int]]) -> list[list[Any]]:
    """Cuts lists with an item for every sentence of a file into lists for each of its documents."""
    result = []
    for items, own in zip(files, sizes, strict=True):
        rest = iter(items)
        result += [[*islice(rest, size)] for size in own]
    return result


def _alignments(
    model: PreTrainedModel, processor: Any, documents: list[dict[str, Any]], translated: list[TranslatedDocument]
) -> list[list[Any]]:
    """For each document, the alignments of its sentences that have inline markup between their words, and `None` for
    the others; an empty list for a document without such sentences."""
    found: list[list[Any]] = []
    asked = []
    for document, translations in zip(documents, translated, strict=True):
        styled = getattr(document["file"], "styled", [])
        found.append([None] * len(styled) if any(styled) else [])
        pairs = zip(document["sentences"], translations.sentences, strict=bool(styled))
        asked += [(found[-1], number, pair) for number, pair in enumerate(pairs) if styled and styled[number]]
    if asked:
        alignments = _formats().align_words(model, processor, [pair for *_, pair in asked])
        for (own, number, _), alignment in zip(asked, alignments, strict=True):
            own[number] = alignment
    return found


def _required(
    document: dict[str, Any], texts: list[str], terminology: Terminology, keep_placeholders: bool
) -> list[list[str]]:
    """For each sentence, what its translation must contain."""
    if document["file"] is None:
        return [terminology.required(text, keep_placeholders) for text in texts]
    required = [
        terminology.required(text, keep_placeholders, own)
        for text, own in zip(texts, document["file"].protected, strict=True)
    ]
    # Code may also be a placeholder; it is then required only once.
    both = [Counter(words) | Counter(own) for words, own in zip(required, document["file"].protected, strict=True)]
    return [list(Counter(words).elements()) for words in both]
