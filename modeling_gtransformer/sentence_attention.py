"""Group attention sentence by sentence: linear in the length of the document, without a mask of that length squared.

The groups are contiguous spans. The tokens of sentences of similar length are gathered into `(sentences, max_seqlen)`,
pass through the ordinary attention kernel together, and return to their places. In half precision on CUDA, torch's
kernel for sequences of different lengths takes all sentences at once, in self-attention where they lie. Dense
attention under [`group_mask`] is the reference. Compiled graphs use it, because the boundaries of sentences are
data-dependent.
On a GPU and in packed rows, documents are spans, too, to which global attention is restricted.

Shape legend: B documents, T queries, S keys, H heads, K head size, N sentences, L tokens of the longest of them,
P tokens of all documents.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn

from .group_tags import is_contiguous


# Sentences share a batch of the kernel if the shortest is at least this share of the longest.
SIMILAR_LENGTH = 0.6


class Packing(NamedTuple):
    """
    Queries or keys of sentences, one after another in the order of the batch.

    Attributes:
        places: the tokens of the flattened batch that are taken; `None` for all.
        cu_seqlens: start of each sentence, and end of the last one, `(N + 1,)`, int32.
        max_seqlen: number of tokens of the longest sentence.
    """

    places: Tensor | None
    cu_seqlens: Tensor
    max_seqlen: int


class Bucket(NamedTuple):
    """Sentences of similar length: the shapes `(N, L)` of their queries and `(N, S)` of their keys, and which keys a
    query may see, `(N, 1, 1 or L, S)`; `None` for all, or all up to its own."""

    queries: tuple[int, int]
    keys: tuple[int, int]
    key_mask: Tensor | None


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
        queries, keys: numbers of all queries, B * T, and of all keys, B * S.
        is_causal: whether a query sees only the keys up to its own position, counted from the end.
        is_alike: whether queries and keys have the same tags.

    The plan is on the CPU. All layers on a device share the indices that are derived from it.
    """

    query_starts: Tensor
    query_lengths: Tensor
    key_starts: Tensor
    key_lengths: Tensor
    queries: int
    keys: int
    is_causal: bool
    is_alike: bool
    derived: dict[tuple[str, torch.device], Any] = field(default_factory=dict, repr=False)

    def packings(self, device: torch.device) -> tuple[Packing, Packing]:
        """Packings of queries and keys."""
        return self._once("packings", self._pack, device)

    def gathering(self, device: torch.device) -> Gathering:
        return self._once("gathering", self._gather, device)

    def _once(self, name: str, make: Callable[[torch.device], Any], device: torch.device) -> Any:
        if (name, device) not in self.derived:
            self.derived[name, device] = make(device)
        return self.derived[name, device]

    def _pack(self, device: torch.device) -> tuple[Packing, Packing]:
        order = self.query_starts.argsort()
        if self.is_alike:
            packing = _pack_in_place(self.query_starts[order], self.query_lengths[order], self.queries, device)
            return packing, packing
        return (
            _pack(self.query_starts[order], self.query_lengths[order], self.queries, device),
            _pack(self.key_starts[order], self.key_lengths[order], self.keys, device),
        )

    def _gather(self, device: torch.device) -> Gathering:
        query_parts, key_parts, buckets = [], [], []
        output_index = self.query_starts.new_full((self.queries,), -1)
        filled = 0
        for part in similar_lengths(torch.maximum(self.query_lengths, self.key_lengths)):
            query_index, query_mask = _fill(self.query_starts[part], self.query_lengths[part])
            key_index, key_mask = _fill(self.key_starts[part], self.key_lengths[part])
            places = torch.arange(filled, filled + query_index.numel(), device=query_index.device)
            output_index[query_index[query_mask]] = places.view_as(query_index)[query_mask]
            filled += query_index.numel()
            mask = self._mask(part, query_mask, key_mask)
            sizes = tuple(query_index.shape), tuple(key_index.shape)
            buckets.append(Bucket(*sizes, None if mask is None else _send(mask, device)))
            query_parts.append(query_index.flatten())
            key_parts.append(key_index.flatten())
        output_index = torch.where(output_index < 0, filled, output_index)
        query_index, key_index = (_send(torch.cat(parts), device) for parts in (query_parts, key_parts))
        return Gathering(query_index, key_index, _send(output_index, device), buckets)

    def _mask(self, part: slice, query_mask: Tensor, key_mask: Tensor) -> Tensor | None:
        """The mask of a bucket, given which of its queries and keys are real."""
        if not self.is_causal:
            return None if key_mask.all() else key_mask[:, None, None]
        earlier = self.key_lengths[part] - self.query_lengths[part]
        if not earlier.any():  # causality also hides the padding at the end of a sentence
            return None
        query, key = (torch.arange(mask.shape[1], device=mask.device) for mask in (query_mask, key_mask))
        return key <= (query[:, None] + earlier[:, None, None, None])


