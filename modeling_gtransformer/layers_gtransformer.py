"""The layers of G-Transformer: embeddings, dropout, and encoder and decoder layers with attention of every kind."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs

from .cache_gtransformer import StepCache
from .configuration_gtransformer import GTransformerConfig
from .group_attention import AttentionRecorder, GTransformerAttention, GTransformerGate


# Keys and values.
Pair = Sequence[Any]


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


# Number of values of the 16 random bits that decide on an element; four elements are drawn at a time.
STEPS = 2**16


def dropout(states: Tensor, rate: float, training: bool) -> Tensor:
    """
    `torch.nn.functional.dropout`, but cheaper on a CPU, where that draws and keeps a number for every element.

    There the rate is rounded to a multiple of 2**-16, and what is kept is scaled accordingly, to preserve the mean.
    """
    dropped = round(rate * STEPS)
    if not training or states.device.type != "cpu" or not 0 < dropped < STEPS or torch.compiler.is_compiling():
        return nn.functional.dropout(states, rate, training)
    return _Dropout.apply(states, dropped)


class _Dropout(torch.autograd.Function):
    """Dropout that keeps one byte per element for the gradient."""

    @staticmethod
    def forward(ctx, states, dropped):
        draws = torch.empty(-(-states.numel() // 4), dtype=torch.int64, device=states.device).random_(-(2**63), None)
        kept = (draws.view(torch.int16)[: states.numel()] >= dropped - STEPS // 2).view(states.shape)
        ctx.save_for_backward(kept)
        ctx.scale = STEPS / (STEPS - dropped)
        return torch.where(kept, states, 0).mul_(ctx.scale)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        (kept,) = ctx.saved_tensors
        return torch.where(kept, grad_output, 0).mul_(ctx.scale), None


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


def is_plain_linear(module: nn.Module) -> bool:
    """Tells whether the module does nothing but a linear map of its input: no adapter, quantisation or hook."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return type(module) is nn.Linear and not any(hooks) and "forward" not in vars(module)


class _ActivatedLinear(torch.autograd.Function):
    """`linear(activation(states))` that keeps only `states`: the backward pass computes the activation again, which
    takes no matrix product, instead of keeping the widest states of a layer twice."""

    @staticmethod
    def forward(ctx, states, weight, bias, activation):
        ctx.save_for_backward(states, weight)
        ctx.activation, ctx.has_bias = activation, bias is not None
        return nn.functional.linear(activation(states), weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        states, weight = ctx.saved_tensors
        with torch.enable_grad():
            states = states.detach().requires_grad_()
            activated = ctx.activation.forward(states)  # without its hooks, which have already run
        grad_activated = (grad_output @ weight.to(grad_output.dtype)).to(activated.dtype)
        (grad_states,) = torch.autograd.grad(activated, states, grad_activated)
        grad_weight, grad_output = None, grad_output.flatten(0, -2)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.T @ activated.detach().flatten(0, -2).to(grad_output.dtype)
        return grad_states, grad_weight, grad_output.sum(dim=0) if ctx.has_bias else None, None


def states_by_kind(states: Tensor, positions: Tensor | None) -> dict[str, Tensor]:
    """What each kind of attention reads from the states `(B, T, D)`: the global one adds `positions`, if any."""
    return {"group": states, "global": states if positions is None else states + positions.to(states.dtype)}


def _branches(keys: Tensor, values: Tensor, number: int) -> Sequence[Pair]:
    """Keys and values of this many branches, which are side by side, like heads, in the single entry of a layer."""
    return list(zip(keys.chunk(number, 1), values.chunk(number, 1), strict=True))


class GTransformerLayer(GradientCheckpointingLayer):
    """Base of encoder and decoder layers: residual connections (pre- or post-norm) and attention of every kind."""

    def __init__(self, config: GTransformerConfig, num_heads: int, ffn_dim: int, layer_idx: int):
        super().__init__()
        self.config = config
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
        output = function(norm(hidden_states) if self.config.normalize_before else hidden_states)
        hidden_states = hidden_states + dropout(output, self.config.dropout, self.training)
        return hidden_states if self.config.normalize_before else norm(hidden_states)

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
        """Keys and values `(B, H, S, K)` for each branch: those of earlier tokens, then the new `projected` ones."""
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
            states = self.fc1(states)
            rate = self.config.activation_dropout if self.training else 0.0
            # ReLU keeps only its output anyway.
            lean = torch.is_grad_enabled() and not rate and self.config.activation_function != "relu"
            if lean and is_plain_linear(self.fc2) and not torch.compiler.is_compiling():
                return _ActivatedLinear.apply(states, self.fc2.weight, self.fc2.bias, self.activation_fn)
            return self.fc2(dropout(self.activation_fn(states), rate, self.training))

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
