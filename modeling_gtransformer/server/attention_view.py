"""Attention of one sentence as HTML: global attention over the sentences of its segment, and gates."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import torch
from torch import Tensor


# Captions of global attention, and labels of gates, by stack.
CAPTIONS = {
    "cross": "Source sentences that the translation attends to (global cross-attention)",
    "encoder": "Source sentences that the source attends to (global attention of the encoder)",
}
GATES = {"cross": "cross-attention", "encoder": "encoder", "decoder": "decoder"}


@dataclass(frozen=True)
class AttendedSentences:
    """
    Global attention of one sentence, averaged over its tokens, heads and layers.

    Attributes:
        shares: for "cross" and "encoder", if they have global attention, the share of each source sentence of the
            segment. Shares sum to 1.
        gates: for each stack with combined layers, the share of group attention.
    """

    shares: dict[str, list[float]]
    gates: dict[str, float]


def attended_sentences(
    model: Any, processor: Any, pairs: Sequence[dict[str, Any]], sentence: int
) -> AttendedSentences:
    """
    Computes the attention of a sentence and its translation, in a forward pass over its segment.

    Args:
        model, processor: a G-Transformer and its processor, from this package or from the code of a checkpoint.
        pairs: `source_text` and `translation_text` of the sentences of the segment.
        sentence: index of the sentence in the segment.

    Raises:
        ValueError: the segment exceeds the model's positions, because the sentence was translated in parts.
    """
    source = torch.tensor([processor.build_source(_words(processor, [pair["source_text"] for pair in pairs]))])
    words = _words(processor, [pair["translation_text"] for pair in pairs], is_target=True)
    target = model.prepare_decoder_input_ids_from_labels(torch.tensor([processor.build_labels(words)]))
    if max(source.shape[1], target.shape[1]) > model.config.max_document_tokens:
        raise ValueError("Attention is not available: the sentence is too long for one pass through the model.")
    sentences, targets = (
        stack.read_group_tags(ids, None, None)[0] - 1
        for stack, ids in ((model.model.encoder, source), (model.model.decoder, target))
    )
    own = {"encoder": sentences == sentence, "decoder": targets == sentence, "cross": targets == sentence}
    weights: dict[str, list[Tensor]] = {stack: [] for stack in GATES}
    gates: dict[str, list[Tensor]] = {stack: [] for stack in GATES}

    def record(stack: str, layer: int, by_kind: dict[str, Tensor], gate: Tensor | None) -> None:
        if "global" in by_kind:
            weights[stack].append(by_kind["global"][0].float().mean(dim=0)[own[stack]].mean(dim=0))
        if gate is not None:
            gates[stack].append(gate[0, own[stack]].float().mean())

    with torch.inference_mode():
        model(
            input_ids=source.to(model.device),
            decoder_input_ids=target.to(model.device),
            use_cache=False,
            attention_recorder=record,
        )
    return AttendedSentences(
        {
            stack: torch.zeros(len(pairs)).index_add(0, sentences, torch.stack(weights[stack]).mean(0).cpu()).tolist()
            for stack in CAPTIONS
            if weights[stack]
        },
        {stack: torch.stack(values).mean().item() for stack, values in gates.items() if values},
    )


def _words(processor: Any, sentences: Sequence[str], is_target: bool = False) -> list[list[int]]:
    """Returns the word ids of sentences. Unlike a processor, it accepts translations without words."""
    return [processor.encode_sentences([text], is_target)[0] if text.strip() else [] for text in sentences]


def attention_html(
    attention: AttendedSentences, sources: Sequence[str], language: str, first: int, sentence: int
) -> str:
    """
    Draws horizontal bars, one per source sentence of the segment and one per gate.

    Args:
        sources: source sentences of the segment.
        language: code of the source language, such as "de".
        first: number of the first sentence in the document.
        sentence: index of the attending sentence in the segment.
    """
    figures = []
    for stack, shares in attention.shares.items():
        items = [
            _bar(f"{first + index}. {text}", share, f'lang="{language}" dir="auto"', index == sentence)
            for index, (text, share) in enumerate(zip(sources, shares, strict=True))
        ]
        figures.append(_figure(CAPTIONS[stack], items))
    if not figures:
        figures.append("<p>This model has no global attention to the source. A sentence attends only to itself.</p>")
    if attention.gates:
        items = [_bar(GATES[stack], gate) for stack, gate in attention.gates.items()]
        figures.append(_figure("Share of group attention, within the sentence (mean gate)", items))
    return "".join(figures)


def _figure(caption: str, bars: Sequence[str]) -> str:
    return f'<figure class="bars"><figcaption>{caption}</figcaption><ul>{"".join(bars)}</ul></figure>'


def _bar(label: str, share: float, attributes: str = "", own: bool = False) -> str:
    mark = ' <span class="own">(the sentence itself)</span>' if own else ""
    return (
        f"<li><span><span {attributes}>{escape(label)}</span>{mark}</span>"
        f'<span class="bar" style="--share: {share:.2%}"></span><span class="share">{share:.1%}</span></li>'
    )