def plan_sentences(query_tags: Tensor, key_tags: Tensor, is_causal: bool = False) -> SentencePlan | None:
    """
    Plans group attention from queries with tags `(B, T)` to keys with tags `(B, S)`, as [`tags_on_cpu`] returns them.

    Returns:
        The plan, under which outputs of padding mean nothing; or `None` if a query is outside all sentences (with tag
            0 it sees everything), if a sentence is not contiguous, or if no sentence has both queries and keys.
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
    return SentencePlan(*spans, query_tags.numel(), key_tags.numel(), is_causal, query_tags.equal(key_tags))


def _spans(tags: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Length and first flat position of every (document, tag), `(B * groups,)`; tag 0 has length 0."""
    batch, length = tags.shape
    keys = tags + torch.arange(batch, device=tags.device)[:, None] * groups
    lengths = torch.bincount(keys.flatten(), minlength=batch * groups)
    lengths[::groups] = 0
    position = torch.arange(batch * length, device=tags.device)
    starts = position.new_full((batch * groups,), batch * length).scatter_reduce(0, keys.flatten(), position, "amin")
    return lengths, starts


def similar_lengths(lengths: Tensor) -> list[slice]:
    """Cuts ascending lengths into runs of similar ones."""
    parts, start, values = [], 0, lengths.tolist()
    for end in range(1, len(values) + 1):
        if end == len(values) or values[start] < SIMILAR_LENGTH * values[end]:
            parts.append(slice(start, end))
            start = end
    return parts


