"""A long document through a model of few positions that count from the start of every sentence: time and memory.

    python benchmarks/long_document.py [--sentences 100 1000 10000]

Random words, eight to a sentence, in the template of Opus-MT; a small model of random weights with group attention
only, as a sentence-level translator is, greedily, with eight tokens to every sentence at most. The model has 512
learned positions, fewer than any of the documents has tokens. Every document is translated in a process of its own,
after a short one.
"""

import argparse
import random
import sys
import time

import torch
from measure import BASE, save
from own_process import memory_mb, report, run_alone

from modeling_gtransformer import GTransformerConfig, GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.sentence_level_models import ONLY_GROUP
from modeling_gtransformer.training.tokenizer import train_tokenizer


WORDS_IN_SENTENCE = 8
SMALL = BASE | ONLY_GROUP | {"d_model": 256, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 512}


def translate(sentences: int) -> dict[str, float]:
    """Seconds and peak memory of a document in this process."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(2000)]
    processor = GTransformerProcessor(train_tokenizer(words, ["[en]", "[de]"], 4000), sentence_template="marian")
    torch.manual_seed(0)
    values = {**SMALL, "vocab_size": len(processor.tokenizer), "decoder_start_token_id": processor.pad_token_id}
    config = GTransformerConfig(**values, sentence_template="marian")
    model = GTransformerForConditionalGeneration(config).eval()
    processor.configure(model)
    document = [" ".join(rng.choices(words, k=WORDS_IN_SENTENCE)) for _ in range(sentences)]
    limits = {"max_length_a": 0.0, "max_length_b": WORDS_IN_SENTENCE}
    translate_documents(model, processor, [document[:16]], **limits)
    before = memory_mb("VmHWM")
    begun = time.perf_counter()
    [translated] = translate_documents(model, processor, [document], **limits)
    seconds = time.perf_counter() - begun
    if len(translated.sentences) != sentences:
        raise RuntimeError(f"{len(translated.sentences)} of {sentences} sentences")
    peak = memory_mb("VmHWM")
    tokens = sum(map(len, processor.encode_sentences(document))) + sentences
    return {"source_tokens": tokens, "seconds": seconds, "peak_mb": peak, "peak_mb_before": before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sentences", type=int, nargs="+", default=[100, 1000, 10000], help="Length of the documents."
    )
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)  # the process that is measured
    args = parser.parse_args()
    if args.one:
        report(translate(args.one))
        return
    results = {}
    for sentences in args.sentences:
        results[str(sentences)] = run_alone("--one", str(sentences))
        print(f"{sentences} sentences: {results[str(sentences)]}", flush=True)
    save("long_document", sys.argv, results)


if __name__ == "__main__":
    main()
