"""Attention under group tags, and the gate that combines it with attention over the document (paper, section 4).

Shape legend: B documents, T queries, S keys, H heads, K head size, D model size.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .compiled_attention import SentenceTags, compiled_attention
from .context_attention import ContextMask, context_attention
from .group_tags import same_group
from .sentence_attention import SentencePlan, sentence_attention


# Called with stack ("encoder", "decoder" or "cross"), layer, weights `(B, H, T, S)` by kind, and gate `(B, T, D)`.
AttentionRecorder: TypeAlias = Callable[[str, int, dict[str, Tensor], Tensor | None], None]


def attention_implementation(config: Any, arguments: dict[str, Any]) -> str:
    """Returns the implementation for a forward call with these arguments: "eager", the only one that computes weights,
    if the call returns or records them, otherwise that of the configuration."""
    # The configuration is the default, as in `capture_outputs` of Transformers.
    returns_weights = arguments.get("output_attentions", config.output_attentions)
    return "eager" if returns_weights or arguments.get("attention_recorder") else config._attn_implementation


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


class GTransformerAttention(nn.Module):
    """
    Multi-head attention with the parameter names of mBART (paper, equations 5 to 9). Keys and values come from
    outside, because a combined layer keeps those of its group and of its global attention in one cache entry.
    """

    def __init__(self, config, num_heads: int, is_causal: bool = False):
        super().__init__()
        self.config = config
        self.head_dim = config.d_model // num_heads
        self.scaling = self.head_dim**-0.5
        self.dropout = config.attention_dropout
        self.is_causal = is_causal
        self.k_proj = nn.Linear(config.d_model, config.d_model)
        self.v_proj = nn.Linear(config.d_model, config.d_model)
        self.q_proj = nn.Linear(config.d_model, config.d_model)
        self.out_proj = nn.Linear(config.d_model, config.d_model)
        for projection in (self.k_proj, self.v_proj, self.q_proj):
            projection.xavier_gain = 2**-0.5
        self.out_proj.xavier_gain = 1.0

    def split_heads(self, states: Tensor) -> Tensor:
        """`(B, T, D)` to `(B, H, T, K)`."""
        return states.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def queries(self, states: Tensor) -> Tensor:
        """Projects the attending states `(B, T, D)` to queries `(B, H, T, K)`."""
        return self.split_heads(self.q_proj(states))

    def keys_and_values(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Projects the attended states `(B, S, D)` to keys and values, each `(B, H, S, K)`."""
        return self.split_heads(self.k_proj(states)), self.split_heads(self.v_proj(states))

    def project(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of states `(B, T, D)` that attend to each other."""
        return self.queries(states), *self.keys_and_values(states)

    def forward(
        self,
        queries: Tensor,
        keys: Any,
        values: Any,
        mask: Tensor | SentencePlan | SentenceTags | ContextMask | None,
        **kwargs,
    ) -> tuple[Tensor, Tensor | None]:
        """Attends from queries `(B, H, T, K)` to keys and values `(B, H, S, K)`, and returns the output `(B, T, D)`
        and, with eager attention, the weights `(B, H, T, S)`. Single tokens of several beams,
        `(B * beams, H, 1, K)`, may share their keys and values. Keys and values are tensors or, under a
        [`ContextMask`], a [`Context`] each."""
        rows, _, tokens, _ = queries.shape
        if isinstance(mask, ContextMask):
            output = context_attention(queries, keys, values, mask, self.scaling)
            return self.out_proj(output.flatten(2)), None
        # `len` would make the number of documents a constant of an exported graph.
        if queries.shape[0] > keys.shape[0]:
            queries = queries[:, :, 0].unflatten(0, (keys.shape[0], -1)).transpose(1, 2)
        dropout = self.dropout if self.training else 0.0
        if isinstance(mask, SentencePlan):
            output, weights = sentence_attention(queries, keys, values, mask, dropout, self.scaling), None
        elif isinstance(mask, SentenceTags):
            output, weights = compiled_attention(queries, keys, values, mask, dropout, self.scaling), None
        else:
            # No implementation other than these two takes masks of queries and keys.
            implementation = attention_implementation(self.config, kwargs)
            if isinstance(mask, Tensor) and mask.dim() == 4 and implementation != "eager":
                implementation = "sdpa"
            attend = ALL_ATTENTION_FUNCTIONS.get_interface(implementation, eager_attention_forward)
            output, weights = attend(
                self, queries, keys, values, mask, dropout=dropout, scaling=self.scaling, **kwargs
            )
        return self.out_proj(output.reshape(rows, tokens, -1)), weights


class GTransformerGate(nn.Module):
    """The gate-sum of group and global attention (paper, equation 10)."""

    def __init__(self, d_model: int, initial_bias: float = 0.0):
        super().__init__()
        # It has the weights of a linear layer but is not one, as an adapter would expect a single input.
        linear = nn.Linear(2 * d_model, d_model)
        self.in_features, self.weight, self.bias = linear.in_features, linear.weight, linear.bias
        self.xavier_gain = 1.0
        self.initial_bias = initial_bias

    def forward(self, group_output: Tensor, global_output: Tensor) -> Tensor:
        """H = g * H_L + (1 - g) * H_G with g = sigmoid([H_L; H_G] W + b); all `(B, T, D)`."""
        # A single interpolation, so that autograd keeps only H_L, H_G and g.
        return torch.lerp(global_output, group_output, self.gate(group_output, global_output).to(global_output.dtype))

    def gate(self, group_output: Tensor, global_output: Tensor) -> Tensor:
        """g, the share of the group attention in every feature, `(B, T, D)`."""
        return self.logits(group_output, global_output).sigmoid()

    def logits(self, group_output: Tensor, global_output: Tensor) -> Tensor:
        """[H_L; H_G] W + b, `(B, T, D)`."""
        # The two halves of W are applied separately, so that the outputs need not be copied into one tensor.
        group_weight, global_weight = self.weight.chunk(2, dim=1)
        logits = nn.functional.linear(group_output, group_weight, self.bias)
        return logits + nn.functional.linear(global_output, global_weight)
