"""The layers of G-Transformer: embeddings, attention with its gate (paper, section 4), encoder and decoder layers."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs

from .cache_gtransformer import StepCache
from .configuration_gtransformer import GTransformerConfig
from .context_attention import ContextMask, context_attention
from .group_attention import attention_implementation, eager_attention_forward
from .sentence_attention import SentencePlan, sentence_attention


# Keys and values.
Pair: TypeAlias = Sequence[Any]
# Called with stack ("encoder", "decoder" or "cross"), layer, weights `(B, H, T, S)` by kind, and gate `(B, T, D)`.
AttentionRecorder: TypeAlias = Callable[[str, int, dict[str, Tensor], Tensor | None], None]


class GTransformerScaledWordEmbedding(nn.Embedding):
    """Word embeddings scaled by `embed_scale`, as in mBART."""

    def __init__(self, config: GTransformerConfig, vocab_size: int):
        super().__init__(vocab_size, config.d_model, config.pad_token_id)
        self.embed_scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0

    def forward(self, input_ids: Tensor) -> Tensor:
        return super().forward(input_ids) * self.embed_scale


# Row 1 of fairseq's position tables belongs to padding, so the first token has row 2.
POSITION_OFFSET = 2


class GTransformerLearnedPositionalEmbedding(nn.Embedding):
    """A table of `max_position_embeddings` learned positions."""

    def __init__(self, config: GTransformerConfig):
        super().__init__(config.max_position_embeddings + POSITION_OFFSET, config.d_model)

    def forward(self, position_ids: Tensor) -> Tensor:
        return super().forward(position_ids + POSITION_OFFSET)


class GTransformerSinusoidalPositionalEmbedding(nn.Module):
    """Sine and cosine positions (Vaswani et al., 2017), computed as needed, for documents of any length."""

    def __init__(self, config: GTransformerConfig):
        super().__init__()
        self.half = config.d_model // 2

    def forward(self, position_ids: Tensor) -> Tensor:
        rate = -math.log(10000) / max(self.half - 1, 1)
        frequency = torch.exp(torch.arange(self.half, device=position_ids.device, dtype=torch.float32) * rate)
        angle = (position_ids + POSITION_OFFSET)[..., None] * frequency
        return torch.cat([angle.sin(), angle.cos()], dim=-1)


class GTransformerMarianPositionalEmbedding(nn.Module):
    """Sine and cosine positions of Marian: the first token has row 0, and the rates stay above 1/10000."""

    def __init__(self, config: GTransformerConfig):
        super().__init__()
        self.d_model = config.d_model

    def forward(self, position_ids: Tensor) -> Tensor:
        # In double precision, as Marian's table is made.
        features = torch.arange(0, self.d_model, 2, device=position_ids.device, dtype=torch.float64)
        angle = position_ids[..., None] / 10000 ** (features / self.d_model)
        return torch.cat([angle.sin(), angle.cos()], dim=-1).float()


POSITION_EMBEDDINGS: dict[str, type[nn.Module]] = {
    "learned": GTransformerLearnedPositionalEmbedding,
    "sinusoidal": GTransformerSinusoidalPositionalEmbedding,
    "sinusoidal_marian": GTransformerMarianPositionalEmbedding,
}


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
        # In 8 bits, the first three as one.
        self.register_module("qkv_proj", None)
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
        if self.qkv_proj is not None:
            queries, keys, values = map(self.split_heads, self.qkv_proj(states).chunk(3, dim=-1))
            return queries, keys, values
        return self.queries(states), *self.keys_and_values(states)

    def forward(
        self,
        queries: Tensor,
        keys: Any,
        values: Any,
        mask: Tensor | SentencePlan | ContextMask | None,
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


def init_linear_as_base(linear: nn.Linear | GTransformerGate) -> None:
    """Initialises a linear layer as in the paper's base models: Xavier with its `xavier_gain`, otherwise uniform."""
    bound = linear.in_features**-0.5
    gain = getattr(linear, "xavier_gain", None)
    if gain is None:
        init.uniform_(linear.weight, -bound, bound)
    else:
        init.xavier_uniform_(linear.weight, gain=gain)
    if linear.bias is not None:
        if gain == 1.0:
            init.zeros_(linear.bias)
        else:
            init.uniform_(linear.bias, -bound, bound)


