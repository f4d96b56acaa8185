"""Group attention sentence by sentence: linear in the length of the document, without a mask of its length squared.

The groups are contiguous spans, so the tokens of all sentences of a batch can be gathered into `(sentences, longest)`,
given to the ordinary attention kernel, and put back. Dense attention under [`group_mask`] is the reference.

Shape legend: B documents, T queries, S keys, H heads, K head size, N sentences, L tokens of the longest of them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .group_tags import in_one_piece


# Sentences share a batch of the kernel if the shortest is at least this share of the longest.
SIMILAR_LENGTH = 0.6


@dataclass
class Bucket:
    """Sentences of similar length: `(N, L)` queries, `(N, S)` keys, which keys are real (`None`: all that matter)."""

    queries: tuple[int, int]
    keys: tuple[int, int]
    key_mask: Tensor | None


@dataclass
class SentencePlan:
    """
    Where the tokens of every sentence of a batch are, for one of the three attentions; takes the place of a mask.

    Attributes:
        query_index, key_index: positions in the flattened batch, sentence after sentence, each filled up to the
            longest of its bucket.
        output_index: `(B * T,)`, the place of every query among the outputs; one past the end for a query that sees
            nothing.
        buckets: the shapes into which the gathered tokens are cut.
        is_causal: whether a query sees only the keys up to its own position.
    """

    query_index: Tensor
    key_index: Tensor
    output_index: Tensor
    buckets: list[Bucket]
    is_causal: bool


def plan_sentences(query_tags: Tensor, key_tags: Tensor, is_causal: bool = False) -> SentencePlan | None:
    """
    Plan group attention from queries with tags `(B, T)` to keys with tags `(B, S)`.

    Returns:
        The plan, or `None` if the tags have no contiguous sentences. Queries with tag 0 will get zeros: it is the
        caller's business that these are padding.
    """
    groups = int(torch.maximum(query_tags.amax(), key_tags.amax())) + 1
    query_lengths, query_starts = _spans(query_tags, groups)
    key_lengths, key_starts = _spans(key_tags, groups)
    used = ((query_lengths > 0) & (key_lengths > 0)).nonzero()[:, 0]
    if not (len(used) and in_one_piece(query_tags) and in_one_piece(key_tags)):
        return None
    used = used[torch.maximum(query_lengths, key_lengths)[used].argsort(stable=True)]
    query_lengths, query_starts, key_lengths, key_starts = (
        spans[used] for spans in (query_lengths, query_starts, key_lengths, key_starts)
    )

    query_parts, key_parts, buckets = [], [], []
    output_index = query_tags.new_full((query_tags.numel(),), -1)
    filled = 0
    for part in _similar(torch.maximum(query_lengths, key_lengths)):
        query_index, query_mask = _fill(query_starts[part], query_lengths[part])
        key_index, key_mask = _fill(key_starts[part], key_lengths[part])
        places = torch.arange(filled, filled + query_index.numel(), device=query_tags.device)
        output_index[query_index[query_mask]] = places.view_as(query_index)[query_mask]
        filled += query_index.numel()
        # Causality hides the filling at the end of a sentence as well.
        needs_mask = not is_causal and not bool(key_mask.all())
        buckets.append(
            Bucket(tuple(query_index.shape), tuple(key_index.shape), key_mask[:, None, None] if needs_mask else None)
        )
        query_parts.append(query_index.flatten())
        key_parts.append(key_index.flatten())
    output_index = torch.where(output_index < 0, filled, output_index)
    return SentencePlan(torch.cat(query_parts), torch.cat(key_parts), output_index, buckets, is_causal)


def _spans(tags: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Length and first flat position of every (document, tag), `(B * groups,)`; those of tag 0 have no length."""
    batch, length = tags.shape
    keys = tags + torch.arange(batch, device=tags.device)[:, None] * groups
    lengths = torch.bincount(keys.flatten(), minlength=batch * groups)
    lengths[::groups] = 0
    position = torch.arange(batch * length, device=tags.device)
    starts = position.new_full((batch * groups,), batch * length).scatter_reduce(0, keys.flatten(), position, "amin")
    return lengths, starts


def _similar(lengths: Tensor) -> list[slice]:
    """Cut ascending lengths into runs of similar ones."""
    parts, start, values = [], 0, lengths.tolist()
    for end in range(1, len(values) + 1):
        if end == len(values) or values[start] < SIMILAR_LENGTH * values[end]:
            parts.append(slice(start, end))
            start = end
    return parts


def _fill(starts: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Flat positions `(N, longest)` of the tokens of sentences, and which are real; the filling repeats a token."""
    offset = torch.arange(int(lengths.max()), device=starts.device)
    real = offset < lengths[:, None]
    return starts[:, None] + torch.where(real, offset, 0), real


def sentence_attention(
    query: Tensor, key: Tensor, value: Tensor, plan: SentencePlan, dropout: float, scaling: float
) -> Tensor:
    """
    Attention of every query to the keys of its own sentence.

    Args:
        query: `(B, H, T, K)`.
        key, value: `(B, H, S, K)`.

    Returns:
        `(B, T, H, K)`.
    """
    # Heads are the inner dimension of a projection, so a token's are one run of memory.
    queries, keys, values = (
        states.transpose(1, 2).flatten(0, 1).index_select(0, index.to(states.device))
        for states, index in ((query, plan.query_index), (key, plan.key_index), (value, plan.key_index))
    )
    outputs, first_query, first_key = [], 0, 0
    for bucket in plan.buckets:
        last_query = first_query + bucket.queries[0] * bucket.queries[1]
        last_key = first_key + bucket.keys[0] * bucket.keys[1]
        output = nn.functional.scaled_dot_product_attention(
            queries[first_query:last_query].unflatten(0, bucket.queries).transpose(1, 2),
            keys[first_key:last_key].unflatten(0, bucket.keys).transpose(1, 2),
            values[first_key:last_key].unflatten(0, bucket.keys).transpose(1, 2),
            attn_mask=None if bucket.key_mask is None else bucket.key_mask.to(query.device),
            dropout_p=dropout,
            is_causal=plan.is_causal,
            scale=scaling,
        )
        outputs.append(output.transpose(1, 2).flatten(0, 1))
        first_query, first_key = last_query, last_key
    outputs.append(queries.new_zeros(1, *queries.shape[1:]))
    output = torch.cat(outputs).index_select(0, plan.output_index.to(query.device))
    return output.unflatten(0, (query.shape[0], query.shape[2]))
