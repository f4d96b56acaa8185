"""Group attention sentence by sentence under `torch.compile`.

Where the sentences are depends on the data, which a graph cannot: so [`sentence_attention`] stands in it as one
operator that is not traced, and what it needs to know are the group tags.

Shape legend: B documents, T queries, S keys, H heads, K head size.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .group_tags import same_group
from .sentence_attention import SentencePlan, plan_sentences, sentence_attention


PADDING = -1


class SentenceTags(NamedTuple):
    """
    Takes the place of a mask in a compiled graph.

    Attributes:
        query_tags, key_tags: `(B, T)` and `(B, S)`, group tags on the CPU, [`PADDING`] where there is no token.
        is_causal: whether a query sees only the keys up to its own position.
    """

    query_tags: Tensor
    key_tags: Tensor
    is_causal: bool


def sentence_tags(
    query_tags: Tensor, key_tags: Tensor, real_queries: Tensor, real_keys: Tensor, is_causal: bool
) -> SentenceTags:
    """Of group tags `(B, T)` and `(B, S)`, and which of the tokens are no padding, bool, likewise."""
    # One transfer for all layers instead of one in each.
    sides = (query_tags.masked_fill(~real_queries, PADDING), key_tags.masked_fill(~real_keys, PADDING))
    return SentenceTags(*(tags.cpu() for tags in sides), is_causal)


def compiled_attention(
    query: Tensor, key: Tensor, value: Tensor, tags: SentenceTags, dropout: float, scaling: float
) -> Tensor:
    """[`sentence_attention`] from `(B, H, T, K)` to `(B, H, S, K)`, in a graph; `(B, T, H, K)`. A query with tag 0
    sees every key that is no padding."""
    # The backward pass computes the attention again, and must then drop the same.
    seed = torch.randint(2**62, (1,)) if dropout else torch.zeros(1, dtype=torch.int64)
    return _group_attention(query, key, value, tags.query_tags, tags.key_tags, seed, tags.is_causal, dropout, scaling)


@torch.library.custom_op("gtransformer::group_attention", mutates_args=())
def _group_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_tags: Tensor,
    key_tags: Tensor,
    seed: Tensor,
    is_causal: bool,
    dropout: float,
    scaling: float,
) -> Tensor:
    with torch.no_grad():
        return _attention(query_tags, key_tags, seed, is_causal, dropout, scaling)(query, key, value)


@torch.library.custom_op("gtransformer::group_attention_backward", mutates_args=())
def _group_attention_backward(
    grad_output: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_tags: Tensor,
    key_tags: Tensor,
    seed: Tensor,
    is_causal: bool,
    dropout: float,
    scaling: float,
) -> tuple[Tensor, Tensor, Tensor]:
    # An operator is below autograd, but not below functorch.
    attend = _attention(query_tags, key_tags, seed, is_causal, dropout, scaling)
    _, backward = torch.func.vjp(attend, query, key, value)
    gradients = zip(backward(grad_output), (query, key, value), strict=True)
    # In the memory layout that the graph was promised.
    query_grad, key_grad, value_grad = (torch.empty_like(states).copy_(gradient) for gradient, states in gradients)
    return query_grad, key_grad, value_grad


@_group_attention.register_fake
def _(query, *others):
    batch, heads, length, size = query.shape
    return query.new_empty(batch, length, heads, size)


@_group_attention_backward.register_fake
def _(grad_output, *others):
    return tuple(torch.empty_like(states) for states in others[:3])


def _keep(ctx, inputs, output):
    *tensors, ctx.is_causal, ctx.dropout, ctx.scaling = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx, grad_output):
    constants = (ctx.is_causal, ctx.dropout, ctx.scaling)
    return *_group_attention_backward(grad_output, *ctx.saved_tensors, *constants), *[None] * 6


_group_attention.register_autograd(_backward, setup_context=_keep)


def _attention(query_tags, key_tags, seed, is_causal, dropout, scaling) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The function of query, key and value."""
    sides = (tags.contiguous().numpy().tobytes() for tags in (query_tags, key_tags))
    plan, allowed = _plan(*sides, len(query_tags), is_causal), None
    if plan is None:
        allowed = same_group(query_tags, key_tags) & (key_tags != PADDING)[:, None, None]
        allowed = allowed.tril() if is_causal else allowed
    drop_like = int(seed)

    def attend(query, key, value):
        devices = [query.device] if query.is_cuda else []
        with torch.random.fork_rng(devices, enabled=dropout > 0):
            if dropout:
                torch.manual_seed(drop_like)
            if plan is not None:
                return sentence_attention(query, key, value, plan, dropout, scaling)
            # A token outside of all sentences sees the whole document, or a sentence stands in pieces.
            mask = allowed.to(query.device)
            output = nn.functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, dropout_p=dropout, scale=scaling
            )
            return output.transpose(1, 2).contiguous()

    return attend


@lru_cache(maxsize=16)
def _plan(query_tags: bytes, key_tags: bytes, documents: int, is_causal: bool) -> SentencePlan | None:
    """The plan that all layers share, or `None` where there is none; of bytes, as a graph may put other tags into the
    memory of these."""
    query_side, key_side = (
        torch.frombuffer(bytearray(side), dtype=torch.int64).view(documents, -1) for side in (query_tags, key_tags)
    )
    if bool((query_side == 0).any()):
        return None
    plan = plan_sentences(query_side.clamp(min=0), key_side.clamp(min=0), is_causal)
    if plan is not None:
        # Now, while what they are made of is no part of what functorch transforms.
        plan.prepare()
    return plan