def states_by_kind(states: Tensor, positions: Tensor | None) -> dict[str, Tensor]:
    """The states `(B, T, D)` that each kind of attention reads: global attention adds `positions`, if any."""
    return {"group": states, "global": states if positions is None else states + positions.to(states.dtype)}


def _branches(keys: Tensor, values: Tensor, number: int) -> Sequence[Pair]:
    """Keys and values of this many branches, which share the cache entry of a layer as if they were heads."""
    return list(zip(keys.chunk(number, 1), values.chunk(number, 1), strict=True))


class GTransformerLayer(GradientCheckpointingLayer):
    """Base of encoder and decoder layers: residual connections (pre- or post-norm) and attention of every kind."""

    def __init__(self, config: GTransformerConfig, num_heads: int, ffn_dim: int, layer_idx: int):
        super().__init__()
        self.config, self.normalize_before = config, config.normalize_before
        self.num_heads = num_heads
        self.layer_idx = layer_idx
        self.stacks: dict[str, str] = {}
        self.attention_types: dict[str, str] = {}
        self.activation_fn = ACT2FN[config.activation_function]
        self.fc1 = nn.Linear(config.d_model, ffn_dim)
        self.fc2 = nn.Linear(ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model)

    def add_attention(self, name: str, stack: str):
        """Creates the attention `name` (with mBART's parameter names) of the stack "encoder", "decoder" or "cross".
        Combined attention also gets a global twin and a gate."""
        is_causal, attention_type = stack == "decoder", self.config.attention_types(stack)[self.layer_idx]
        self.stacks[name], self.attention_types[name] = stack, attention_type
        setattr(self, name, GTransformerAttention(self.config, self.num_heads, is_causal))
        if attention_type == "combined":
            setattr(self, f"{name}_global", GTransformerAttention(self.config, self.num_heads, is_causal))
            setattr(self, f"{name}_gate", GTransformerGate(self.config.d_model, self.config.gate_bias))
        setattr(self, f"{name}_layer_norm", nn.LayerNorm(self.config.d_model))

    def sublayer(self, norm: nn.LayerNorm, function, hidden_states: Tensor) -> Tensor:
        """One sublayer with its layer norm, dropout and residual connection."""
        output = function(norm(hidden_states) if self.normalize_before else hidden_states)
        if self.training:  # a decoding step has no time for lookups in the configuration
            output = nn.functional.dropout(output, self.config.dropout)
        return hidden_states + output if self.normalize_before else norm(hidden_states + output)

    def attention(
        self,
        name: str,
        hidden_states: Tensor,
        attention_masks: dict[str, Tensor | None],
        positions: Tensor | None = None,
        key_value_states: dict[str, Tensor] | None = None,
        cache: EncoderDecoderCache | None = None,
        attention_recorder: AttentionRecorder | None = None,
        **kwargs,
    ) -> Tensor:
        """The residual sublayer of attention `name`: group, global or combined; to the layer's own states or, by
        attention kind, to `key_value_states` (cross-attention); with the keys and values of earlier steps from the
        cache. The global attention adds `positions` `(B, T, D)` to the states."""
        if attention_recorder is not None:
            kwargs["output_attentions"] = True
        attention_type = self.attention_types[name]
        branches = {attention_type: getattr(self, name)}
        if attention_type == "combined":
            branches = {"group": getattr(self, name), "global": getattr(self, f"{name}_global")}

        def attend(states: Tensor) -> Tensor:
            read = states_by_kind(states, positions)
            if key_value_states is None:
                projected = [branch.project(read[kind]) for kind, branch in branches.items()]
                queries = [of_branch for of_branch, _, _ in projected]
                pairs = self.own_keys_and_values([*branches], [pair for _, *pair in projected], cache)
            else:
                queries = [branch.queries(read[kind]) for kind, branch in branches.items()]
                pairs = self.source_keys_and_values(branches, key_value_states, cache)
            outputs, weights = [], {}
            for (kind, branch), asked, (keys, values) in zip(branches.items(), queries, pairs, strict=True):
                output, weights[kind] = branch(asked, keys, values, attention_masks[kind], **kwargs)
                outputs.append(output)
            gate = getattr(self, f"{name}_gate") if attention_type == "combined" else None
            if attention_recorder is not None:
                share = None if gate is None else gate.gate(*outputs)
                attention_recorder(self.stacks[name], self.layer_idx, weights, share)
            return outputs[0] if gate is None else gate(*outputs)

        return self.sublayer(getattr(self, f"{name}_layer_norm"), attend, hidden_states)

    def own_keys_and_values(
        self, kinds: list[str], projected: Sequence[Pair], cache: EncoderDecoderCache | None
    ) -> Sequence[Pair]:
        """Keys and values `(B, H, S, K)` for each branch: of earlier tokens, then the new `projected` ones."""
        if cache is None:
            return projected
        if isinstance(cache, StepCache):
            pairs = zip(kinds, projected, strict=True)
            return [cache.target(self.layer_idx, kind, *pair) for kind, pair in pairs]
        return self._cached(cache.self_attention_cache, projected)

    def source_keys_and_values(
        self,
        branches: dict[str, GTransformerAttention],
        states: dict[str, Tensor],
        cache: EncoderDecoderCache | None,
    ) -> Sequence[Pair]:
        """Keys and values `(B, H, S, K)` of the source for each branch, projected once from states `(B, S, D)`."""
        if isinstance(cache, StepCache):
            return [
                cache.source(self.layer_idx, kind, branch.keys_and_values, states[kind])
                for kind, branch in branches.items()
            ]
        if cache is not None and cache.is_updated.get(self.layer_idx):
            cached = cache.cross_attention_cache.layers[self.layer_idx]
            return _branches(cached.keys, cached.values, len(branches))
        projected = [branch.keys_and_values(states[kind]) for kind, branch in branches.items()]
        if cache is None:
            return projected
        cache.is_updated[self.layer_idx] = True
        return self._cached(cache.cross_attention_cache, projected)

    def _cached(self, cache: Cache, projected: Sequence[Pair]) -> Sequence[Pair]:
        """Puts keys and values of each branch into a cache of Transformers, and returns all that it holds."""
        keys, values = (torch.cat(parts, dim=1) for parts in zip(*projected, strict=True))
        keys, values = cache.update(keys, values, self.layer_idx)
        return _branches(keys, values, len(projected))

    def feed_forward(self, hidden_states: Tensor) -> Tensor:
        """The position-wise feed-forward sublayer."""

        def transform(states: Tensor) -> Tensor:
            activated = self.activation_fn(self.fc1(states))
            if self.training:
                activated = nn.functional.dropout(activated, self.config.activation_dropout)
            return self.fc2(activated)

        hidden_states = self.sublayer(self.final_layer_norm, transform, hidden_states)
        if hidden_states.dtype == torch.float16:
            limit = torch.finfo(hidden_states.dtype).max - 1000
            hidden_states = hidden_states.clamp(-limit, limit)
        return hidden_states


