"""Training on documents: recipes, trainer, batches, corpora, scores, model cards. Needs the extra `train`."""

from importlib.util import find_spec


# Packages of the extra without which nothing here can be imported.
if missing := [
    name for name in ("accelerate", "datasets", "evaluate", "sacrebleu", "yaml") if find_spec(name) is None
]:
    raise ImportError(f"Training needs {', '.join(missing)}: pip install 'gtransformer-hf[train]'")

from .arguments import GTransformerTrainingArguments
from .collator import DocumentCollator, WordDropout
from .corpus import read_documents
from .metrics import compare_systems, score_documents
from .model_card import write_model_card
from .recipe import parse_recipe
from .sampler import TokenBatchSampler
from .segments import make_segments
from .stored_corpus import StoredCorpus
from .trainer import GTransformerTrainer


__all__ = [
    "DocumentCollator",
    "GTransformerTrainer",
    "GTransformerTrainingArguments",
    "StoredCorpus",
    "TokenBatchSampler",
    "WordDropout",
    "compare_systems",
    "make_segments",
    "parse_recipe",
    "read_documents",
    "score_documents",
    "write_model_card",
]
