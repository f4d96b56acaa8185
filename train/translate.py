"""Translate documents with a trained G-Transformer; every sentence gets exactly one translation.

    python train/translate.py outputs/mbart25 talks.jsonl.xz talks.translated.jsonl --source_column en

Reads JSON lines or a text file of one sentence per line with `<d>` lines between documents. Writes JSON lines: the
fields of every document, its `translation` (list of sentences) and `segments`, the numbers of sentences that the model
read at once. The output appears when all is done.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import BatchFeature
from transformers.utils.logging import tqdm


sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.segmentation import segment, sentence_cost
from train.corpus import read_documents
from train.sampler import token_batches


def main(argv: list[str]) -> None:
    args = parse_arguments(argv)
    documents = read_documents([args.input], [args.source_column])
    processor = GTransformerProcessor.from_pretrained(args.model)
    model = GTransformerForConditionalGeneration.from_pretrained(args.model).eval()
    model.to("cuda" if torch.cuda.is_available() else "cpu")

    settings = {} if args.num_beams is None else {"num_beams": args.num_beams}
    translations = translate_documents(
        model,
        processor,
        [document[args.source_column] for document in documents],
        segment_tokens=args.segment_tokens,
        max_tokens=args.max_tokens,
        **settings,
    )
    partial = f"{args.output}.partial"
    with open(partial, "w", encoding="utf-8") as file:
        for document, (sentences, segments) in zip(documents, translations, strict=True):
            row = {**document.record, "translation": sentences, "segments": segments}
            print(json.dumps(row, ensure_ascii=False), file=file)
    os.replace(partial, args.output)


def translate_documents(
    model: GTransformerForConditionalGeneration,
    processor: GTransformerProcessor,
    documents: Sequence[list[str]],
    segment_tokens: int = 512,
    max_tokens: int = 4096,
    **generate_arguments,
) -> list[tuple[list[str], list[int]]]:
    """
    Translates documents in segments of fewer than `segment_tokens` source tokens, cut at sentence borders.

    Args:
        max_tokens: source tokens in a batch, padding included.
        generate_arguments: for `model.generate`.

    Returns:
        For every document its translated sentences, as many as it has, and the sizes of its segments.

    Raises:
        ValueError: a sentence is longer than the model's positions.
    """
    positions = model.config.max_position_embeddings
    segments: list[list[int]] = []
    sizes: list[list[int]] = []
    for number, document in enumerate(documents, 1):
        encoded = processor.encode_sentences(document)
        cuts = segment([sentence_cost(len(words)) for words in encoded], min(segment_tokens, positions))
        sizes.append([cut.stop - cut.start for cut in cuts])
        for cut in cuts:
            segments.append(processor.build_source(encoded[cut]))
            if len(segments[-1]) > positions:
                raise ValueError(
                    f"Document {number}, sentence {cut.start + 1} has {len(segments[-1])} tokens, the model "
                    f"{positions} positions: split the sentence."
                )

    lengths = [len(ids) for ids in segments]
    order = sorted(range(len(segments)), key=lengths.__getitem__, reverse=True)
    translated: dict[int, list[str]] = {}
    with tqdm(total=len(segments), desc="Translating", unit=" segments") as progress:
        for batch in token_batches(lengths, order, max([max_tokens, *lengths])):
            rows = [segments[index] for index in batch]
            padded = processor.pad({"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]})
            output = model.generate(**BatchFeature(padded).to(model.device), **generate_arguments)
            translated |= zip(batch, processor.batch_decode_sentences(output), strict=True)
            progress.update(len(batch))

    in_order = iter(translated[index] for index in range(len(segments)))
    result = []
    for document, size in zip(documents, sizes, strict=True):
        sentences = [sentence for _ in size for sentence in next(in_order)]
        if len(sentences) != len(document):
            raise RuntimeError(f"{len(document)} sentences have {len(sentences)} translations.")
        result.append((sentences, size))
    return result


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder or Hub name of a trained G-Transformer")
    parser.add_argument("input", help="documents: .jsonl[.gz|.xz], or text with <d> lines")
    parser.add_argument("output", help="JSON lines to write")
    parser.add_argument("--source_column", default="source", help="column with the list of source sentences")
    parser.add_argument("--segment_tokens", type=int, default=512, help="longest segment that is translated at once")
    parser.add_argument("--max_tokens", type=int, default=4096, help="source tokens in a batch, padding included")
    parser.add_argument("--num_beams", type=int, help="default: as the model's generation config says")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main(sys.argv[1:])
