"""Group attention sentence by sentence under `torch.compile`.

Where the sentences are depends on the data, and a graph must not: so [`sentence_attention`] is in it as one operator
that is not traced, and reads the group tags.

Shape legend: B documents, T queries, S keys, H heads, K head size.
"""

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .group_tags import PADDING, same_group
from .sentence_attention import SentencePlan, plan_sentences, sentence_attention


class SentenceTags(NamedTuple):
    """
    Replaces a mask in a compiled graph.

    Attributes:
        query_tags, key_tags: `(B, T)` and `(B, S)`, group tags on the CPU, [`PADDING`] where there is no token.
        is_causal: whether a query sees only the keys up to its own position.
    """

    query_tags: Tensor
    key_tags: Tensor
    is_causal: bool


def is_compilable(device: torch.device) -> bool:
    """Tells whether the operator may be part of a graph: on devices whose random generator it knows, and not in an
    exported graph, which must run without the operator."""
    return device.type in ("cpu", "cuda") and not torch.compiler.is_exporting()


def compiled_attention(
    query: Tensor, key: Tensor, value: Tensor, tags: SentenceTags, dropout: float, scaling: float
) -> Tensor:
    """
    Computes [`sentence_attention`] in a graph. Its backward pass computes the attention again.

    Args:
        query: `(B, H, T, K)`. A query with tag 0 sees every key that is not padding.
        key, value: `(B, H, S, K)`.

    Returns:
        `(B, T, H, K)`.
    """
    # The backward pass must drop the same weights again.
    seed = torch.randint(2**62 if dropout else 1, (1,), device="cpu")
    return _group_attention(query, key, value, tags.query_tags, tags.key_tags, seed, tags.is_causal, dropout, scaling)


# Every copy of this file, such as one in a checkpoint, has its own operators.
LIBRARY = re.sub(r"\W", "_", __name__)
# They read the tags on the CPU, which a CUDA graph cannot replay.
operator = partial(torch.library.custom_op, mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))


CONSTANTS = "Tensor query_tags, Tensor key_tags, Tensor seed, bool is_causal, float dropout, float scaling"


@operator(f"{LIBRARY}::group_attention", schema=f"(Tensor query, Tensor key, Tensor value, {CONSTANTS}) -> Tensor")
def _group_attention(query, key, value, *constants):
    with torch.no_grad():
        return _attention(query.device, *constants)(query, key, value)


@operator(
    f"{LIBRARY}::group_attention_backward",
    schema=f"(Tensor grad_output, Tensor query, Tensor key, Tensor value, {CONSTANTS}) -> (Tensor, Tensor, Tensor)",
)
def _group_attention_backward(grad_output, query, key, value, *constants):
    # Autograd does not work in the backward pass of an operator, but functorch does.
    _, backward = torch.func.vjp(_attention(query.device, *constants), query, key, value)
    gradients = zip(backward(grad_output), (query, key, value), strict=True)
    # The graph was promised this memory layout.
    return tuple(torch.empty_like(states).copy_(gradient) for gradient, states in gradients)


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


def _attention(
    device: torch.device, query_tags: Tensor, key_tags: Tensor, seed: Tensor, is_causal: bool, dropout: float, scaling
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Returns the attention as a function of query, key and value."""
    sides = (tags.contiguous().numpy().tobytes() for tags in (query_tags, key_tags))
    plan, allowed = _plan(*sides, len(query_tags), is_causal), None
    if plan is None:
        # There is no plan if a token outside all sentences sees the whole document, or if a sentence is in pieces.
        query_tags, key_tags = query_tags.to(device), key_tags.to(device)
        allowed = same_group(query_tags, key_tags) & (key_tags != PADDING)[:, None, None]
        allowed = allowed.tril() if is_causal else allowed

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if plan is not None:
            return sentence_attention(query, key, value, plan, dropout, scaling)
        output = nn.functional.scaled_dot_product_attention(query, key, value, allowed, dropout, scale=scaling)
        return output.transpose(1, 2).contiguous()

    def attend_from_seed(*states: Tensor) -> Tensor:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            on_cuda = device.type == "cuda"
            generator = torch.cuda.default_generators[device.index] if on_cuda else torch.default_generator
            generator.manual_seed(int(seed))
            return attend(*states)

    return attend_from_seed if dropout else attend


@lru_cache(maxsize=16)
def _plan(query_tags: bytes, key_tags: bytes, documents: int, is_causal: bool) -> SentencePlan | None:
    """The plan that all layers share, or `None` where there is none. It is cached by the bytes of the tags, as a graph
    may put other tags into the memory of these."""
    query_side, key_side = (
        torch.frombuffer(bytearray(side), dtype=torch.int64).view(documents, -1) for side in (query_tags, key_tags)
    )
    return plan_sentences(query_side, key_side, is_causal)
