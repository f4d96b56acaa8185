"""Group attention sentence by sentence: linear in the length of the document, without a mask of that length squared.

The groups are contiguous spans. The tokens of sentences of similar length are gathered into `(sentences, longest)`,
passed to the ordinary attention kernel together, and put back. Without attention dropout there are better ways on two
devices: in training on a CPU, the kernel runs on one sentence after another in place, which takes less memory; in half
precision on CUDA, torch's kernel for sequences of different lengths takes all sentences at once. Dense attention under
[`group_mask`] is the reference.

Shape legend: B documents, T queries, S keys, H heads, K head size, N sentences, L tokens of the longest of them.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn

from .group_tags import is_contiguous


# Sentences share a batch of the kernel if the shortest is at least this share of the longest.
SIMILAR_LENGTH = 0.6
# With fewer elements per sentence on average, calls for single sentences cost more than gathering them.
STANDS_ALONE = 6500
# In torch 2.10 the kernel has `is_causal` instead.
HAS_WINDOW = "window_size" in inspect.signature(varlen_attn).parameters


class Bucket(NamedTuple):
    """Sentences of similar length: the shapes `(N, L)` of their queries and `(N, S)` of their keys, and which keys are
    real (`None` if no others are visible)."""

    queries: tuple[int, int]
    keys: tuple[int, int]
    key_mask: Tensor | None


class Packing(NamedTuple):
    """
    Queries or keys of sentences, one after another in the order of the batch, without padding.

    Attributes:
        index: positions of the tokens in the flattened batch.
        cu_seqlens: where each sentence starts, and where the last one ends, `(N + 1,)`, int32.
        max_seqlen: number of tokens of the longest sentence.
    """

    index: Tensor
    cu_seqlens: Tensor
    max_seqlen: int


class Gathering(NamedTuple):
    """
    Indices that bring the tokens of sentences together in buckets, and back.

    Attributes:
        query_index, key_index: positions in the flattened batch, sentence after sentence, each padded to the longest
            of its bucket.
        output_index: the place of every query among the outputs, `(B * T,)`; one past the end for a query that sees
            nothing.
        buckets: the shapes into which the gathered tokens are cut.
    """

    query_index: Tensor
    key_index: Tensor
    output_index: Tensor
    buckets: list[Bucket]


@dataclass
class SentencePlan:
    """
    Positions of the tokens of every sentence of a batch, for one of the three attentions; it replaces a mask.

    Attributes:
        query_starts, query_lengths, key_starts, key_lengths: `(N,)`, in ascending order of length; the starts are
            positions in the flattened batch.
        queries: number of queries, B * T.
        is_causal: whether a query sees only the keys up to its own position.

    The plan is on the CPU. What is derived from it is made once for every device that has layers.
    """

    query_starts: Tensor
    query_lengths: Tensor
    key_starts: Tensor
    key_lengths: Tensor
    queries: int
    is_causal: bool
    made: dict[tuple[str, torch.device], Any] = field(default_factory=dict, repr=False)

    @cached_property
    def spans(self) -> list[tuple[slice, slice]]:
        """Slices of the queries and the keys of every sentence."""
        edges = (self.query_starts, self.query_starts + self.query_lengths, self.key_starts)
        edges = torch.stack([*edges, self.key_starts + self.key_lengths], dim=1).tolist()
        return [(slice(*edge[:2]), slice(*edge[2:])) for edge in edges]

    def packings(self, device: torch.device) -> tuple[Packing, Packing]:
        """Packings of queries and keys."""
        return self._once(self._make_packings, device)

    def gathering(self, device: torch.device) -> Gathering:
        return self._once(self._make_gathering, device)

    def _once(self, make: Callable[[torch.device], Any], device: torch.device) -> Any:
        key = (make.__name__, device)
        if key not in self.made:
            self.made[key] = make(device)
        return self.made[key]

    def _make_packings(self, device: torch.device) -> tuple[Packing, Packing]:
        order = self.query_starts.argsort()
        return (
            _pack(self.query_starts[order], self.query_lengths[order], device),
            _pack(self.key_starts[order], self.key_lengths[order], device),
        )

    def _make_gathering(self, device: torch.device) -> Gathering:
        query_parts, key_parts, buckets = [], [], []
        output_index = self.query_starts.new_full((self.queries,), -1)
        filled = 0
        for part in _similar(torch.maximum(self.query_lengths, self.key_lengths)):
            query_index, query_mask = _fill(self.query_starts[part], self.query_lengths[part])
            key_index, key_mask = _fill(self.key_starts[part], self.key_lengths[part])
            places = torch.arange(filled, filled + query_index.numel(), device=query_index.device)
            output_index[query_index[query_mask]] = places.view_as(query_index)[query_mask]
            filled += query_index.numel()
            # Causality also hides the padding at the end of a sentence.
            needless = self.is_causal or bool(key_mask.all())
            mask = None if needless else _sent(key_mask[:, None, None], device)
            buckets.append(Bucket(tuple(query_index.shape), tuple(key_index.shape), mask))
            query_parts.append(query_index.flatten())
            key_parts.append(key_index.flatten())
        output_index = torch.where(output_index < 0, filled, output_index)
        query_index, key_index = (_sent(torch.cat(parts), device) for parts in (query_parts, key_parts))
        return Gathering(query_index, key_index, _sent(output_index, device), buckets)


def plan_sentences(query_tags: Tensor, key_tags: Tensor, is_causal: bool = False) -> SentencePlan | None:
    """
    Plans group attention from queries with tags `(B, T)` to keys with tags `(B, S)`, as [`tags_on_cpu`] returns them.

    Returns:
        The plan, under which padding gets zeros; or `None` if a query is outside all sentences (with tag 0 it sees
        everything), if a sentence is in several pieces, or if no sentence has both queries and keys.
    """
    if bool((query_tags == 0).any()):
        return None
    query_tags, key_tags = query_tags.clamp(min=0), key_tags.clamp(min=0)
    groups = int(torch.maximum(query_tags.amax(), key_tags.amax())) + 1
    query_lengths, query_starts = _spans(query_tags, groups)
    key_lengths, key_starts = _spans(key_tags, groups)
    used = ((query_lengths > 0) & (key_lengths > 0)).nonzero()[:, 0]
    if not (len(used) and is_contiguous(query_tags) and is_contiguous(key_tags)):
        return None
    used = used[torch.maximum(query_lengths, key_lengths)[used].argsort(stable=True)]
    spans = (query_starts[used], query_lengths[used], key_starts[used], key_lengths[used])
    return SentencePlan(*spans, query_tags.numel(), is_causal)


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
    """Cuts ascending lengths into runs of similar ones."""
    parts, start, values = [], 0, lengths.tolist()
    for end in range(1, len(values) + 1):
        if end == len(values) or values[start] < SIMILAR_LENGTH * values[end]:
            parts.append(slice(start, end))
            start = end
    return parts


def _fill(starts: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Flat positions `(N, longest)` of the tokens of sentences, and which are real; the padding repeats a token."""
    offset = torch.arange(int(lengths.max()), device=starts.device)
    real = offset < lengths[:, None]
    return starts[:, None] + torch.where(real, offset, 0), real


