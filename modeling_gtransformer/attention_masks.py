"""Masks for each kind of attention, or what takes the place of one: a plan of the sentences, or their tags.

Shape legend: B documents, T queries, S keys.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from .compiled_attention import SentenceTags, is_compilable
from .configuration_gtransformer import GTransformerConfig
from .group_attention import group_mask
from .group_tags import tags_on_cpu
from .sentence_attention import SentencePlan, plan_sentences


Mask: TypeAlias = Tensor | SentencePlan | SentenceTags | None


@dataclass(frozen=True)
class Side:
    """
    The tokens on one side of an attention, queries or keys.

    Attributes:
        tags: group tags `(B, T)`, 0 for padding.
        real: which tokens are no padding, `(B, T)`, bool.
    """

    tags: Tensor
    real: Tensor

    @classmethod
    def of(cls, tags: Tensor, attention_mask: Tensor | dict[str, Tensor] | None) -> "Side":
        """Tokens with these tags, of which an attention mask `(B, T)` may say that some are padding."""
        if isinstance(attention_mask, Tensor) and attention_mask.shape == tags.shape:
            real = attention_mask.bool()
        else:
            real = torch.ones_like(tags, dtype=torch.bool)
        return cls(tags * real, real)

    def last(self, tokens: int) -> "Side":
        """The last so many tokens."""
        return Side(self.tags[:, -tokens:], self.real[:, -tokens:])

    def open_to_all(self, keys: "Side") -> "Side":
        """These queries, with tag 0 in documents whose keys have no sentences: there they see everything."""
        return replace(self, tags=self.tags * (keys.tags.amax(dim=1, keepdim=True) > 0))


def attention_masks(
    config: GTransformerConfig,
    stack: str,
    attention_mask: Tensor | dict[str, Tensor] | None,
    create_mask: Callable[[bool], Tensor | None],
    queries: Side,
    keys: Side,
    by_sentence: bool = True,
) -> dict[str, Mask]:
    """
    One mask for each attention kind that the stack "encoder", "decoder" or "cross" uses.

    Args:
        attention_mask: what the caller gave. Ready masks, one `(B, 1, T, S)` tensor for all attention kinds or a
            dictionary with one for each, are used as they are.
        create_mask: makes the mask of the whole document; may return `None` for "nothing is masked" if allowed to.
        by_sentence: whether group attention may go sentence by sentence. Decoding step by step keeps to masks.
    """
    if isinstance(attention_mask, dict):
        return attention_mask
    if attention_mask is not None and attention_mask.dim() == 4:
        return {"group": attention_mask, "global": attention_mask}
    attention_types = config.attention_types(stack)
    masks: dict[str, Mask] = {}
    if set(attention_types) != {"group"}:
        masks["global"] = create_mask(True)
    if set(attention_types) != {"global"}:
        if by_sentence and config._attn_implementation == "sdpa":
            masks["group"] = _by_sentence(stack, queries, keys)
        if masks.get("group") is None:
            masks["group"] = group_mask(create_mask(False), queries.tags, keys.tags)
    return masks


def _by_sentence(stack: str, queries: Side, keys: Side) -> SentencePlan | SentenceTags | None:
    """Takes the place of the mask where group attention can go sentence by sentence. Except in cross-attention the
    queries are the keys: decoding step by step does not come here."""
    compiling = torch.compiler.is_compiling()
    if compiling and not is_compilable(queries.tags.device):
        return None
    query_tags = tags_on_cpu(queries.tags, queries.real)
    key_tags = tags_on_cpu(keys.tags, keys.real) if stack == "cross" else query_tags
    return (SentenceTags if compiling else plan_sentences)(query_tags, key_tags, is_causal=stack == "decoder")
