"""Training on documents: recipes, trainer, batches, studies, model cards. Needs the extra `train`."""

from ..corpora.corpus import read_documents
from ..corpora.stored_corpus import StoredCorpus
from ..evaluation.metrics import compare_systems, score_documents
from .arguments import GTransformerTrainingArguments
from .collator import DocumentCollator, WordDropout
from .model_card import write_model_card
from .recipe import parse_recipe
from .sampler import TokenBatchSampler
from .segments import make_segments
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
