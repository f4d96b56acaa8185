"""Segments of a corpus: cut and tokenized once, cached on disk, memory-mapped by all processes of a machine.

Segments are cached in the folder of a [`StoredCorpus`], by documents, processor, settings and code.
"""

import logging
import os
import random
from collections.abc import Iterator

import numpy as np
import tokenizers
from datasets import Dataset, Features, List, Value
from datasets.fingerprint import Hasher

from ..configuration_gtransformer import GTransformerConfig
from ..corpora.corpus import raise_if_any
from ..corpora.fingerprint import hash_of_code, hash_of_processor
from ..corpora.stored_corpus import StoredCorpus
from ..evaluation.translations import encode_pairs
from ..processing_gtransformer import GTransformerProcessor
from ..segmentation import segment


logger = logging.getLogger(__name__)

# Number of documents tokenized at once.
DOCUMENTS_AT_ONCE = 64
# Size of text that keeps a process busy for some seconds, so that it is worth its start.
BYTES_PER_PROCESS = 2**24
# Share of the training text covered by the target ratio.
TARGET_QUANTILE = 0.9
SEGMENT = Features(
    {
        "input_ids": List(Value("int32")),
        "labels": List(Value("int32")),
        "source_tokens": Value("int32"),
        "target_tokens": Value("int32"),
        "longest_sentence": Value("int32"),
        "document": Value("int32"),
        "first_sentence": Value("int32"),
        "sentences": Value("int32"),
    }
)


def make_segments(
    corpus: StoredCorpus,
    processor,
    segment_tokens: int = 512,
    segment_sentences: int | None = None,
    min_document_tokens: int = 0,
) -> Dataset:
    """
    Cuts documents at sentence boundaries into segments of fewer than `segment_tokens` tokens, like the authors. A
    sentence that is longer becomes a segment.

    Args:
        processor: `GTransformerProcessor` that tokenizes.
        segment_sentences: upper bound on the sentences in a segment; 1 trains a sentence-level model.
        min_document_tokens: lower bound on the tokens of a document. Shorter ones are dropped with a warning. The
            paper uses 768, so that long and short segments come from the same documents.

    Returns:
        Memory-mapped dataset of `input_ids` and `labels` (1-D tensors). [`segment_lengths`] returns their lengths.

    Raises:
        ValueError: sentences have no tokens, as listed in the message, or all documents are too short.
    """
    settings = {
        "segment_tokens": segment_tokens,
        "segment_sentences": segment_sentences,
        "min_document_tokens": min_document_tokens,
    }
    documents = corpus.documents
    try:
        segments = documents.map(
            _segments_of,
            batched=True,
            batch_size=DOCUMENTS_AT_ONCE,
            with_indices=True,
            fn_kwargs={"columns": corpus.columns, "processor": processor, **settings},
            remove_columns=documents.column_names,
            features=SEGMENT,
            num_proc=_processes(documents.data.nbytes),
            new_fingerprint=Hasher.hash([corpus.fingerprint, _processor_hash(processor), settings]),
            desc="Tokenizing",
        )
    except ValueError:
        raise_if_any(list(_untokenizable(corpus, processor)), "sentences without any token")
        raise
    # The remaining documents have exactly one segment each that begins with the first sentence.
    too_short = len(documents) - int(np.count_nonzero(_column(segments, "first_sentence") == 0))
    if too_short == len(documents):
        raise ValueError(f"No document has min_document_tokens={min_document_tokens} tokens: lower this number.")
    if too_short:
        logger.warning(
            f"Dropped {too_short} of {len(documents)} documents with fewer than {min_document_tokens} tokens."
        )
    return segments.with_format("torch", columns=["input_ids", "labels"])


def segment_lengths(segments: Dataset) -> np.ndarray:
    """Returns the numbers of source and target tokens of each segment, `(N, 2)`, without reading the segments."""
    return np.stack([_column(segments, name) for name in ("source_tokens", "target_tokens")], axis=1)