def _pack(starts: Tensor, lengths: Tensor, device: torch.device) -> Packing:
    cu_seqlens = nn.functional.pad(lengths.cumsum(dim=0), (1, 0))
    index = torch.repeat_interleave(starts - cu_seqlens[:-1], lengths)
    index += torch.arange(len(index), device=starts.device)
    return Packing(_sent(index, device), _sent(cu_seqlens.int(), device), int(lengths.max()))


def _sent(places: Tensor, device: torch.device) -> Tensor:
    """Copies to the device without synchronising with it."""
    return places.to(device, non_blocking=True)


def sentence_attention(
    query: Tensor, key: Tensor, value: Tensor, plan: SentencePlan, dropout: float, scaling: float
) -> Tensor:
    """
    Attends from every query to the keys of its own sentence.

    Args:
        query: `(B, H, T, K)`.
        key: `(B, H, S, K)`.
        value: `(B, H, S, K)`.

    Returns:
        `(B, T, H, K)`.
    """
    batch, _, length, _ = query.shape
    large = query.numel() >= STANDS_ALONE * len(plan.query_lengths)
    if not dropout and has_variable_length_kernel(query):
        return packed_attention(query, key, value, plan, scaling)
    if query.device.type != "cpu" or dropout or not torch.is_grad_enabled() or not large:
        return gathered_attention(query, key, value, plan, dropout, scaling)
    output, _ = _SentenceAttention.apply(*map(_tokens, (query, key, value)), plan, scaling)
    return output.unflatten(0, (batch, length))


def _tokens(states: Tensor) -> Tensor:
    """`(B, H, T, K)` to `(B * T, H, K)`: heads are the inner dimension of a projection, so nothing is copied."""
    return states.transpose(1, 2).flatten(0, 1)


