"""Group tags: the sentence number of each token (paper, equation 3), and the progress of target documents. All are
pure functions of the ids.

Shape legend: B documents, R rows (documents times beams), T tokens (queries), S keys, G sentences of the longest
document.
"""

from typing import Any

import torch
from torch import Tensor
from transformers.utils import logging

from .sentence_template import TargetTemplate


logger = logging.get_logger(__name__)

#: Group tag that distinguishes padding from tokens outside sentences.
PADDING = -1


def opens_sentence(input_ids: Tensor, template: TargetTemplate) -> Tensor:
    """Returns the mask `(R, T)` of the first tokens of sentences in prefixes `(R, T)`, including a last `</s>` if it
    may open another sentence."""
    if not template.eos_opens_next:
        return input_ids == template.prefix[0]
    real = (input_ids != template.pad).cumsum(dim=1) > 0
    if template.start == template.pad:
        real = torch.nn.functional.pad(real[:, 1:], (0, 1), value=True)
    return real & ((real.cumsum(dim=1) == 1) | (input_ids == template.eos_id))


def sentence_progress(input_ids: Tensor, template: TargetTemplate) -> tuple[Tensor, Tensor]:
    """
    Locates the token that follows prefixes `(R, T)`.

    Returns:
        Sentence number, from 1, and number of words before the token in this sentence, both `(R,)`. The sentence
        number is one more than the number of closed sentences, even at the end of a document. The number of words is
        negative until the sentence's prefix is complete.
    """
    opened, place = last_in_sentence(input_ids, template)
    number, words = progress_after(input_ids[:, -1], opened, place, template)
    if template.eos_opens_next:
        return number, words
    return number.clamp(min=1), words.masked_fill(opened == 0, -len(template.prefix))


def last_in_sentence(input_ids: Tensor, template: TargetTemplate) -> tuple[Tensor, Tensor]:
    """The number of the sentence of the last token of prefixes `(R, T)`, 0 before the first one, and the place of the
    token in it, from 0; both `(R,)`."""
    length = input_ids.shape[1]
    opens = opens_sentence(input_ids, template)
    last = (opens * torch.arange(1, length + 1, device=input_ids.device)).amax(dim=1)
    return opens.sum(dim=1), length - last


def progress_after(last: Tensor, number: Tensor, place: Tensor, template: TargetTemplate) -> tuple[Tensor, Tensor]:
    """What [`sentence_progress`] returns for prefixes with these last tokens, given the numbers of their sentences and
    their places in these, from 0; all of one shape."""
    words = place + 1 - template.head - len(template.prefix)
    between = is_ended(last, template) & (place > 0)
    if not template.eos_opens_next:
        # A closed sentence is followed by what opens the next one.
        between = between | (last == template.eos_id)
        number = number + between
    return number, words.masked_fill(between, -len(template.prefix))


def is_ended(last: Tensor, template: TargetTemplate) -> Tensor:
    """Returns a mask `(R,)` of last tokens `(R,)` that end their documents."""
    ended = last == template.pad
    return ended if template.end is None else ended | (last == template.end)


def read_group_tags(input_ids: Tensor, config: Any, is_target: bool, attention_mask: Tensor | None = None) -> Tensor:
    """
    Returns tags of documents: k for all tokens of the k-th sentence (from 1), 0 outside sentences and for padding.

    Args:
        input_ids: `(B, T)`, source documents or decoder inputs.
        config: a [`GTransformerConfig`]; its template sets the boundaries of sentences.
        is_target: whether these are decoder inputs.
        attention_mask: `(B, T)`, 0 where a token is padding.

    Returns:
        `(B, T)`, int64.
    """
    template = config.template
    prefix, suffix = (template.target_prefix, ()) if is_target else (template.source_prefix, template.source_suffix)
    eos_opens_next = is_target and template.eos_opens_next
    if prefix == ("bos",) and not eos_opens_next:
        return group_tags(input_ids, config.bos_token_id, config.eos_token_id, attention_mask)
    real = _real(input_ids, attention_mask)
    if is_target:
        # The decoder may start with the padding token. Later padding tokens follow the end of a document.
        real = real & ((input_ids != config.pad_token_id) | (real.cumsum(dim=1) == 1))
    return closed_group_tags(input_ids, config.eos_token_id, real, eos_opens_next, len(suffix))


