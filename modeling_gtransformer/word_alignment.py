"""Aligns the words of translations with the words of their sentences by cross-attention.

Shape legend: B pairs of sentences, H heads, T target tokens, S source tokens, V words of a translation, W words of a
sentence.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .plain_text import WORD
from .segment_plan import Part
from .segmentation import token_batches
from .sentence import Alignment


# Maximum number of tokens on each side, to bound the memory for attention weights.
MAX_SENTENCE_TOKENS = 256
# Maximum number of tokens in a batch, padding included.
MAX_BATCH_TOKENS = 1024
# Avoids division by zero.
EPSILON = 1e-9


@torch.no_grad()
def align_parts(model: Any, processor: Any, places: Sequence[tuple[Part, int, int]], encoder_outputs: Any) -> None:
    """
    Sets the alignment of translated parts, with one pass of the decoder over each part.

    Weights are the cross-attention of the predicting position, averaged over layers and heads. A word that occurs
    exactly once on both sides, such as a name, aligns with itself. Then the words of the translation share every word
    of the sentence (one iteration of Sinkhorn and Knopp, 1967). Parts without words on one side, and long parts, get
    no alignment.

    Args:
        model: a `GTransformerForConditionalGeneration`.
        places: parts, each with the batch row and group tag of its source sentence.
        encoder_outputs: states `(B, S, D)` and group tags `(B, S)` of the batch.
    """
    places = [place for place in places if place[0].target]
    lengths = [max(len(part.ids), len(part.target)) for part, _, _ in places]
    order = sorted(range(len(places)), key=lengths.__getitem__)
    order = [index for index in order if lengths[index] <= MAX_SENTENCE_TOKENS]
    for batch in token_batches(lengths, order, MAX_BATCH_TOKENS):
        rows = [places[index] for index in batch]
        attention = _attention(model, processor, rows, encoder_outputs[0], encoder_outputs.group_tags)
        for (part, _, _), weights in zip(rows, attention, strict=True):
            texts = part.source_text, part.text
            part.alignment = _between_words(processor, texts, (part.ids, part.target), weights)


def _attention(
    model: Any, processor: Any, rows: Sequence[tuple[Part, int, int]], states: Tensor, tags: Tensor
) -> list[Tensor]:
    """Returns weights `(T, S)` between the tokens of every part. The decoder reads each part as a document."""
    own = [states[row, tags[row].to(states.device) == number] for _, row, number in rows]
    mask = pad_sequence([each.new_ones(len(each), dtype=torch.long) for each in own], batch_first=True)
    targets = processor.pad({"decoder_input_ids": [processor.build_target([part.target]) for part, _, _ in rows]})
    target_ids = targets["decoder_input_ids"].to(mask.device)
    outputs = model.model(
        decoder_input_ids=target_ids,
        encoder_outputs=(pad_sequence(own, batch_first=True), mask),
        attention_mask=mask,
        use_cache=False,
        output_attentions=True,
    )
    weights = torch.stack([each.to(mask.device) for each in outputs.cross_attentions]).float().mean(dim=(0, 2)).cpu()
    result = []
    for row, (part, _, _) in enumerate(rows):
        source, target = processor.build_source([part.ids]), processor.build_target([part.target])
        # The position before a token predicts it.
        first_source, first_target = source.index(part.ids[0]), target.index(part.target[0]) - 1
        predicting = slice(first_target, first_target + len(part.target))
        result.append(weights[row, predicting, first_source : first_source + len(part.ids)])
    return result


def _between_words(
    processor: Any, pair: tuple[str, str], ids: tuple[list[int], list[int]], weights: Tensor
) -> Alignment:
    """Returns weights `(V, W)` between words from weights `(T, S)` between tokens: the mean over the tokens of a
    target word, the sum over the tokens of a source word. Rows sum to 1."""
    sources, targets = (_membership(processor, *side) for side in zip(pair, ids, strict=True))
    tokens = targets.sum(dim=0, keepdim=True).clamp(min=1).T
    alignment = (targets.T @ weights @ sources) / tokens
    own, words = ([word[0] for word in WORD.finditer(text)] for text in pair)
    own_counts, counts = Counter(own), Counter(words)
    for number, word in enumerate(words):
        if own_counts[word] == counts[word] == 1:
            alignment[number] = torch.tensor([float(word == other) for other in own])
    # Normalising columns first gives a noun its source, to which its article also attends.
    shares = alignment / alignment.sum(dim=0).clamp(min=EPSILON)
    return (shares / shares.sum(dim=1, keepdim=True).clamp(min=EPSILON)).tolist()


def _membership(processor: Any, text: str, ids: list[int]) -> Tensor:
    """
    Returns a 0-1 matrix of tokens and the words that contain them.

    Tokens are located by their number of characters without white space. If normalisation has changed this number,
    positions are scaled.
    """
    pieces = [len("".join(piece.split())) for piece in processor.decode_sentences([[token] for token in ids])]
    characters = [0, *accumulate(not character.isspace() for character in text)]
    words = [(characters[word.start()], characters[word.end()]) for word in WORD.finditer(text)]
    starts, scale = [start for start, _ in words], characters[-1] / max(sum(pieces), 1)
    members = []
    for token, (place, size) in enumerate(zip([0, *accumulate(pieces)], pieces, strict=False)):
        middle = (place + size / 2) * scale
        word = bisect_right(starts, middle) - 1
        if word >= 0 and middle < words[word][1]:
            members.append((token, word))
    membership = torch.zeros(len(ids), len(words))
    if members:
        membership[tuple(zip(*members, strict=True))] = 1.0
    return membership
