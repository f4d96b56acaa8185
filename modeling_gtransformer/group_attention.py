"""Attention under group tags (paper, section 4): the readable reference, and the mask of each kind of attention or the
plan of the sentences that replaces it.

Shape legend: B documents, T queries, S keys, H heads, K head size, D model size.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from transformers.cache_utils import EncoderDecoderCache
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask

from .cache_gtransformer import DocumentCache, SourceSentences
from .configuration_gtransformer import GTransformerConfig
from .group_tags import PADDING, same_group, tags_on_cpu
from .sentence_attention import SentencePlan, plan_sentences


Mask: TypeAlias = Tensor | SentencePlan | None


def group_mask(mask: Tensor, query_tags: Tensor, key_tags: Tensor) -> Tensor:
    """Restricts a Transformers mask `(B, 1, T, S)`, boolean or additive, to the keys of each query's own sentence."""
    # A static cache is longer than what has been decoded; causality hides the rest anyway.
    key_tags = nn.functional.pad(key_tags, (0, mask.shape[-1] - key_tags.shape[-1]))
    allowed = same_group(query_tags, key_tags)
    if mask.dtype == torch.bool:
        return mask & allowed
    return mask.masked_fill(~allowed, torch.finfo(mask.dtype).min)


def eager_attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    **kwargs,
) -> tuple[Tensor, Tensor]:
    """The readable reference: softmax(QK' * scaling + mask) V, with zeros for a query that may see no key at all.

    Args:
        query: `(B, H, T, K)`.
        key, value: `(B, H, S, K)`.
        attention_mask: boolean or additive, broadcastable to `(B, H, T, S)`.

    Returns:
        The output `(B, T, H, K)` and the attention weights `(B, H, T, S)`.
    """
    scores = query @ key.transpose(2, 3) * scaling
    if attention_mask is not None and attention_mask.dtype == torch.bool:
        attention_mask = attention_mask.logical_not().to(scores.dtype) * torch.finfo(scores.dtype).min
    if attention_mask is None:
        weights = scores.softmax(dim=-1)
    else:
        weights = (scores + attention_mask).softmax(dim=-1)
        # Without this an all-masked row would be the mean of values it must not see.
        weights = weights.masked_fill(attention_mask <= torch.finfo(attention_mask.dtype).min / 2, 0.0)
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)
    return (weights @ value).transpose(1, 2).contiguous(), weights


def attention_implementation(config: Any, arguments: dict[str, Any]) -> str:
    """Returns the implementation for a forward call with these arguments: "eager", the only one that computes weights,
    if the call returns or records them, otherwise that of the configuration."""
    # The configuration is the default, as in `capture_outputs` of Transformers.
    returns_weights = arguments.get("output_attentions", config.output_attentions)
    return "eager" if returns_weights or arguments.get("attention_recorder") else config._attn_implementation


@dataclass(frozen=True)
class TaggedTokens:
    """
    The tokens on one side of an attention, queries or keys.

    Attributes:
        tags: group tags `(B, T)`, 0 for padding.
        real: which tokens are not padding, `(B, T)`, bool.
    """

    tags: Tensor
    real: Tensor

    @classmethod
    def of(cls, tags: Tensor, attention_mask: Tensor | dict[str, Tensor] | None) -> "TaggedTokens":
        """Tokens with these tags; an attention mask `(B, T)` marks those that are not padding."""
        if isinstance(attention_mask, Tensor) and attention_mask.shape == tags.shape:
            real = attention_mask.bool()
        else:
            real = torch.ones_like(tags, dtype=torch.bool)
        return cls(tags * real, real)

    def last(self, tokens: int) -> "TaggedTokens":
        """The last tokens, up to a number."""
        return TaggedTokens(self.tags[:, -tokens:], self.real[:, -tokens:])

    def open_to_all(self, keys: "TaggedTokens") -> "TaggedTokens":
        """These queries, with tag 0 in documents whose keys have no sentences, so that they see everything there."""
        return replace(self, tags=self.tags * (keys.tags.amax(dim=1, keepdim=True) > 0))


def masks_by_kind(
    config: GTransformerConfig,
    stack: str,
    attention_mask: Tensor | dict[str, Tensor] | None,
    create_mask: Callable[..., Tensor | None],
    queries: TaggedTokens,
    keys: TaggedTokens,
    by_sentence: bool = True,
) -> dict[str, Mask]:
    """
    One mask for each attention kind that the stack "encoder", "decoder" or "cross" uses.

    Args:
        attention_mask: what the caller passed. Ready-made masks, one `(B, 1, T, S)` tensor for all attention kinds or
            a dictionary with one for each, are used as they are.
        create_mask: makes the mask of the whole document for a configuration's attention implementation; may return
            `None` for "nothing is masked" if its second argument allows this.
        by_sentence: whether group attention may go sentence by sentence; step-by-step decoding keeps to masks.
    """
    if isinstance(attention_mask, dict):
        return attention_mask
    if attention_mask is not None and attention_mask.dim() == 4:
        return {"group": attention_mask, "global": attention_mask}
    kinds = set(config.attention_types(stack))
    masks: dict[str, Mask] = {}
    # Plans depend on the data, and compiled graphs on shapes alone.
    if by_sentence and config._attn_implementation != "eager" and not torch.compiler.is_compiling():
        masks |= _plans(config, stack, kinds, queries, keys)
    if kinds != {"group"} and "global" not in masks:
        masks["global"] = create_mask(config, True)
    if kinds != {"global"} and "group" not in masks:
        # Implementations other than these two take no masks of queries and keys.
        dense = _with_implementation(config, "eager" if config._attn_implementation == "eager" else "sdpa")
        masks["group"] = group_mask(create_mask(dense, False), queries.tags, keys.tags)
    return masks


