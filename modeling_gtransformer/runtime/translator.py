"""A translator given by the name of its model: settings that can be pickled, and a model that is loaded on demand."""

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel, pipeline

from ..configuration_gtransformer import SENTENCE_LEVEL_MODELS
from ..files import Glossary
from ..pipeline_gtransformer import DocumentTranslationPipeline, NamedDocument, for_languages, refuse_missing_tensors
from ..processing_gtransformer import GTransformerProcessor
from .int8_linear import quantize_linear_layers
from .registration import SMALL_MODEL
from .usage_error import UsageError, user_message


# Types that weights can be loaded in; "int8" quantises linear layers to 8 bits.
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "int8": torch.float32}


class Translator:
    """
    Translates documents, or columns of them, with a model given by its name. Nothing is loaded before the first call,
    and a pickled translator holds only its settings, so it can be sent to the processes of `datasets` and to the
    workers of Ray, each of which loads the model on the device that it finds.

    Args:
        model: folder or name on the Hub of a G-Transformer, or of a sentence-level translator such as Opus-MT; by
            default the small model of English-German dialogues that comes with the package.
        src_lang, tgt_lang: languages; by default, the processor's.
        device: device of the model; by default a GPU, if there is one where the model is loaded.
        precision: type of the weights, "float32", "bfloat16", "float16", or "int8" for linear layers in 8 bits on a
            CPU; by default that of the checkpoint, except that a CPU, where float16 is slow, gets float32 instead.
        source_column: column that holds the documents, each a text or a list of sentences.
        target_column: column for their translations, each of the same kind as its source.
        confidence: whether to score the translations. Columns then also get `confidence`, a list with a number per
            sentence.
        options: keyword arguments of [`DocumentTranslationPipeline`], such as `num_beams`, `glossary` or `splitter`.

    ```python
    >>> translate = Translator("path/to/checkpoint", num_beams=5)
    >>> translate(["The cat sleeps.", "It is old."])["translation_text"]  # doctest: +SKIP
    'Die Katze schläft.\\nSie ist alt.'
    >>> dataset = dataset.map(translate, batched=True)  # doctest: +SKIP
    ```"""

    def __init__(
        self,
        model: str = str(SMALL_MODEL),
        src_lang: str | None = None,
        tgt_lang: str | None = None,
        device: Any = None,
        precision: str | None = None,
        source_column: str = "source",
        target_column: str = "translation",
        confidence: bool = False,
        **options: Any,
    ):
        if precision is not None and precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}.")
        self.model, self.src_lang, self.tgt_lang = model, src_lang, tgt_lang
        self.device, self.precision = device, precision
        self.source_column, self.target_column = source_column, target_column
        self.confidence, self.options = confidence, options

    def __getstate__(self) -> dict[str, Any]:
        """The settings, without the model."""
        return {name: value for name, value in self.__dict__.items() if name != "pipeline"}

    def __call__(self, documents: Any, **options: Any) -> Any:
        """
        Translates a document or several and returns what the pipeline returns, or translates the source column of a
        mapping and returns the mapping with the columns that it adds.

        Raises:
            UsageError: the model cannot be used, or does not have the languages.
            ValueError: a column is missing or already exists, or holds something that is not a document.
        """
        if options.get("glossary") is None:
            options["glossary"] = self.terms_between(options.get("src_lang"), options.get("tgt_lang"))
        if isinstance(documents, Mapping):
            return self._translate_columns(documents, **options)
        return self.pipeline(documents, **options)

    def _translate_columns(self, columns: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        added = [self.target_column, *["confidence"] * self.confidence]
        if self.source_column not in columns:
            raise ValueError(f"No column {self.source_column!r}, only {', '.join(columns)}: set source_column.")
        if present := [name for name in added if name in columns]:
            raise ValueError(f"There is already a column {present[0]!r}: rename it, or set target_column.")
        if isinstance(columns[self.source_column], str):
            raise ValueError(f"{self.source_column!r} is a single row, not a column: use map(..., batched=True).")
        sources = [
            as_document(source, f"row {row} of the column {self.source_column!r}")
            for row, source in enumerate(columns[self.source_column])
        ]
        named = (NamedDocument(f"Row {row}", source) for row, source in enumerate(sources))
        translated = list(self.pipeline.translate_all(named, **options))
        results: dict[str, list[Any]] = {
            self.target_column: [
                as_its_source(source, result) for source, result in zip(sources, translated, strict=True)
            ]
        }
        if self.confidence:
            results["confidence"] = [[pair["confidence"] for pair in result["sentences"]] for result in translated]
        return {**columns, **results}

    @cached_property
    def pipeline(self) -> DocumentTranslationPipeline:
        """
        The pipeline with all the settings, loaded on first access.

        Raises:
            UsageError: the model cannot be used, or does not have the languages.
        """
        device = torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        if self.precision == "int8" and device.type != "cpu":
            raise UsageError(f"The precision int8 is for a CPU, not for {device}: use bfloat16.")
        model, processor = load_checkpoint(self.model, PRECISIONS.get(self.precision or ""))
        if self.precision is None and device.type == "cpu" and model.dtype == torch.float16:
            model.float()
        try:
            processor = for_languages(model, processor, self.src_lang, self.tgt_lang)
            processor.build_source([[]])  # raises if a language in the template of its sentences is missing
            translate = pipeline(
                "document-translation",
                model=model,
                processor=processor,
                device=device,
                # Not the code that may be beside the model.
                pipeline_class=DocumentTranslationPipeline,
                confidence=self.confidence,
                **self._options_for(processor),
            )
            processor.configure(translate.model)
        except UsageError:
            raise
        except ValueError as error:
            raise UsageError(f"The model {self.model} cannot be used like this: {error}") from error
        if self.precision == "int8":
            quantize_linear_layers(translate.model)
        return translate

    def _options_for(self, processor: GTransformerProcessor) -> dict[str, Any]:
        """The options of the pipeline, with the terms of a glossary in the processor's languages."""
        glossary = self.options.get("glossary")
        if not isinstance(glossary, Glossary):
            return self.options
        return {**self.options, "glossary": terms_of(glossary, processor.src_lang, processor.tgt_lang)}

    def terms_between(self, src_lang: str | None, tgt_lang: str | None) -> dict[str, str] | None:
        """
        The terms of the glossary in languages other than the translator's own; `None` if these are its own, or if the
        glossary does not say which languages its terms are in and is therefore only for the translator's own.

        Raises:
            UsageError: a term has several translations.
        """
        glossary = self.options.get("glossary")
        if not isinstance(glossary, Glossary) or not glossary.names_languages:
            return None
        if self.pipeline.translates_between(src_lang, tgt_lang):
            return None
        processor = self.pipeline.processor.for_languages(src_lang, tgt_lang)
        pair = processor.src_lang, processor.tgt_lang
        return terms_of(glossary, *pair) if glossary.has_terms_between(*pair) else {}


def terms_of(glossary: Glossary, src_lang: str | None, tgt_lang: str | None) -> dict[str, str]:
    """
    The terms of a glossary between two languages.

    Raises:
        UsageError: it has none, or a term has several translations.
    """
    try:
        return glossary.between(src_lang, tgt_lang)
    except ValueError as error:
        raise UsageError(f"The glossary {glossary.name} cannot be used: {user_message(error)}") from error


def as_document(source: Any, place: str) -> str | list[str]:
    """
    Reads a document from a column: a text, or a list or an array of sentences.

    Args:
        place: the name of its place in errors.

    Raises:
        ValueError: it is neither, or contains an unpaired surrogate.
    """
    is_list = not isinstance(source, str) and hasattr(source, "__iter__") and not isinstance(source, Mapping | bytes)
    sentences = list(source) if is_list else [source]
    for sentence in sentences:
        if not isinstance(sentence, str):
            kind = type(sentence).__name__ + (" in a list" if is_list else "")
            raise ValueError(f"{place} must hold a text or a list of sentences, not {kind}")
        try:
            sentence.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(f"unpaired surrogate in {place}") from error
    return sentences if is_list else source


def as_its_source(source: str | list[str], translated: dict[str, Any]) -> str | list[str]:
    """Returns the translation in the form of its source, a text or a list of sentences, from a pipeline's result."""
    if isinstance(source, str):
        return translated["translation_text"]
    return [pair["translation_text"] for pair in translated["sentences"]]


def load_checkpoint(name: str, dtype: torch.dtype | None = None) -> tuple[PreTrainedModel, GTransformerProcessor]:
    """
    Loads model and processor from a folder or by their name on the Hub.

    Args:
        dtype: type of the weights; by default the one in which they were saved.

    Raises:
        UsageError: the checkpoint cannot be used; the message gives the reason.
    """
    check_folder(name)
    try:
        processor = GTransformerProcessor.from_pretrained(name)
        check_words(processor)
        arguments = {"dtype": dtype} if dtype else {}
        model, report = AutoModelForSeq2SeqLM.from_pretrained(name, output_loading_info=True, **arguments)
        refuse_missing_tensors("it", sorted(report["missing_keys"]))
        return model, processor
    except Exception as error:  # a broken file can make its reader fail anywhere
        place = "" if Path(name).is_dir() else " (there is no such folder, so from the Hub)"
        raise UsageError(f"The model {name}{place} cannot be loaded: {user_message(error)}") from error


def check_folder(name: str) -> None:
    """
    Refuses a path that cannot hold a model.

    Raises:
        UsageError: the name is that of a file, or of a folder without a model that can translate.
    """
    path, possible = Path(name), ("gtransformer", *SENTENCE_LEVEL_MODELS)
    if path.is_file():
        raise UsageError(f"The model {name} is a file: name the folder of a checkpoint.")
    if not path.is_dir():
        if path.is_absolute():
            raise UsageError(f"The model {name} is a folder that does not exist.")
        return
    if not (path / "config.json").is_file():
        raise UsageError(f"The model {name} is not a checkpoint: the folder has no config.json.")
    try:
        model_type = json.loads((path / "config.json").read_bytes())["model_type"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(f"The model {name} cannot be loaded: its config.json describes no model.") from error
    if model_type not in possible:
        raise UsageError(
            f"The model {name} is of the type {model_type!r}, which cannot translate documents here; supported are "
            f"{', '.join(possible)}."
        )


def check_words(processor: GTransformerProcessor) -> None:
    """
    Refuses a tokenizer without a vocabulary.

    Raises:
        ValueError: the tokenizer has no words, like one that Transformers makes when its files are missing.
    """
    words = set(processor.tokenizer.get_vocab().values()) - {*processor.structural_token_ids}
    if len(words) < 5:  # there is always <unk>, and perhaps a space
        raise ValueError("its tokenizer has no words, so the files of the tokenizer are missing.")
