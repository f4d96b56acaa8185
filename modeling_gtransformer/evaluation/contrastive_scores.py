"""Scores the candidates of contrastive suites: log-probabilities, and how often a model prefers the right one."""

from collections.abc import Iterator
from typing import Any

from ..modeling_gtransformer import GTransformerForConditionalGeneration
from ..processing_gtransformer import GTransformerProcessor
from ..segmentation import token_batches
from ..token_scores import label_log_probabilities
from .contrastive_suites import ContrastiveItem


def encode(items: list[ContrastiveItem], processor: GTransformerProcessor, config) -> list[list[dict[str, list[int]]]]:
    """
    Makes model inputs for every candidate of every item; labels are -100 except in the last sentence.

    Raises:
        ValueError: an item, or a sentence of it, has more tokens than the model has learned positions for.
    """
    rows = []
    for item in items:
        read = processor.encode_sentences(item.source)
        source = processor.build_source(read)
        context = processor.encode_sentences(item.context, is_target=True) if item.context else []
        given = len(processor.build_target([*context, []])) - 1
        candidates, written = [], processor.encode_sentences(item.candidates, is_target=True)
        for words in written:
            target = processor.build_target([*context, words])
            # The tokens of the template are given; only the words and </s> count.
            labels = [-100] * (given - 1) + target[given:]
            candidates.append({"input_ids": source, "decoder_input_ids": target[:-1], "labels": labels})
        longest = max(len(ids) for row in candidates for ids in row.values())
        if longest > (most := config.max_document_tokens):
            raise ValueError(f"{item.name} has {longest} tokens, the model {most} positions: use less context.")
        sentence = max(map(len, [*read, *context, *written])) + processor.sentence_tokens
        if sentence > (most := config.max_sentence_tokens):
            raise ValueError(
                f"{item.name} has a sentence of {sentence} tokens, the model {most} positions: leave the item out."
            )
        rows.append(candidates)
    return rows


def batches(rows: list[list[dict[str, list[int]]]], max_tokens: int) -> Iterator[list[int]]:
    """Batches items of similar length, with at most `max_tokens` tokens over all their candidates."""
    lengths = [len(row) * max(len(ids) for candidate in row for ids in candidate.values()) for row in rows]
    order = sorted(range(len(rows)), key=lengths.__getitem__)
    yield from token_batches(lengths, order, max([max_tokens, *lengths])) if rows else []


def log_probabilities(
    model: GTransformerForConditionalGeneration, processor: GTransformerProcessor, rows: list[dict[str, list[int]]]
) -> list[float]:
    """Computes the log-probability of the labels of every row, in nats."""
    names = ("input_ids", "decoder_input_ids", "labels")
    data = {name: [row[name] for row in rows] for name in names}
    data["attention_mask"] = [[1] * len(row["input_ids"]) for row in rows]
    padded = {name: values.to(model.device) for name, values in processor.pad(data).items()}
    return label_log_probabilities(model, **padded).sum(dim=1).tolist()


def count_right(items: list[ContrastiveItem], scores: dict[str, list[float]]) -> dict[str, dict[str, Any]]:
    """Counts `items` and those that are `right`, with `accuracy` in percent, by phenomenon, by phenomenon and
    distance, and in total."""
    counts: dict[str, list[bool]] = {}
    for item in items:
        right, *wrong = scores[item.name]
        groups = [item.phenomenon, "all", *([item.group] if item.group else [])]
        groups += [f"{item.phenomenon}, distance {item.distance}"] if item.distance is not None else []
        for group in groups:
            counts.setdefault(group, []).append(right > max(wrong))
    return {
        group: {
            "items": len(counts[group]),
            "right": sum(counts[group]),
            "accuracy": 100 * sum(counts[group]) / len(counts[group]),
        }
        for group in sorted(counts)
    }