def config_of_call(config: GTransformerConfig, arguments: dict[str, Any]) -> GTransformerConfig:
    """The configuration with the attention implementation for a forward call with these arguments."""
    return _with_implementation(config, attention_implementation(config, arguments))


def _with_implementation(config: GTransformerConfig, implementation: str) -> GTransformerConfig:
    if config._attn_implementation == implementation:
        return config
    changed = copy.copy(config)
    changed._attn_implementation_internal = implementation
    return changed


def _plans(
    config: GTransformerConfig, stack: str, kinds: set[str], queries: TaggedTokens, keys: TaggedTokens
) -> dict[str, Mask]:
    """Plans that replace masks: of the sentences for group attention, if these are contiguous, and of the documents
    for global attention on a GPU, whose kernels are slow with masks, and slower still at every new shape. Except in
    cross-attention, the queries are the keys: step-by-step decoding never gets here."""
    by_document = kinds != {"group"} and config._attn_implementation == "sdpa" and queries.tags.device.type != "cpu"
    if kinds == {"global"} and not by_document:
        return {}
    query_tags = tags_on_cpu(queries.tags, queries.real)
    key_tags = tags_on_cpu(keys.tags, keys.real) if stack == "cross" else query_tags
    plans = {}
    if kinds != {"global"}:
        plans["group"] = plan_sentences(query_tags, key_tags, is_causal=stack == "decoder")
    if by_document:
        query_tags, key_tags = (torch.where(tags == PADDING, PADDING, 1) for tags in (query_tags, key_tags))
        plans["global"] = plan_sentences(query_tags, key_tags, is_causal=stack == "decoder")
    return {kind: plan for kind, plan in plans.items() if plan is not None}


def encoder_masks(
    config: GTransformerConfig,
    inputs_embeds: Tensor,
    attention_mask: Tensor | dict[str, Tensor] | None,
    source: TaggedTokens,
) -> dict[str, Mask]:
    """Masks of the encoder's self-attention over embeddings `(B, S, D)`, by attention kind."""
    return masks_by_kind(
        config,
        "encoder",
        attention_mask,
        lambda config, skip: create_bidirectional_mask(
            config, inputs_embeds, attention_mask, allow_is_bidirectional_skip=skip
        ),
        queries=source,
        keys=source,
    )


def decoder_masks(
    config: GTransformerConfig,
    inputs_embeds: Tensor,
    attention_mask: Tensor | dict[str, Tensor] | None,
    target: TaggedTokens,
    encoder_hidden_states: Tensor | None,
    encoder_attention_mask: Tensor | dict[str, Tensor] | None,
    source: TaggedTokens | None,
    cache: EncoderDecoderCache | None,
) -> tuple[dict[str, Mask], dict[str, Mask] | None]:
    """Masks of the decoder's self-attention and, given encoder states `(B, S, D)`, of cross-attention, by attention
    kind. The queries are the tokens of the embeddings `(B, T, D)`, the last of the target; the keys are all tokens of
    the target, or of the source."""
    if isinstance(cache, DocumentCache) and cache.step is not None:
        return _step_masks(cache, cache.step, inputs_embeds.dtype)
    queries = target.last(inputs_embeds.shape[1])
    step_by_step = cache is not None and (cache.is_compileable or cache.get_seq_length())
    masks = masks_by_kind(
        config,
        "decoder",
        attention_mask,
        lambda config, skip: create_causal_mask(
            config,
            inputs_embeds,
            attention_mask,
            cache.self_attention_cache if cache is not None else None,
            allow_is_causal_skip=skip,
        ),
        queries=queries,
        keys=target,
        by_sentence=not step_by_step,
    )
    if encoder_hidden_states is None:
        return masks, None
    if source is None:
        source = TaggedTokens.of(queries.tags.new_zeros(encoder_hidden_states.shape[:2]), encoder_attention_mask)
    cross_masks = masks_by_kind(
        config,
        "cross",
        encoder_attention_mask,
        lambda config, skip: create_bidirectional_mask(
            config, inputs_embeds, encoder_attention_mask, encoder_hidden_states, allow_is_bidirectional_skip=skip
        ),
        queries=queries.open_to_all(source),
        keys=source,
        by_sentence=not step_by_step,
    )
    return masks, cross_masks


def _step_masks(
    cache: DocumentCache, step: SourceSentences, dtype: torch.dtype
) -> tuple[dict[str, Mask], dict[str, Mask]]:
    """Masks of one new token over what the cache keeps: the open sentence, its source sentence, both documents."""
    # Kernels would convert boolean masks in every layer.
    zero = torch.zeros((), dtype=dtype, device=step.mask.device)

    def additive(mask: Tensor | None) -> Tensor | None:
        return None if mask is None else torch.where(mask, zero, -torch.inf)

    seen = {kind: tokens.seen[:, None] for kind, tokens in cache.targets.items()}
    source = None if cache.source_real is None else cache.source_real[:, None, None]
    # Without beams, every token of a document is seen.
    masks = {"group": additive(seen["group"]), "global": additive(seen["global"] if cache.search_beams > 1 else None)}
    return masks, {"group": additive(step.mask[:, None]), "global": additive(source)}
