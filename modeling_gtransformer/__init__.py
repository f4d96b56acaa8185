"""G-Transformer for Hugging Face Transformers: document translation, one target sentence per source sentence."""

from typing import Any

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoProcessor
from transformers.pipelines import PIPELINE_REGISTRY

from .configuration_gtransformer import GTransformerConfig
from .hub import __version__
from .modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerModel
from .parallel_generation import ParallelDocumentsOutput
from .pipeline_gtransformer import DocumentTranslationPipeline
from .processing_gtransformer import GTransformerProcessor
from .sentence_streamer import SentenceStreamer
from .target_sentences import GroupTagLogitsProcessor


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
    "GTransformerConfig",
    "GTransformerForConditionalGeneration",
    "GTransformerModel",
    "GTransformerProcessor",
    "GroupTagLogitsProcessor",
    "ParallelDocumentsOutput",
    "SentenceStreamer",
    "Translator",
    "__version__",
]
