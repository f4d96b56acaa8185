"""A translator by its name: a folder or a name on the Hub, of a G-Transformer or of a plain translator."""

import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM, PreTrainedModel, pipeline

from ..configuration_gtransformer import PLAIN_MODELS
from ..pipeline_gtransformer import DocumentTranslationPipeline
from ..processing_gtransformer import GTransformerProcessor
from .errors import UsageError, in_a_sentence


def load_translator(
    name: str, src_lang: str | None = None, tgt_lang: str | None = None, device: Any = None, **options: Any
) -> DocumentTranslationPipeline:
    """
    The pipeline of a checkpoint.

    Args:
        name: folder or name on the Hub of a G-Transformer, or of a plain translator such as Opus-MT.
        src_lang, tgt_lang: languages; by default those of the processor.
        device: by default a GPU, if there is one.
        options: keyword arguments of the pipeline.

    Raises:
        UsageError: says in a sentence why the checkpoint cannot be used, or which languages it knows.
    """
    model, processor = load_checkpoint(name)
    try:
        processor = processor.for_languages(src_lang, tgt_lang)
        processor.build_source([[]])  # raises where a language is missing that frames its sentences
        translate = pipeline(
            "document-translation",
            model=model,
            processor=processor,
            device=device or ("cuda" if torch.cuda.is_available() else "cpu"),
            # Not the code that may lie beside the model.
            pipeline_class=DocumentTranslationPipeline,
            **options,
        )
        processor.configure(translate.model)
    except ValueError as error:
        raise UsageError(f"The model {name} cannot be used so: {error}") from error
    return translate


def load_checkpoint(name: str) -> tuple[PreTrainedModel, GTransformerProcessor]:
    """
    Model and processor of a folder or a name on the Hub.

    Raises:
        UsageError: says in a sentence why the checkpoint cannot be used.
    """
    check_folder(name)
    try:
        processor = GTransformerProcessor.from_pretrained(name)
        check_words(processor)
        return AutoModelForSeq2SeqLM.from_pretrained(name), processor
    except Exception as error:  # a broken file can break its reader anywhere
        place = "" if Path(name).is_dir() else " (there is no such folder, so from the Hub)"
        raise UsageError(f"The model {name}{place} cannot be loaded: {in_a_sentence(error)}") from error


def check_folder(name: str) -> None:
    """
    Raises:
        UsageError: the name is that of a file, or of a folder that holds no model which can translate.
    """
    path, possible = Path(name), ("gtransformer", *PLAIN_MODELS)
    if path.is_file():
        raise UsageError(f"The model {name} is a file: give the folder of a checkpoint.")
    if not path.is_dir():
        return
    if not (path / "config.json").is_file():
        raise UsageError(f"The model {name} is no checkpoint: the folder has no config.json.")
    try:
        model_type = json.loads((path / "config.json").read_bytes())["model_type"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(f"The model {name} cannot be loaded: its config.json describes no model.") from error
    if model_type not in possible:
        raise UsageError(
            f"The model {name} is of the type {model_type!r}, which cannot translate documents here: possible are "
            f"{', '.join(possible)}."
        )


def check_words(processor: GTransformerProcessor) -> None:
    """
    Raises:
        ValueError: the tokenizer knows no words, as Transformers makes one where its files are missing.
    """
    words = set(processor.tokenizer.get_vocab().values()) - {*processor.structural_token_ids}
    if len(words) < 5:  # there is always <unk>, and perhaps a space
        raise ValueError("its tokenizer has no words, so the files of the tokenizer are missing.")