def group_tags(
    input_ids: Tensor, bos_token_id: int | None, eos_token_id: int | None, attention_mask: Tensor | None = None
) -> Tensor:
    """
    Returns tags `(B, T)` of documents `<s> w w </s> <s> w </s> ...`: k for `<s>`, words and `</s>` of the k-th
    sentence, 0 outside sentences, as for language codes and padding.

    Args:
        input_ids: `(B, T)`.
        bos_token_id: id of `<s>`, which opens a sentence. With `None`, every tag is 0.
        eos_token_id: id of `</s>`, which closes a sentence. With `None`, a sentence ends before the next `<s>`.
        attention_mask: `(B, T)`, 0 where a token is padding.
    """
    if bos_token_id is None:
        return torch.zeros_like(input_ids)
    in_sentence = real = _real(input_ids, attention_mask)
    opens = (input_ids == bos_token_id) & real
    if eos_token_id is not None:
        closes = (input_ids == eos_token_id) & real
        # Shifted by one, because `</s>` belongs to its sentence.
        in_sentence = real & (last_place(opens) > torch.nn.functional.pad(last_place(closes), (1, -1)))
    return opens.long().cumsum(dim=1) * in_sentence


def _real(input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    return torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()


def closed_group_tags(input_ids: Tensor, eos_token_id: int, real: Tensor, eos_opens_next: bool, suffix: int) -> Tensor:
    """
    Returns tags `(B, T)` of documents `(B, T)` with only `</s>` between sentences.

    Args:
        real: `(B, T)`, bool, false for padding.
        eos_opens_next: whether `</s>` belongs to the next sentence.
        suffix: number of tokens after `</s>` that belong to its sentence.
    """
    closes = (input_ids == eos_token_id) & real
    if eos_opens_next:
        boundaries = closes & (real.cumsum(dim=1) > 1)
    else:
        boundaries = torch.nn.functional.pad(closes, (1 + suffix, -1 - suffix))
    return (1 + boundaries.long().cumsum(dim=1)) * real


def last_place(mask: Tensor) -> Tensor:
    """Returns the place `(B, T)` of the last true element up to each token of a mask `(B, T)`, from 1; 0 before it."""
    # `cummax` would be simpler, but cannot be exported to ONNX.
    place = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    count = mask.long().cumsum(dim=1)
    places = torch.nn.functional.pad(torch.zeros_like(count), (1, 0)).scatter(1, count * mask, place * mask)
    return places.gather(1, count)


def sentence_positions(tags: Tensor) -> Tensor:
    """Returns positions `(B, T)` of tokens in their contiguous sentences, from 0, given tags `(B, T)`. Tokens outside
    sentences, such as padding, have position 0. A document without tags counts as one sentence."""
    position = torch.arange(tags.shape[1], device=tags.device).expand_as(tags)
    starts = tags != torch.nn.functional.pad(tags, (1, -1), value=PADDING)
    outside = (tags <= 0) & (tags > 0).any(dim=1, keepdim=True)
    return (position - (last_place(starts) - 1)).masked_fill(outside, 0)


def document_positions(mask: Tensor) -> Tensor:
    """Returns positions `(B, T)` of tokens among the real ones of a mask `(B, T)`, from 0."""
    return (mask.long().cumsum(dim=1) - 1).clamp(min=0)


def tags_on_cpu(tags: Tensor, real: Tensor) -> Tensor:
    """Returns tags `(B, T)` on the CPU, [`PADDING`] where `real` `(B, T)` is false. Synchronises with the device once,
    so that sentence boundaries need no further synchronisation."""
    return tags.long().masked_fill(~real, PADDING).cpu()


def same_group(query_tags: Tensor, key_tags: Tensor) -> Tensor:
    """
    Returns the mask of group attention (M of the paper's equation 7) from queries with tags `(B, T)` to keys with tags
    `(B, S)`: `(B, 1, T, S)`, bool. A query sees the keys of its own sentence. A query with tag 0, outside all
    sentences, sees every key.
    """
    query_tags = query_tags[:, None, :, None]
    return (query_tags == key_tags[:, None, None, :]) | (query_tags == 0)


def is_contiguous(tags: Tensor) -> bool:
    """Returns whether every sentence is contiguous in documents with tags `(B, T)`."""
    starts = (tags != torch.nn.functional.pad(tags, (1, -1))) & (tags > 0)
    return bool(starts.sum() == (sentence_lengths(tags) > 0).sum())


def sentence_lengths(tags: Tensor) -> Tensor:
    """Returns the number of tokens of every sentence, `<s>` and `</s>` included, as `(B, G)` from tags `(B, T)`; 0
    after the last sentence of a document."""
    groups = int(tags.max()) if tags.numel() else 0
    lengths = tags.new_zeros(tags.shape[0], groups + 1)
    lengths.scatter_add_(1, tags, torch.ones_like(tags))
    return lengths[:, 1:]


def warn_of_unknown_sentences(side: str) -> None:
    if not torch.compiler.is_compiling():
        argument = "group_tags" if side == "source" else "decoder_group_tags"
        logger.warning_once(
            f"The sentences of the {side} are unknown, so its attention is unrestricted: pass {argument}, or the ids."
        )