def _fill(starts: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Flat positions `(N, L)` of the tokens of sentences, and which are real; the padding repeats a token."""
    offset = torch.arange(int(lengths.max()), device=starts.device)
    real = offset < lengths[:, None]
    return starts[:, None] + torch.where(real, offset, 0), real


def _pack_in_place(starts: Tensor, lengths: Tensor, tokens: int, device: torch.device) -> Packing:
    """Packs sentences with these ascending starts, and the padding between them, out of so many tokens. Pieces of
    padding, none longer than a sentence, attend to themselves: taking the tokens out and back would cost more."""
    ends, longest = starts + lengths, int(lengths.max())
    cuts = torch.arange(0, tokens, longest, device=starts.device)
    before = torch.searchsorted(starts, cuts, right=True) - 1
    cuts = cuts[(before < 0) | (cuts >= ends[before])]
    cu_seqlens = torch.cat([starts.new_tensor([0, tokens]), cuts, starts, ends]).unique()
    return Packing(None, _send(cu_seqlens.int(), device), longest)


def _pack(starts: Tensor, lengths: Tensor, tokens: int, device: torch.device) -> Packing:
    """Packs sentences with these starts, in their order, out of so many tokens."""
    cu_seqlens = nn.functional.pad(lengths.cumsum(dim=0), (1, 0))
    places = None
    if cu_seqlens[-1] < tokens or not starts.equal(cu_seqlens[:-1]):
        places = torch.repeat_interleave(starts - cu_seqlens[:-1], lengths)
        places = _send(places + torch.arange(len(places), device=starts.device), device)
    return Packing(places, _send(cu_seqlens.int(), device), int(lengths.max()))


def _send(places: Tensor, device: torch.device) -> Tensor:
    """Copies to the device without synchronising with it."""
    return places.to(device, non_blocking=True)


class PackedDocuments:
    """
    All tokens of the documents of a batch in one row, so that a pass over them computes nothing for padding. They are
    ordered by document and sentence: a source, whose order does not matter to attention, may have sentences in pieces.

    Args:
        real: which tokens of the batch are not padding, `(B, T)`, bool.
        tags: group tags, `(B, T)`.

    Attributes:
        index: document and place in it of every token, each `(P,)`.
        tags, document: group tag and document, from 1, of every token, `(1, P)`.
        place: position of every token in the row, `(B, T)`; arbitrary for padding.
    """

    def __init__(self, real: Tensor, tags: Tensor):
        document, token = real.nonzero(as_tuple=True)
        order = (document * (tags.max() + 1) + tags[document, token]).argsort(stable=True)
        self.index = document[order], token[order]
        self.tags, self.document = self.pack(tags), self.index[0][None] + 1
        self.place = torch.zeros_like(tags).index_put(self.index, torch.arange(len(order), device=tags.device))

    def pack(self, values: Tensor) -> Tensor:
        """Brings values of the batch, `(B, T, ...)`, into the row: `(1, P, ...)`."""
        return values[tuple(each.to(values.device) for each in self.index)][None]

    def plan_by_sentence(self, keys: "PackedDocuments", is_causal: bool = False) -> SentencePlan:
        """Plans attention from these tokens, all in sentences, to those of the same sentences."""
        size = int(torch.maximum(self.tags.max(), keys.tags.max())) + 1
        return _planned(self._sentences(size), keys._sentences(size), is_causal)

    def plan_by_document(self, keys: "PackedDocuments", is_causal: bool = False) -> SentencePlan:
        """Plans attention from these tokens to those of the same documents."""
        return _planned(self.document.cpu(), keys.document.cpu(), is_causal)

    def _sentences(self, size: int) -> Tensor:
        """Numbers of the sentences among those of all documents, `(1, P)`, on the CPU; 0 outside them."""
        return torch.where(self.tags > 0, self.document * size + self.tags, 0).cpu()


def _planned(query_tags: Tensor, key_tags: Tensor, is_causal: bool) -> SentencePlan:
    plan = plan_sentences(query_tags, key_tags, is_causal)
    assert plan is not None  # `None` would mask nothing
    return plan


def sentence_attention(
    query: Tensor, key: Tensor, value: Tensor, plan: SentencePlan, dropout: float, scaling: float
) -> Tensor:
    """
    Attends from every query to the keys of its own sentence.

    Args:
        query: `(B, H, T, K)`.
        key, value: `(B, H, S, K)`.

    Returns:
        `(B, T, H, K)`.
    """
    # Torch does not document what a causal query sees where there are more keys than queries.
    is_documented = plan.is_alike or not plan.is_causal
    if not dropout and is_documented and has_variable_length_kernel(query):
        return packed_attention(query, key, value, plan, scaling)
    return gathered_attention(query, key, value, plan, dropout, scaling)


def has_variable_length_kernel(states: Tensor) -> bool:
    """Whether torch's FlashAttention-2 takes such states: in half precision, on NVIDIA cards from Ampere on, unless it
    is switched off (`torch.backends.cuda.enable_flash_sdp`). On some cards, heads larger than 192 have no gradient."""
    return (
        states.is_cuda
        and torch.version.hip is None
        and torch.backends.cuda.is_flash_attention_available()
        and torch.backends.cuda.flash_sdp_enabled()
        and states.dtype in (torch.float16, torch.bfloat16)
        and states.shape[-1] % 8 == 0
        and states.shape[-1] <= 192
        and torch.cuda.get_device_capability(states.device) >= (8, 0)
    )


def packed_attention(query: Tensor, key: Tensor, value: Tensor, plan: SentencePlan, scaling: float) -> Tensor:
    """Computes [`sentence_attention`] for all sentences at once."""
    queries, keys = plan.packings(query.device)
    output = varlen_attn(
        *(
            _gathered(states, places)
            for states, places in ((query, queries.places), (key, keys.places), (value, keys.places))
        ),
        queries.cu_seqlens,
        keys.cu_seqlens,
        queries.max_seqlen,
        keys.max_seqlen,
        scale=scaling,
        window_size=(-1, 0 if plan.is_causal else -1),
    )
    if queries.places is not None:
        output = output.new_zeros(plan.queries, *output.shape[1:]).index_copy_(0, queries.places, output)
    return output.unflatten(0, (query.shape[0], query.shape[2]))


def gathered_attention(
    query: Tensor, key: Tensor, value: Tensor, plan: SentencePlan, dropout: float, scaling: float
) -> Tensor:
    """Computes [`sentence_attention`] on any device, with sentences of similar length together."""
    query_index, key_index, output_index, buckets = plan.gathering(query.device)
    query_sizes = [sentences * length for (sentences, length), _, _ in buckets]
    key_sizes = [sentences * length for _, (sentences, length), _ in buckets]
    queries = _gathered(query, query_index)
    parts = (
        queries.split(query_sizes),
        _gathered(key, key_index).split(key_sizes),
        _gathered(value, key_index).split(key_sizes),
    )
    outputs = [queries.new_zeros(1, *queries.shape[1:])]
    for bucket, of_queries, of_keys, of_values in zip(buckets, *parts, strict=True):
        output = nn.functional.scaled_dot_product_attention(
            of_queries.unflatten(0, bucket.queries).transpose(1, 2),
            of_keys.unflatten(0, bucket.keys).transpose(1, 2),
            of_values.unflatten(0, bucket.keys).transpose(1, 2),
            attn_mask=bucket.key_mask,
            dropout_p=dropout,
            is_causal=plan.is_causal and bucket.key_mask is None,
            scale=scaling,
        )
        outputs.append(output.transpose(1, 2).flatten(0, 1))
    # Zeros come last, for queries that see nothing.
    output = torch.cat([*outputs[1:], outputs[0]]).index_select(0, output_index)
    return output.unflatten(0, (query.shape[0], query.shape[2]))


def _gathered(states: Tensor, index: Tensor | None) -> Tensor:
    """Takes states `(B, H, T, K)` at flat positions `(X,)`, by default all: `(X, H, K)`. Heads are the inner dimension
    of a projection, so that flattening copies nothing."""
    flat = states.transpose(1, 2).flatten(0, 1)
    return flat if index is None else flat.index_select(0, index)