def fit_positions(segments: Dataset, corpus: StoredCorpus, config: GTransformerConfig, drop: bool) -> Dataset:
    """
    Selects the segments that fit the positions of a model, by segment or by sentence as its positions count.

    Longer segments are dropped with a warning if `drop`, else raise `ValueError`. The authors also drop them in
    training and refuse them in validation.
    """
    tokens, longest_sentences = segment_lengths(segments).max(axis=1), _column(segments, "longest_sentence")
    fit = (tokens <= config.max_document_tokens) & (longest_sentences <= config.max_sentence_tokens)
    if fit.all():
        return segments
    first = segments.with_format(None)[int(np.argmin(fit))]
    by_sentence = config.position_scope == "sentence"
    message = (
        f"{np.count_nonzero(~fit)} of {len(segments)} segments {'have a sentence that is' if by_sentence else 'are'} "
        f"longer than the {config.max_position_embeddings} positions of the model, the first at "
        f"{corpus.where(first['document'], first['first_sentence'])}"
    )
    if not drop:
        raise ValueError(f"{message}: {'' if by_sentence else 'lower segment_tokens, or '}split long sentences.")
    logger.warning(f"{message}: dropped from training.")
    return segments.select(np.flatnonzero(fit))


def target_ratio(segments: Dataset, processor, quantile: float = TARGET_QUANTILE) -> float:
    """
    Computes the ratio of target to source tokens that is not exceeded by this share of the training text.

    With the mean, half of the full segments would have longer translations than any in training. Higher quantiles cost
    context. With 0.9, up to about 1 % of the segments of four test sets (English-German) have a longer reference,
    and there are 3 to 6 % more segments than in the paper's cut, which uses the references.
    """
    sentences = _column(segments, "sentences")[:, None]
    source, target = np.maximum(segment_lengths(segments) - sentences * processor.sentence_tokens, 1).T
    order = np.argsort(target / source)
    shares = np.cumsum(source[order]) / source.sum()
    place = order[np.searchsorted(shares, quantile)]
    return round(float(target[place] / source[place]), 3)


def sample(segments: Dataset, size: int | None, seed: int) -> Dataset:
    """Draws segments without replacement (the paper's data scales); `None` returns all. Raises `ValueError` for too
    few segments."""
    if size is None:
        return segments
    if size > len(segments):
        raise ValueError(f"train_segments={size}, but the corpus has {len(segments)} segments.")
    return segments.select(random.Random(seed).sample(range(len(segments)), size))


def segment_texts(segments: Dataset, corpus: StoredCorpus) -> list[tuple[list[str], list[str]]]:
    """Returns the source and the target sentences of each segment."""
    places = [_column(segments, name).tolist() for name in ("document", "first_sentence", "sentences")]
    texts = []
    for number, first, size in zip(*places, strict=True):
        source, target = (corpus.documents[number][column][first : first + size] for column in corpus.columns)
        texts.append((source, target))
    return texts


def _segments_of(
    documents: dict[str, list],
    indices: list[int],
    columns: tuple[str, str],
    processor,
    segment_tokens: int,
    segment_sentences: int | None,
    min_document_tokens: int,
) -> dict[str, list]:
    rows: list[tuple] = []
    for index, *texts in zip(indices, *(documents[column] for column in columns), strict=True):
        source, target, costs = encode_pairs(processor, *texts)
        if sum(costs) < min_document_tokens:
            continue
        for part in segment(costs, segment_tokens, segment_sentences):
            input_ids, labels = processor.build_source(source[part]), processor.build_labels(target[part])
            size = part.stop - part.start
            lengths = (len(input_ids), len(labels), max(costs[part]))
            rows.append((input_ids, labels, *lengths, index, part.start, size))
    return {name: [row[place] for row in rows] for place, name in enumerate(SEGMENT)}


def _untokenizable(corpus: StoredCorpus, processor) -> Iterator[str]:
    for document in corpus.read():
        for is_target, column in enumerate(corpus.columns):
            for position, sentence in enumerate(document[column]):
                try:
                    processor.encode_sentences([sentence], bool(is_target))
                except ValueError as error:
                    yield f"{document.where(column, position)}: {error}"


def _column(segments: Dataset, name: str) -> np.ndarray:
    return segments.with_format("numpy", columns=[name])[:][name]


def _processes(text_bytes: int) -> int | None:
    """Returns the number of processes to tokenize a text; `None` means the current process."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    processes = min(cores, text_bytes // BYTES_PER_PROCESS)
    return processes if processes > 1 else None


def _processor_hash(processor) -> str:
    """Hashes a processor (vocabulary, languages, normalization) and the code on which segments depend."""
    code = hash_of_code(GTransformerProcessor, GTransformerConfig, segment, make_segments, encode_pairs)
    return Hasher.hash([tokenizers.__version__, code, hash_of_processor(processor)])
