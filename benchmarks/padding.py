"""Share of padding in training batches, which the model computes and nobody needs.

    python benchmarks/padding.py --corpus train.jsonl --source_column en --target_column de [--max_tokens 4096 8192]

The batches are those of `train/train.py`, of segments of 512 tokens and of single sentences, with a BPE vocabulary of
30,000 that is trained on the corpus; against batches of the same segments in random order.
"""

import random
from collections.abc import Sequence

import numpy as np
from measure import parse_options, save, show

from modeling_gtransformer import GTransformerProcessor
from modeling_gtransformer.corpora.stored_corpus import StoredCorpus
from modeling_gtransformer.segmentation import token_batches
from modeling_gtransformer.training.sampler import TokenBatchSampler
from modeling_gtransformer.training.segments import make_segments, segment_lengths
from modeling_gtransformer.training.tokenizer import train_tokenizer


LANGUAGES = ("[source]", "[target]")


def padding(lengths: np.ndarray, batches: list[Sequence[int]]) -> float:
    """Share of padding, on both sides together."""
    padded = sum(len(batch) * lengths[np.asarray(batch)].max(axis=0).sum() for batch in batches)
    return float(1 - lengths.sum() / padded)


def main(argv: list[str] | None = None) -> None:
    args = parse_options(
        __doc__, argv, corpus=[], source_column="source", target_column="target", max_tokens=[4096, 8192]
    )
    columns = (args.source_column, args.target_column)
    corpus = StoredCorpus.from_files(args.corpus, columns)
    texts = (sentence for document in corpus.documents for column in columns for sentence in document[column])
    processor = GTransformerProcessor(train_tokenizer(texts, LANGUAGES), *LANGUAGES)
    results: dict[str, dict[str, float]] = {}
    for kind, max_sentences in (("segments of 512 tokens", None), ("sentences", 1)):
        lengths = segment_lengths(make_segments(corpus, processor, segment_sentences=max_sentences))
        shuffled = random.Random(0).sample(range(len(lengths)), len(lengths))
        for max_tokens in args.max_tokens:
            in_random_order = token_batches(lengths.max(axis=1).tolist(), shuffled, max_tokens)
            results[f"{kind}, batches of {max_tokens}"] = {
                "segments": len(lengths),
                "padding": padding(lengths, TokenBatchSampler(lengths, max_tokens, seed=0).batches),
                "padding in random order": padding(lengths, in_random_order),
            }
    show("", results)
    save(args, "padding", results)


if __name__ == "__main__":
    main()
