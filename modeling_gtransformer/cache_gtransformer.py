"""The cache of generation: group attention keeps the open sentence, global attention the document.

Shape legend: B documents, R rows (documents times beams), W beams of a search, T target tokens so far, C tokens that
some beam sees, S source tokens, G source sentences, H heads, K head size, D model size, N source tokens that the beams
of a search see in a step.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import Seq2SeqLMOutput

from .configuration_gtransformer import GTransformerConfig
from .group_tags import PADDING, sentence_lengths


# Name of the cache in inputs and outputs of models: "past_key_values" before Transformers 5.24, then "cache".
CACHE_NAMES = ("past_key_values", "cache")
CACHE_NAME = "cache" if "cache" in {field.name for field in fields(Seq2SeqLMOutput)} else "past_key_values"

# Minimum number of places that a full buffer over the document gains.
GROWTH = 64
# Tokens that no beam sees any more are dropped every this many steps.
DROPS_AFTER = 16


class TargetCache(EncoderDecoderCache):
    """A cache of Transformers that also stores the target ids, from which the sentence of a token follows. They move
    along with their keys."""

    def __init__(self, self_attention_cache: Cache, cross_attention_cache: Cache):
        super().__init__(self_attention_cache, cross_attention_cache)
        self.input_ids: Tensor | None = None

    @classmethod
    def around(cls, cache: EncoderDecoderCache) -> "TargetCache":
        """Wraps another cache and shares all that it holds."""
        shared = cls(cache.self_attention_cache, cache.cross_attention_cache)
        shared.is_updated = cache.is_updated
        return shared

    def remember(self, input_ids: Tensor) -> Tensor:
        """
        Appends the new ids `(B, T)` and returns all of them.

        Raises:
            ValueError: the ids of cached tokens are unknown.
        """
        length = self.get_seq_length()
        known = 0 if self.input_ids is None else self.input_ids.shape[1]
        # The length of a static cache is a tensor; a graph that is exported with one keeps no ids from step to step.
        if length != known if isinstance(length, int) else torch.compiler.is_exporting():
            raise ValueError(
                "The sentences of the cached tokens are unknown: pass decoder_group_tags for these and the new tokens."
            )
        self.input_ids = input_ids if self.input_ids is None else torch.cat([self.input_ids, input_ids], dim=1)
        return self.input_ids

    def reorder_cache(self, beam_idx: Tensor) -> None:
        super().reorder_cache(beam_idx)
        self._select(beam_idx)

    def batch_select_indices(self, indices: Tensor) -> None:
        super().batch_select_indices(indices)
        self._select(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        super().batch_repeat_interleave(repeats)
        if self.input_ids is not None:
            self.input_ids = self.input_ids.repeat_interleave(repeats, dim=0)

    def crop(self, *args: int, **kwargs: int) -> None:
        super().crop(*args, **kwargs)
        if self.input_ids is not None:
            self.input_ids = self.input_ids[:, : self.get_seq_length()]

    def _select(self, rows: Tensor) -> None:
        if self.input_ids is not None:
            self.input_ids = self.input_ids[rows.to(self.input_ids.device)]


class SourceSentences(NamedTuple):
    """
    The source sentences that the new tokens of a step see. Those of a search lie in one range of N tokens.

    Attributes:
        mask: which tokens of the range each beam sees, `(R / W, W, N)`, bool.
        index: positions of the range in the flattened sources, `(R / W, N)`.
        moved: searches whose range is another than before, `(M,)`; `None` if this is not known.
    """

    mask: Tensor
    index: Tensor
    moved: Tensor | None


class StepCache(EncoderDecoderCache, ABC):
    """
    Keys and values as attention sees them at every step, for documents or sentences that grow token by token.

    Attributes:
        length: number of tokens that were read.
    """

    length: int

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.length

    @abstractmethod
    def target(self, layer_idx: int, kind: str, keys: Tensor, values: Tensor) -> tuple:
        """Stores keys and values of new tokens, and returns those that they may see."""

    @abstractmethod
    def source(
        self, layer_idx: int, kind: str, project: Callable[[Tensor], tuple[Tensor, Tensor]], states: Tensor
    ) -> tuple:
        """Returns keys and values of the source, which `project` makes from its states."""


class SharedTokens:
    """
    Keys and values of the tokens that the beams of searches have written. Attention reads each token once for all
    beams. A mask marks the tokens that each beam sees, and only this mask is reordered with the beams.

    Args:
        seen: which tokens each beam sees, `(R / W, W, C)`, bool. They are the same for all beams of a search.

    Attributes:
        layers: keys and values by layer, `(R / W, H, C, K)` and space for more tokens.
    """

    def __init__(self, seen: Tensor):
        self.seen, self.steps_since_drop = seen, DROPS_AFTER  # most of a long prefix may be closed sentences
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}

    def grow(self) -> None:
        """Makes place for a new token of every beam. Every few steps, drops those that no beam sees."""
        if self.steps_since_drop == DROPS_AFTER:
            self._drop()
        beams = self.seen.shape[1]
        new = torch.eye(beams, dtype=torch.bool, device=self.seen.device)
        self.seen = torch.cat([self.seen, new.expand(len(self.seen), -1, -1)], dim=2)
        self.steps_since_drop += 1

    def _drop(self) -> None:
        """Drops the tokens that no beam sees. Tokens before the first of them stay where they are."""
        self.steps_since_drop = 0
        is_kept = self.seen.any(dim=1)
        first, kept = torch.stack([is_kept.all(dim=0).int().argmin(), is_kept.sum(dim=1).max()]).tolist()
        if kept == is_kept.shape[1]:  # one search needs all places
            return
        # Kept tokens come first, in their order; where a search has fewer, dropped ones fill the rest.
        order = (~is_kept[:, first:]).int().argsort(dim=1, stable=True)[:, : kept - first] + first
        self.seen = torch.cat([self.seen[..., :first], self.seen.take_along_dim(order[:, None], 2)], dim=2)
        for buffer in chain.from_iterable(self.layers.values()):
            buffer[:, :, first:kept] = buffer.take_along_dim(order[:, None, :, None].to(buffer.device), 2)

    def store(self, layer_idx: int, new: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Stores keys and values `(R, H, T, K)` of a prefix or of new tokens, and returns all, `(R / W, H, C, K)`."""
        beams, places = self.seen.shape[1:]
        is_prefix = layer_idx not in self.layers
        by_search = [each.unflatten(0, (-1, beams)) for each in new]
        # The tokens of a prefix are those of all beams; a new token is that of its beam.
        added = [each[:, 0] if is_prefix else each[:, :, :, 0].transpose(1, 2) for each in by_search]
        stored = self.layers.get(layer_idx) or tuple(each[:, :, :0] for each in added)
        if stored[0].shape[2] < places:
            gained = (0, 0, 0, places + max(GROWTH, places // 2) - stored[0].shape[2])
            stored = self.layers[layer_idx] = tuple(nn.functional.pad(each, gained) for each in stored)
        for buffer, states in zip(stored, added, strict=True):
            buffer[:, :, places - states.shape[2] : places] = states
        return stored[0][:, :, :places], stored[1][:, :, :places]

    def reorder(self, beam_idx: Tensor) -> None:
        """Continues each row from its parent row in the same search, `(R,)`."""
        self.seen = self.seen.flatten(0, 1).index_select(0, beam_idx).view_as(self.seen)

    def keep(self, searches: Tensor) -> None:
        """Keeps only the searches with these indices."""
        self.seen = self.seen[searches]
        for layer_idx, stored in self.layers.items():
            self.layers[layer_idx] = tuple(each[searches.to(each.device)] for each in stored)


class DocumentCache(StepCache):
    """
    Keys and values of target documents that grow token by token, in batches whose rows may be at different sentences.

    A step of group self-attention sees the open sentence, and forgets the one before; group cross-attention sees the
    source sentence that is being translated. Only global attention keeps the whole document. Which tokens count
    follows from the group tags of every step, so beams may be reordered freely. The beams of a search share the source
    and the tokens of their common past.

    Attention is equal to that under masks over the whole document (`generate(use_cache=False)`) if every source has
    sentences, each of them contiguous, and all target tokens up to the end belong to sentences.

    Args:
        documents: B. The rows of a document are adjacent and begin alike.
        search_beams: W, the number of adjacent rows that a beam search reorders.

    Attributes:
        beams: number of rows of a document.
        tags: the tags of the last tokens, `(R, 1)`.
        targets: target tokens by attention kind.
        step: what the new tokens see of the source; `None` while a prefix is read, under masks over the whole
            document.
        source_tokens, longest_sentence: S, and the number of tokens of the longest source sentence.
        source_real: which source tokens are not padding, `(B, S)`, bool; `None` if all are.
        source_starts, source_stops: the positions of the first token of every source sentence and after its last one,
            `(B, G + 2)`, by tag; S and 0 for tags without a sentence, which are the first and the last.
        sources: keys and values of the source by layer and attention kind.
        open_sources: keys and values, by layer, of the source sentences that each search is translating.
    """

    # The first call of `start` sets these.
    beams: int
    source_tokens: int
    longest_sentence: int
    source_real: Tensor | None
    source_starts: Tensor
    source_stops: Tensor
    tags: Tensor

    def __init__(self, documents: int, search_beams: int):
        super().__init__(DynamicCache(), DynamicCache())
        self.documents, self.search_beams = documents, search_beams
        self.length = 0
        self.step: SourceSentences | None = None
        self.targets: dict[str, SharedTokens] = {}
        self.sources: dict[tuple[int, str], tuple[Tensor, Tensor]] = {}
        self.open_sources: dict[int, tuple[Tensor, Tensor]] = {}

    def start(self, group_tags: Tensor, new_tokens: int, source_tags: Tensor | None = None) -> None:
        """
        Prepares for the next tokens; the first call may bring a prefix, every later one brings a single token.

        Args:
            group_tags: tags of the new target tokens, which tags of earlier ones may precede, `(R, T)`.
            source_tags: tags of the source tokens, `(R, S)`, [`PADDING`] for padding; only the first call needs
                them.

        Raises:
            ValueError: several tokens come after the first call, or a graph is being exported.
        """
        if torch.compiler.is_exporting():
            raise ValueError(
                "A DocumentCache follows the sentences of its documents, which an exported graph cannot: export with "
                'a DynamicCache, as generate() makes it with cache_implementation="dynamic".'
            )
        if self.length and new_tokens != 1:
            raise ValueError("A DocumentCache takes one token at a time: use a DynamicCache, or start again.")
        tags = group_tags[:, -1:]
        if self.length == 0:
            assert source_tags is not None
            self._read_source(source_tags)
            seen = {"group": group_tags == tags, "global": torch.ones_like(group_tags, dtype=torch.bool)}
            by_search = {kind: each.unflatten(0, (-1, self.search_beams)) for kind, each in seen.items()}
            self.targets = {kind: SharedTokens(each) for kind, each in by_search.items()}
        else:
            # What ends a document belongs to no sentence.
            in_open = ((tags == self.tags) & (tags > 0)).unflatten(0, (-1, self.search_beams))
            group = self.targets["group"]
            group.seen = group.seen & in_open
            for tokens in self.targets.values():
                tokens.grow()
            self.step = self._source_sentences(tags)
        self.tags = tags
        self.length += new_tokens

    def _read_source(self, tags: Tensor) -> None:
        """Finds the sentences of sources with tags `(R, S)`."""
        self.beams = len(tags) // self.documents
        tags = tags[:: self.beams]
        self.source_tokens, is_real = tags.shape[1], tags != PADDING
        self.source_real = None if is_real.all() else is_real
        tags = tags.clamp(min=0)
        lengths = sentence_lengths(tags)
        self.longest_sentence = int(lengths.max())
        place = torch.arange(self.source_tokens, device=tags.device).expand_as(tags)
        zeros = nn.functional.pad(torch.zeros_like(lengths), (1, 1))
        self.source_starts = (zeros + self.source_tokens).scatter_reduce(1, tags, place, "amin")
        self.source_stops = zeros.scatter_reduce(1, tags, place + 1, "amax")
        # What lies outside sentences has tag 0.
        self.source_starts[:, 0], self.source_stops[:, 0] = self.source_tokens, 0

    def _source_sentences(self, tags: Tensor) -> SourceSentences:
        """The source sentences of tokens with these tags `(R, 1)`."""
        tags = tags.clamp(max=self.source_starts.shape[1] - 1).view(-1, self.search_beams)
        document = torch.arange(len(tags), device=tags.device)[:, None] * self.search_beams // self.beams
        starts, stops = self.source_starts[document, tags], self.source_stops[document, tags]
        first = starts.amin(dim=1, keepdim=True)
        # Without beams, another device is not asked how long the sentences are: that would synchronise with it.
        is_asked = tags.device.type == "cpu" or self.search_beams > 1
        length = int((stops - first).amax().clamp(min=1)) if is_asked else self.longest_sentence
        # Ranges of similar lengths keep theirs, so that few of them have to be picked anew.
        previous = self.step
        if previous is not None and length <= previous.index.shape[1] <= 2 * length:
            length = previous.index.shape[1]
        place = first + torch.arange(length, device=tags.device)
        mask = (place[:, None] >= starts[..., None]) & (place[:, None] < stops[..., None])
        index = place.clamp(max=self.source_tokens - 1) + document * self.source_tokens
        if previous is None or previous.index.shape[1] != length or tags.device.type != "cpu":
            return SourceSentences(mask, index, None)
        return SourceSentences(mask, index, (previous.index[:, 0] != index[:, 0]).nonzero()[:, 0])

    def target(self, layer_idx: int, kind: str, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Stores keys and values `(R, H, 1, K)` of the new tokens, or of a prefix, and returns those that they may
        see, `(R / W, H, C, K)`. A prefix sees itself, under the usual masks."""
        shared = self.targets[kind].store(layer_idx, (keys, values))
        return (keys, values) if self.step is None else shared

    def source(
        self, layer_idx: int, kind: str, project: Callable[[Tensor], tuple[Tensor, Tensor]], states: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns keys and values of the source, projected once from its states `(R, S, D)`: those of the sentence
        being translated, `(R / W, H, N, K)`, or of the document, `(B, H, S, K)`; for a prefix `(R, H, S, K)`."""
        if self.step is None:
            keys, values = project(states[:: self.beams])
            # Attention is fastest if a head's tokens are adjacent, picking a sentence if the heads of a token are.
            order = (0, 2, 1, 3) if kind == "group" else (0, 1, 2, 3)
            self.sources[layer_idx, kind] = tuple(each.permute(order).contiguous() for each in (keys, values))
            return keys.repeat_interleave(self.beams, 0), values.repeat_interleave(self.beams, 0)
        return self._open_source(layer_idx) if kind == "group" else self.sources[layer_idx, kind]

    def _open_source(self, layer_idx: int) -> tuple[Tensor, Tensor]:
        """Keys and values `(R / W, H, N, K)` of the source sentences of a step. Where it is known which searches have
        moved, only theirs are picked anew."""
        assert self.step is not None
        sources, (_, index, moved) = self.sources[layer_idx, "group"], self.step
        if moved is not None and layer_idx in self.open_sources:
            opened = self.open_sources[layer_idx]
            if len(moved):
                for buffer, states in zip(opened, sources, strict=True):
                    buffer[moved] = _pick(states, index[moved])
            return opened
        opened = self.open_sources[layer_idx] = tuple(_pick(states, index) for states in sources)
        return opened

    def keep(self, documents: Tensor) -> None:
        """Keeps only the documents with these indices, between two steps."""

        def of_documents(number: int) -> Tensor:
            return (documents[:, None] * number + torch.arange(number, device=documents.device)).flatten()

        rows, searches = of_documents(self.beams), of_documents(self.beams // self.search_beams)
        self.tags = self.tags[rows]
        self.source_starts, self.source_stops = self.source_starts[documents], self.source_stops[documents]
        self.source_real = None if self.source_real is None else self.source_real[documents]
        for tokens in self.targets.values():
            tokens.keep(searches)
        for key, each in self.sources.items():
            self.sources[key] = tuple(states[documents.to(states.device)] for states in each)
        self.documents, self.step, self.open_sources = len(documents), None, {}

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Reorders beams within documents."""
        self.tags = self.tags.index_select(0, beam_idx)
        for tokens in self.targets.values():
            tokens.reorder(beam_idx)

    def crop(self, tokens_to_remove: int) -> None:
        """Raises an error, as what came before the open sentence is gone."""
        raise ValueError("A DocumentCache drops what came before the open sentence and cannot be cropped.")


def _pick(states: Tensor, index: Tensor) -> Tensor:
    """Picks states `(B, S, H, K)` at positions `(M, N)` in the flattened sources: `(M, H, N, K)`."""
    picked = states.flatten(0, 1).index_select(0, index.flatten().to(states.device)).unflatten(0, index.shape)
    return picked.transpose(1, 2).contiguous()


def ids_so_far(cache: Cache | None, input_ids: Tensor | None) -> Tensor | None:
    """The target ids, preceded by those that the cache remembers, if it does; `None` without ids."""
    if input_ids is not None and isinstance(cache, TargetCache):
        return cache.remember(input_ids)
    return input_ids


def given_cache(past_key_values: Cache | None, cache: Cache | None) -> Cache | None:
    """
    The cache that a caller passed under its old or its new name.

    Raises:
        ValueError: the caller passed both.
    """
    if past_key_values is not None and cache is not None:
        raise ValueError("past_key_values is the old name of cache: pass one of them.")
    return cache if past_key_values is None else past_key_values


def cache_for(
    config: GTransformerConfig, cache: Cache | None, use_cache: bool | None, has_tags: bool
) -> EncoderDecoderCache | None:
    """The cache that a decoder fills, if any. If the caller passes no tags, it is one that remembers the ids."""
    if cache is None and not use_cache:
        return None
    if isinstance(cache, (TargetCache, StepCache)):
        return cache
    if isinstance(cache, EncoderDecoderCache):
        return cache if has_tags else TargetCache.around(cache)
    self_attention_cache = DynamicCache(config=config) if cache is None else cache
    return TargetCache(self_attention_cache, DynamicCache(config=config))
