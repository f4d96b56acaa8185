"""Sentence-level models, such as Opus-MT and NLLB, as G-Transformers that translate documents."""

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from .configuration_gtransformer import GTransformerConfig
from .modeling_gtransformer import GTransformerForConditionalGeneration
from .processing_gtransformer import GTransformerProcessor


logger = logging.get_logger(__name__)

# Arguments of a configuration without any global attention.
ONLY_GROUP = {"encoder_global_layers": 0, "decoder_global_layers": 0, "cross_global_layers": 0}


def from_sentence_level_model(model: PreTrainedModel) -> GTransformerForConditionalGeneration:
    """
    Converts a sentence-level model to a G-Transformer with only group attention, which shares its weights and
    translates every sentence independently.

    Raises:
        ValueError: the model has an unsupported type, is not a translator, or has weights that a G-Transformer lacks.
    """
    name = model.name_or_path
    config = GTransformerConfig.from_dict(model.config.to_dict(), **ONLY_GROUP)
    if not config.template.translates:
        raise ValueError(f"{name} is pretrained, but cannot translate yet: fine-tune it first (docs/fine-tune.md).")
    config._attn_implementation = "sdpa"
    weights = model.state_dict()
    if config.position_embedding_type != "learned":
        weights = {key: weight for key, weight in weights.items() if "embed_positions" not in key}
    weights.setdefault("final_logits_bias", torch.zeros(1, config.decoder_vocab_size, device=model.device))
    with torch.device("meta"):
        converted = GTransformerForConditionalGeneration(config)
    missing, unexpected = converted.load_state_dict(weights, strict=False, assign=True)
    if lost := sorted({*missing, *unexpected}):
        raise ValueError(f"The weights of {name} do not fit a G-Transformer: {', '.join(lost)}.")
    converted.tie_weights()
    converted.name_or_path = name
    converted.generation_config = converted.document_generation_config(model.generation_config)
    logger.warning(f"{name} is a sentence-level model: document context is unused until it is fine-tuned.")
    return converted.train(model.training)


def load_processor(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> GTransformerProcessor:
    """
    Makes a processor from a tokenizer or, without one, loads it from the model's checkpoint.

    Raises:
        ValueError: the model was not loaded from a checkpoint.
    """
    if tokenizer is not None:
        return GTransformerProcessor(tokenizer, sentence_template=model.config.sentence_template)
    if not model.name_or_path:
        raise ValueError("The model was not loaded from a checkpoint: pass its processor as processor=.")
    return GTransformerProcessor.from_pretrained(
        model.name_or_path, revision=getattr(model.config, "_commit_hash", None) or "main"
    )
