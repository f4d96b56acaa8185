"""G-Transformer for Hugging Face Transformers: document translation, one target sentence per source sentence."""

from typing import Any

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoProcessor
from transformers.pipelines import PIPELINE_REGISTRY

from .configuration_gtransformer import GTransformerConfig
from .generation_gtransformer import DocumentsOutput
from .hub import __version__
from .modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerModel
from .pipeline_gtransformer import DocumentTranslationPipeline
from .processing_gtransformer import GTransformerProcessor
from .target_sentences import GroupTagLogitsProcessor, SentenceStreamer


AutoConfig.register("gtransformer", GTransformerConfig)
AutoModel.register(GTransformerConfig, GTransformerModel)
AutoModelForSeq2SeqLM.register(GTransformerConfig, GTransformerForConditionalGeneration)
AutoProcessor.register(GTransformerConfig, GTransformerProcessor)
PIPELINE_REGISTRY.register_pipeline(
    "document-translation", pipeline_class=DocumentTranslationPipeline, pt_model=AutoModelForSeq2SeqLM
)


def __getattr__(name: str) -> Any:
    """Loads the translator and the readers of all file formats when they are asked for."""
    if name == "Translator":
        from .translator import Translator

        return Translator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DocumentTranslationPipeline",
    "DocumentsOutput",
    "GTransformerConfig",
    "GTransformerForConditionalGeneration",
    "GTransformerModel",
    "GTransformerProcessor",
    "GroupTagLogitsProcessor",
    "SentenceStreamer",
    "Translator",
    "__version__",
]
