"""Sentence-level translators, such as Opus-MT and NLLB, as G-Transformers that translate documents."""

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from .configuration_gtransformer import SENTENCE_LEVEL_MODELS, GTransformerConfig
from .modeling_gtransformer import GTransformerForConditionalGeneration
from .processing_gtransformer import GTransformerProcessor


logger = logging.get_logger(__name__)

# Arguments of a configuration without any global attention.
ONLY_GROUP = {"encoder_global_layers": 0, "decoder_global_layers": 0, "cross_global_layers": 0}


def from_sentence_level_model(model: PreTrainedModel) -> GTransformerForConditionalGeneration:
    """
    Makes a sentence translator into a G-Transformer with only group attention, which shares its weights: every
    sentence of a document is translated as if it stood alone.

    Raises:
        ValueError: the model is of another family, is not a translator, or has a weight that a G-Transformer has no
            place for.
    """
    model_type, name = model.config.model_type, model.name_or_path
    if model_type not in SENTENCE_LEVEL_MODELS:
        raise ValueError(
            f"{name} is of the type {model_type!r}, which cannot translate documents; supported are "
            f"'gtransformer' and translators of the types {', '.join(map(repr, SENTENCE_LEVEL_MODELS))}."
        )
    converted = _with_weights_of(model)
    if not converted.config.template.translates:
        raise ValueError(f"{name} is pretrained, but not a translator: fine-tune it first (docs/fine-tune.md).")
    logger.warning(f"{name} is a sentence-level model: document context is unused until it is fine-tuned.")
    return converted


def _with_weights_of(model: PreTrainedModel) -> GTransformerForConditionalGeneration:
    config = GTransformerConfig.from_dict(model.config.to_dict(), **ONLY_GROUP)
    config._attn_implementation = "sdpa"
    weights = model.state_dict()
    if config.position_embedding_type != "learned":
        weights = {name: weight for name, weight in weights.items() if "embed_positions" not in name}
    weights.setdefault("final_logits_bias", torch.zeros(1, config.decoder_vocab_size, device=model.device))
    with torch.device("meta"):
        converted = GTransformerForConditionalGeneration(config)
    missing, unexpected = converted.load_state_dict(weights, strict=False, assign=True)
    if lost := sorted({*missing, *unexpected}):
        raise ValueError(f"The weights of {model.name_or_path} do not fit a G-Transformer: {', '.join(lost)}.")
    converted.tie_weights()
    converted.name_or_path = model.name_or_path
    converted.generation_config = converted.document_generation_config(model.generation_config)
    return converted.train(model.training)


def load_processor(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> GTransformerProcessor:
    """
    Returns a processor around a tokenizer or, without one, that of the checkpoint that a model was loaded from.

    Raises:
        ValueError: there is neither.
    """
    if tokenizer is not None:
        return GTransformerProcessor(tokenizer, sentence_template=model.config.sentence_template)
    if not model.name_or_path:
        raise ValueError("A model that was not loaded from a checkpoint needs its processor: pass processor=.")
    return GTransformerProcessor.from_pretrained(
        model.name_or_path, revision=getattr(model.config, "_commit_hash", None) or "main"
    )
