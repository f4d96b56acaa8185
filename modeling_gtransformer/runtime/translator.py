"""A translator that loads its model by name on first use, and can be pickled."""

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


# Types of weights by precision; "int8" quantises linear layers after loading.
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "int8": torch.float32}


class Translator:
    """
    Translates documents, or columns of documents, with a model given by its name. The first call loads the model.
    Pickling saves only the settings, so processes of `datasets` and workers of Ray load the model on their own device.

    Args:
        model: folder or Hub name of a G-Transformer or a sentence-level model such as Opus-MT; by default the
            bundled English-German model.
        src_lang, tgt_lang: languages; by default the processor's.
        device: device of the model; by default a GPU if one is available where the model is loaded, else the CPU.
        precision: type of the weights: "float32", "bfloat16", "float16", or "int8" for 8-bit linear layers on a CPU.
            By default the checkpoint's type; a CPU loads float16, which is slow there, as float32.
        source_column: column of documents, each a text or a list of sentences.
        target_column: column for the translations: a text for a text, a list for a list.
        confidence: whether to score the translations. Adds the column `confidence`, a list with a number per sentence.
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
        return {name: value for name, value in self.__dict__.items() if name != "pipeline"}

    def __call__(self, documents: Any, **options: Any) -> Any:
        """
        Translates documents like the pipeline or, given a mapping, its source column, and returns the mapping with
        the translations in new columns.

        Raises:
            UsageError: the model cannot be loaded, or lacks a language.
            ValueError: a column is missing or already exists, or contains values other than documents.
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
            raise ValueError(f"The column {present[0]!r} already exists: rename it, or set target_column.")
        if isinstance(columns[self.source_column], str):
            raise ValueError(f"{self.source_column!r} is a single row, not a column: use map(..., batched=True).")
        sources = [
            as_document(source, f"row {row} of the column {self.source_column!r}")
            for row, source in enumerate(columns[self.source_column])
        ]
        named = (NamedDocument(f"Row {row}", source) for row, source in enumerate(sources))
        results = list(self.pipeline.translate_all(named, **options))
        translations = [as_its_source(source, result) for source, result in zip(sources, results, strict=True)]
        translated = {**columns, self.target_column: translations}
        if self.confidence:
            translated["confidence"] = [[pair["confidence"] for pair in result["sentences"]] for result in results]
        return translated

    @cached_property
    def pipeline(self) -> DocumentTranslationPipeline:
        """
        The pipeline, loaded on first access.

        Raises:
            UsageError: the model cannot be loaded, or lacks a language.
        """
        device = torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        if self.precision == "int8" and device.type != "cpu":
            raise UsageError(f"The precision int8 needs a CPU, but the device is {device}: use bfloat16.")
        model, processor = load_checkpoint(self.model, PRECISIONS.get(self.precision or ""))
        if self.precision is None and device.type == "cpu" and model.dtype == torch.float16:
            model.float()
        try:
            processor = for_languages(model, processor, self.src_lang, self.tgt_lang)
            processor.build_source([[]])  # raises if the template needs a language that is not set
            options = dict(self.options)
            if isinstance(glossary := options.get("glossary"), Glossary):
                options["glossary"] = terms_of(glossary, processor)
            translate = pipeline(
                "document-translation",
                model=model,
                processor=processor,
                device=device,
                # Never run code from the checkpoint.
                pipeline_class=DocumentTranslationPipeline,
                confidence=self.confidence,
                **options,
            )
            processor.configure(translate.model)
        except UsageError:
            raise
        except ValueError as error:
            raise UsageError(f"The model {self.model} cannot be used with these settings: {error}") from error
        if self.precision == "int8":
            quantize_linear_layers(translate.model)
        return translate

    def terms_between(self, src_lang: str | None, tgt_lang: str | None) -> dict[str, str] | None:
        """
        Returns the terms of the glossary between languages other than the translator's own. Returns `None` for its own
        languages, and for a glossary without languages, which applies to its own only.

        Raises:
            UsageError: a term has several translations.
        """
        glossary = self.options.get("glossary")
        if not isinstance(glossary, Glossary) or not glossary.names_languages:
            return None
        if self.pipeline.translates_between(src_lang, tgt_lang):
            return None
        processor = self.pipeline.processor.for_languages(src_lang, tgt_lang)
        return terms_of(glossary, processor, required=False)


def terms_of(glossary: Glossary, processor: GTransformerProcessor, required: bool = True) -> dict[str, str]:
    """Returns the terms between a processor's languages. Raises `UsageError` if they are missing or ambiguous."""
    try:
        return glossary.between(processor.src_lang, processor.tgt_lang, required)
    except ValueError as error:
        raise UsageError(f"The glossary {glossary.name} cannot be used: {user_message(error)}") from error


def as_document(source: Any, place: str) -> str | list[str]:
    """
    Reads a document from a column: a text, or a list or an array of sentences.

    Args:
        place: place of the document in error messages.

    Raises:
        ValueError: the value is neither, or contains an unpaired surrogate.
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


def as_its_source(source: str | bytes | list[str], translated: dict[str, Any]) -> str | list[str]:
    """Returns a pipeline's translation as a text or a list of sentences, like its source."""
    if isinstance(source, list):
        return [pair["translation_text"] for pair in translated["sentences"]]
    return translated["translation_text"]


def load_checkpoint(name: str, dtype: torch.dtype | None = None) -> tuple[PreTrainedModel, GTransformerProcessor]:
    """
    Loads model and processor from a folder or from the Hub.

    Args:
        dtype: type of the weights; by default the checkpoint's.

    Raises:
        UsageError: the checkpoint cannot be loaded.
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
        place = "" if Path(name).is_dir() else " (not a folder, so looked up on the Hub)"
        raise UsageError(f"The model {name}{place} cannot be loaded: {user_message(error)}") from error


def check_folder(name: str) -> None:
    """Raises `UsageError` if a path is not the folder of a supported model. A Hub name passes."""
    path, possible = Path(name), ("gtransformer", *SENTENCE_LEVEL_MODELS)
    if path.is_file():
        raise UsageError(f"The model {name} is a file: pass the folder of a checkpoint.")
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
            f"The model {name} has the unsupported type {model_type!r}. Supported types: {', '.join(possible)}."
        )


def check_words(processor: GTransformerProcessor) -> None:
    """Raises `ValueError` for an empty vocabulary, which Transformers makes if the tokenizer's files are missing."""
    words = set(processor.tokenizer.get_vocab().values()) - {*processor.structural_token_ids}
    if len(words) < 5:  # <unk> and perhaps a space
        raise ValueError("its tokenizer has no vocabulary: add the tokenizer's files.")
