"""G-Transformer for Hugging Face Transformers: document translation, one target sentence per source sentence."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


# Modules of the public names.
_MODULES = {
    "DocumentTranslationPipeline": "pipeline_gtransformer",
    "DocumentsOutput": "generation_gtransformer",
    "GTransformerConfig": "configuration_gtransformer",
    "GTransformerForConditionalGeneration": "modeling_gtransformer",
    "GTransformerModel": "modeling_gtransformer",
    "GTransformerProcessor": "processing_gtransformer",
    "GroupTagLogitsProcessor": "target_sentences",
    "SentenceStreamer": "target_sentences",
    "Translator": "runtime.translator",
    "__version__": "hub",
}

# Importing the classes takes seconds, so the commands register them after parsing their options.
_COMMANDS = ("gtransformer", "gtransformer-translate", "gtransformer-serve")
if Path(*sys.argv[:1]).name.removesuffix(".exe") not in _COMMANDS:
    import_module(f"{__name__}.runtime.registration")


def __getattr__(name: str) -> Any:
    """Imports the module of a public name on first access."""
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [*_MODULES]
