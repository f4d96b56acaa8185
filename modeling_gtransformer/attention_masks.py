"""Which mask each kind of attention gets, or what stands for one: a plan of the sentences, or their tags.

Shape legend: B documents, T queries, S keys.
"""

import torch
from torch import Tensor

from .compiled_attention import SentenceTags, is_compilable
from .configuration_gtransformer import GTransformerConfig
from .group_attention import group_mask
from .group_tags import tags_on_cpu
from .sentence_attention import SentencePlan, plan_sentences


def attention_masks(
    config: GTransformerConfig,
    stack: str,
    create_mask,
    attention_mask,
    query_tags,
    key_tags,
    real_queries=None,
    real_keys=None,
) -> dict[str, Tensor | SentencePlan | SentenceTags | None]:
    """One mask per attention kind that the stack "encoder", "decoder" or "cross" uses.

    Args:
        create_mask: makes the mask of the whole document; may return None for "nothing is masked" if allowed to.
        attention_mask: what the caller gave. Masks that are ready, one `(B, 1, T, S)` tensor for all attention kinds
            or a dictionary with one for each, are used as they are.
        query_tags, key_tags: group tags `(B, T)` and `(B, S)`.
        real_queries, real_keys: which are no padding, `(B, T)` and `(B, S)`, bool; without the first it keeps to
            masks, as decoding step by step does.
    """
    if isinstance(attention_mask, dict):
        return attention_mask
    if attention_mask is not None and attention_mask.dim() == 4:
        return {"group": attention_mask, "global": attention_mask}
    attention_types = config.attention_types(stack)
    masks: dict[str, Tensor | SentencePlan | SentenceTags | None] = {}
    if set(attention_types) != {"group"}:
        masks["global"] = create_mask(True)
    if set(attention_types) != {"global"}:
        if config._attn_implementation == "sdpa" and real_queries is not None:
            masks["group"] = _by_sentence(stack, query_tags, key_tags, real_queries, real_keys)
        if masks.get("group") is None:
            masks["group"] = group_mask(create_mask(False), query_tags, key_tags)
    return masks


def _by_sentence(
    stack: str, query_tags: Tensor, key_tags: Tensor, real_queries: Tensor, real_keys: Tensor
) -> SentencePlan | SentenceTags | None:
    """What stands for the mask where group attention can go sentence by sentence. Except in cross-attention the
    queries are the keys: decoding step by step does not come here."""
    compiling = torch.compiler.is_compiling()
    if compiling and not is_compilable(query_tags.device):
        return None
    queries = tags_on_cpu(query_tags, real_queries)
    keys = tags_on_cpu(key_tags, real_keys) if stack == "cross" else queries
    return (SentenceTags if compiling else plan_sentences)(queries, keys, is_causal=stack == "decoder")


def real_tokens(attention_mask: Tensor | dict[str, Tensor] | None, tags: Tensor) -> Tensor:
    """Which tokens are no padding, `(B, T)`, bool, as far as what the caller gave says so."""
    if isinstance(attention_mask, Tensor) and attention_mask.shape == tags.shape:
        return attention_mask.bool()
    return torch.ones_like(tags, dtype=torch.bool)
