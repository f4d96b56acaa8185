"""Aligns the words of a translation with the words of its sentence by the model's own cross-attention.

Shape legend: B pairs of sentences, H heads, T target tokens, S source tokens, V words of a translation, W words of a
sentence.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from ..segmentation import token_batches
from .boundaries import WORD
from .runs import Alignment


# Maximum number of tokens on each side: the attention of a longer pair takes more memory than its markup is worth.
LONGEST = 256
# Maximum number of tokens in a batch, padding included.
MAX_TOKENS = 1024
# Keeps sums from being divided by zero.
LEAST = 1e-9


@torch.no_grad()
def align_words(model: Any, processor: Any, pairs: Sequence[tuple[str, str]]) -> list[Alignment | None]:
    """
    Aligns the words of sentences and translations by one forward pass over both.

    The weights are those of cross-attention, averaged over layers and heads, where the decoder predicts a word. A word
    that both have exactly once, such as a name, is aligned with itself. Then every word of the sentence is divided
    among the words of the translation (one iteration of Sinkhorn and Knopp, 1967).

    Args:
        model: a `GTransformerForConditionalGeneration`.
        processor: its processor.
        pairs: sentences and their translations.

    Returns:
        For each pair, a matrix `(V, W)`; `None` if one side has no words or is too long.
    """
    encoded = [_encode(processor, *pair) for pair in pairs]
    lengths = [max(map(len, each)) for each in encoded]
    limit = min(LONGEST, model.config.max_sentence_tokens - processor.sentence_tokens)
    order = sorted((number for number, length in enumerate(lengths) if 0 < length <= limit), key=lengths.__getitem__)
    result: list[Alignment | None] = [None] * len(pairs)
    for batch in token_batches(lengths, order, MAX_TOKENS):
        rows = [encoded[number] for number in batch]
        for number, weights in zip(batch, _attention(model, processor, rows), strict=True):
            result[number] = _between_words(processor, pairs[number], encoded[number], weights)
    return result


def _encode(processor: Any, sentence: str, translation: str) -> tuple[list[int], list[int]]:
    """Returns the word ids of both; none if one of them has no words."""
    try:
        [source], [target] = processor.encode_sentences([sentence]), processor.encode_sentences([translation], True)
    except ValueError:  # a text without tokens
        return [], []
    return source, target


def _attention(model: Any, processor: Any, rows: list[tuple[list[int], list[int]]]) -> Iterator[Tensor]:
    """Yields, for every pair of word ids, the weights between their tokens, `(T, S)`."""
    sources = [processor.build_source([source]) for source, _ in rows]
    targets = [processor.build_target([target]) for _, target in rows]
    data = {"input_ids": sources, "attention_mask": [[1] * len(ids) for ids in sources], "decoder_input_ids": targets}
    inputs = {name: values.to(model.device) for name, values in processor.pad(data).items()}
    mask = model.target_mask(inputs["decoder_input_ids"])
    outputs = model.model(**inputs, decoder_attention_mask=mask, use_cache=False, output_attentions=True)
    weights = torch.stack(outputs.cross_attentions).float().mean(dim=(0, 2)).cpu()
    for row, (source, target) in enumerate(rows):
        read = inputs["input_ids"][row].tolist(), inputs["decoder_input_ids"][row].tolist()
        (first_source, first_target) = (ids.index(words[0]) for ids, words in zip(read, (source, target), strict=True))
        # The token before a word predicts it.
        predicting = slice(first_target - 1, first_target - 1 + len(target))
        yield weights[row, predicting, first_source : first_source + len(source)]


def _between_words(
    processor: Any, pair: tuple[str, str], ids: tuple[list[int], list[int]], weights: Tensor
) -> Alignment:
    """Weights between words `(V, W)` from those between tokens `(T, S)`: a word of the translation has the mean of its
    tokens, a word of the sentence the sum. Rows sum to 1."""
    sources, targets = (_membership(processor, *side) for side in zip(pair, ids, strict=True))
    tokens = targets.sum(dim=0, keepdim=True).clamp(min=1).T
    alignment = (targets.T @ weights @ sources) / tokens
    own, words = ([word[0] for word in WORD.finditer(text)] for text in pair)
    own_counts, counts = Counter(own), Counter(words)
    for number, word in enumerate(words):
        if own_counts[word] == counts[word] == 1:
            alignment[number] = torch.tensor([float(word == other) for other in own])
    # If two words attend to the same word, it goes to the one that has no other: articles attend to their nouns.
    shares = alignment / alignment.sum(dim=0).clamp(min=LEAST)
    return (shares / shares.sum(dim=1, keepdim=True).clamp(min=LEAST)).tolist()


def _membership(processor: Any, text: str, ids: list[int]) -> Tensor:
    """
    Returns which word of a text each token belongs to, as ones in a matrix of tokens and words.

    A token is placed by its characters, not counting white space. If normalisation has changed their number, the
    places are in proportion.
    """
    pieces = [len("".join(piece.split())) for piece in processor.decode_sentences([[token] for token in ids])]
    characters = [0, *accumulate(not character.isspace() for character in text)]
    words = [(characters[word.start()], characters[word.end()]) for word in WORD.finditer(text)]
    starts, scale = [start for start, _ in words], characters[-1] / max(sum(pieces), 1)
    belongs = []
    for token, (place, size) in enumerate(zip([0, *accumulate(pieces)], pieces, strict=False)):
        middle = (place + size / 2) * scale
        word = bisect_right(starts, middle) - 1
        if word >= 0 and middle < words[word][1]:
            belongs.append((token, word))
    membership = torch.zeros(len(ids), len(words))
    if belongs:
        membership[tuple(zip(*belongs, strict=True))] = 1.0
    return membership
