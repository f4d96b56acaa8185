"""Share of padding in training batches, which the model computes and nobody needs.

    python benchmarks/padding.py train.jsonl --source_column en --target_column de [--max_tokens 4096 8192]

The batches are those of `train/train.py`, of segments of 512 tokens and of single sentences, with a BPE vocabulary of
30,000 that is trained on the corpus; against batches of the same segments in random order.
"""

import argparse
import random
import sys

from measure import save

from modeling_gtransformer import GTransformerProcessor
from modeling_gtransformer.segmentation import token_batches
from modeling_gtransformer.training.corpus import make_segments, read_documents
from modeling_gtransformer.training.sampler import TokenBatchSampler
from modeling_gtransformer.training.tokenizer import train_tokenizer


LANGUAGES = ("[source]", "[target]")


def padding(lengths: list[tuple[int, int]], batches: list[list[int]]) -> float:
    """Share of padding, on both sides together."""
    padded = sum(len(batch) * max(lengths[index][side] for index in batch) for batch in batches for side in (0, 1))
    return 1 - sum(map(sum, lengths)) / padded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="+", help="Documents in a format that train.py reads.")
    parser.add_argument("--source_column", default="source")
    parser.add_argument("--target_column", default="target")
    parser.add_argument("--max_tokens", type=int, nargs="+", default=[4096, 8192])
    args = parser.parse_args()
    columns = (args.source_column, args.target_column)
    documents = read_documents(args.corpus, columns)
    texts = (sentence for document in documents for column in columns for sentence in document[column])
    processor = GTransformerProcessor(train_tokenizer(texts, LANGUAGES), *LANGUAGES)
    results = {}
    for kind, max_sentences in (("segments of 512 tokens", None), ("sentences", 1)):
        segments = make_segments(documents, processor, columns, segment_sentences=max_sentences)
        lengths = [(len(segment["input_ids"]), len(segment["labels"])) for segment in segments]
        shuffled = random.Random(0).sample(range(len(lengths)), len(lengths))
        for max_tokens in args.max_tokens:
            in_random_order = token_batches([max(pair) for pair in lengths], shuffled, max_tokens)
            row = results[f"{kind}, batches of {max_tokens}"] = {
                "segments": len(lengths),
                "padding": padding(lengths, TokenBatchSampler(lengths, max_tokens, seed=0).batches),
                "padding in random order": padding(lengths, in_random_order),
            }
            print(f"{kind}, batches of {max_tokens}: {row}", flush=True)
    save("padding", sys.argv, results)


if __name__ == "__main__":
    main()
