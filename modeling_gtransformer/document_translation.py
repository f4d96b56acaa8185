"""Documents of any length through the model: cut into segments, translated in batches, put together again."""

import sys
from collections.abc import Sequence

from transformers import BatchFeature, PreTrainedModel
from transformers.utils.logging import tqdm

from .processing_gtransformer import GTransformerProcessor
from .segmentation import segment, sentence_cost, token_batches


def translate_documents(
    model: PreTrainedModel,
    processor: GTransformerProcessor,
    documents: Sequence[list[str]],
    segment_tokens: int = 512,
    max_tokens: int = 4096,
    progress: bool = False,
    **generate_arguments,
) -> list[tuple[list[str], list[int]]]:
    """
    Translates documents in segments of fewer than `segment_tokens` source tokens, cut at sentence borders.

    Args:
        max_tokens: source tokens in a batch, padding included.
        progress: show a progress bar.
        generate_arguments: for `model.generate`.

    Returns:
        For every document its translated sentences, as many as it has, and the sizes of its segments.

    Raises:
        ValueError: a sentence is longer than the model's positions.
    """
    positions = sys.maxsize
    if getattr(model.config, "position_embedding_type", "learned") == "learned":
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
    with tqdm(total=len(segments), desc="Translating", unit=" segments", disable=not progress) as bar:
        for batch in token_batches(lengths, order, max([max_tokens, *lengths])):
            rows = [segments[index] for index in batch]
            padded = processor.pad({"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]})
            output = model.generate(**BatchFeature(padded).to(model.device), **generate_arguments)
            translated |= zip(batch, processor.batch_decode_sentences(output), strict=True)
            bar.update(len(batch))

    in_order = iter(translated[index] for index in range(len(segments)))
    result = []
    for document, size in zip(documents, sizes, strict=True):
        sentences = [sentence for _ in size for sentence in next(in_order)]
        if len(sentences) != len(document):
            raise RuntimeError(f"{len(document)} sentences have {len(sentences)} translations.")
        result.append((sentences, size))
    return result
