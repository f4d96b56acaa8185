"""Registers model, processor and pipeline with Transformers."""

from pathlib import Path

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoProcessor
from transformers.pipelines import PIPELINE_REGISTRY

from ..configuration_gtransformer import GTransformerConfig
from ..modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerModel
from ..pipeline_gtransformer import DocumentTranslationPipeline
from ..processing_gtransformer import GTransformerProcessor


# Default model: the English-German dialogue model of the package.
SMALL_MODEL = Path(__file__).parents[1] / "models" / "dialogues-en-de"

AutoConfig.register("gtransformer", GTransformerConfig)
AutoModel.register(GTransformerConfig, GTransformerModel)
AutoModelForSeq2SeqLM.register(GTransformerConfig, GTransformerForConditionalGeneration)
AutoProcessor.register(GTransformerConfig, GTransformerProcessor)
PIPELINE_REGISTRY.register_pipeline(
    "document-translation",
    pipeline_class=DocumentTranslationPipeline,
    pt_model=AutoModelForSeq2SeqLM,
    default={"model": (str(SMALL_MODEL), "main")},  # the registry requires a revision
)