class GTransformerEncoderLayer(GTransformerLayer):
    def __init__(self, config: GTransformerConfig, layer_idx: int):
        super().__init__(config, config.encoder_attention_heads, config.encoder_ffn_dim, layer_idx)
        self.add_attention("self_attn", "encoder")

    def forward(
        self,
        hidden_states: Tensor,
        attention_masks: dict[str, Tensor | None],
        positions: Tensor | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> Tensor:
        hidden_states = self.attention("self_attn", hidden_states, attention_masks, positions, **kwargs)
        return self.feed_forward(hidden_states)


class GTransformerDecoderLayer(GTransformerLayer):
    def __init__(self, config: GTransformerConfig, layer_idx: int):
        super().__init__(config, config.decoder_attention_heads, config.decoder_ffn_dim, layer_idx)
        self.add_attention("self_attn", "decoder")
        self.add_attention("encoder_attn", "cross")

    def forward(
        self,
        hidden_states: Tensor,
        attention_masks: dict[str, Tensor | None],
        positions: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_global_states: Tensor | None = None,
        cross_attention_masks: dict[str, Tensor | None] | None = None,
        cache: EncoderDecoderCache | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> Tensor:
        """`encoder_global_states` `(B, S, D)` are what the global attention reads from the source. They come without a
        dictionary, as reentrant checkpointing finds tensors only among the arguments themselves."""
        hidden_states = self.attention("self_attn", hidden_states, attention_masks, positions, cache=cache, **kwargs)
        if encoder_hidden_states is not None and encoder_global_states is not None and cross_attention_masks:
            source_states = {"group": encoder_hidden_states, "global": encoder_global_states}
            hidden_states = self.attention(
                "encoder_attn",
                hidden_states,
                cross_attention_masks,
                positions,
                source_states,
                cache,
                **kwargs,
            )
        return self.feed_forward(hidden_states)