class _SentenceAttention(torch.autograd.Function):
    """The CPU kernel of `scaled_dot_product_attention`, sentence by sentence, `(B * T, H, K)`. Only inputs and outputs
    are kept for the gradient; autograd would make a gradient of the whole batch for every sentence."""

    @staticmethod
    def forward(query, key, value, plan, scaling):
        output = _blank(query, plan.query_lengths)
        # All sentences share one tensor, as many small tensors that live long would fragment the memory.
        precision = torch.promote_types(query.dtype, torch.float32)  # of the kernel's sums
        logsumexp = query.new_empty(1, query.shape[1], query.shape[0], dtype=precision)
        queries, keys, values, outputs = _heads_first(query, key, value, output)
        for asked, seen in plan.spans:
            outputs[:, :, asked], logsumexp[:, :, asked] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
                queries[:, :, asked], keys[:, :, seen], values[:, :, seen], is_causal=plan.is_causal, scale=scaling
            )
        return output, logsumexp

    @staticmethod
    def setup_context(ctx, inputs, output):
        *tokens, ctx.plan, ctx.scaling = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*tokens, *output)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output, _):
        *tokens, logsumexp = ctx.saved_tensors
        lengths = (ctx.plan.query_lengths, ctx.plan.key_lengths, ctx.plan.key_lengths)
        gradients = [_blank(states, covered) for states, covered in zip(tokens[:3], lengths, strict=True)]
        queries, keys, values, outputs, grad_outputs = _heads_first(*tokens, grad_output)
        grad_queries, grad_keys, grad_values = _heads_first(*gradients)
        for asked, seen in ctx.plan.spans:
            grad_queries[:, :, asked], grad_keys[:, :, seen], grad_values[:, :, seen] = (
                torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
                    *(grad_outputs[:, :, asked], queries[:, :, asked], keys[:, :, seen], values[:, :, seen]),
                    *(outputs[:, :, asked], logsumexp[:, :, asked], 0.0, ctx.plan.is_causal),
                    scale=ctx.scaling,
                )
            )
        return *gradients, None, None


def _blank(states: Tensor, lengths: Tensor) -> Tensor:
    """Memory for the sentences to fill; zeroed if they leave gaps, as between documents."""
    return torch.empty_like(states) if int(lengths.sum()) == len(states) else torch.zeros_like(states)


def _heads_first(*tokens: Tensor) -> list[Tensor]:
    """`(L, H, K)` to `(1, H, L, K)`."""
    return [states.transpose(0, 1)[None] for states in tokens]


def has_variable_length_kernel(states: Tensor) -> bool:
    """Tells whether torch's FlashAttention-2 takes such states: in half precision, on NVIDIA cards from Ampere on,
    unless it is switched off (`torch.backends.cuda.enable_flash_sdp`). On some cards, heads larger than 192 have no
    gradient."""
    return (
        states.is_cuda
        and HAS_WINDOW
        and torch.version.hip is None
        and torch.backends.cuda.is_flash_attention_available()
        and torch.backends.cuda.flash_sdp_enabled()
        and states.dtype in (torch.float16, torch.bfloat16)
        and states.shape[-1] % 8 == 0
        and states.shape[-1] <= 192
        and torch.cuda.get_device_capability(states.device) >= (8, 0)
    )


def packed_attention(query: Tensor, key: Tensor, value: Tensor, plan: SentencePlan, scaling: float) -> Tensor:
    """Computes [`sentence_attention`] for all sentences at once, without padding."""
    packings = queries, keys = plan.packings(query.device)
    states = (
        _tokens(states).index_select(0, packing.index)
        for states, packing in ((query, queries), (key, keys), (value, keys))
    )
    output = varlen_attn(
        *states,
        *(packing.cu_seqlens for packing in packings),
        *(packing.max_seqlen for packing in packings),
        scale=scaling,
        window_size=(-1, 0 if plan.is_causal else -1),
    )
    blank = output.new_zeros(plan.queries, *output.shape[1:])
    output = blank.index_copy_(0, queries.index, output)
    return output.unflatten(0, (query.shape[0], query.shape[2]))


def gathered_attention(
    query: Tensor, key: Tensor, value: Tensor, plan: SentencePlan, dropout: float, scaling: float
) -> Tensor:
    """Computes [`sentence_attention`] on any device, with sentences of similar length together."""
    query_index, key_index, output_index, buckets = plan.gathering(query.device)
    queries, keys, values = (
        _tokens(states).index_select(0, index)
        for states, index in ((query, query_index), (key, key_index), (value, key_index))
    )
    outputs, first_query, first_key = [], 0, 0
    for bucket in buckets:
        last_query = first_query + bucket.queries[0] * bucket.queries[1]
        last_key = first_key + bucket.keys[0] * bucket.keys[1]
        output = nn.functional.scaled_dot_product_attention(
            queries[first_query:last_query].unflatten(0, bucket.queries).transpose(1, 2),
            keys[first_key:last_key].unflatten(0, bucket.keys).transpose(1, 2),
            values[first_key:last_key].unflatten(0, bucket.keys).transpose(1, 2),
            attn_mask=bucket.key_mask,
            dropout_p=dropout,
            is_causal=plan.is_causal,
            scale=scaling,
        )
        outputs.append(output.transpose(1, 2).flatten(0, 1))
        first_query, first_key = last_query, last_key
    outputs.append(queries.new_zeros(1, *queries.shape[1:]))
    output = torch.cat(outputs).index_select(0, output_index)
    return output.unflatten(0, (query.shape[0], query.shape[2]))
