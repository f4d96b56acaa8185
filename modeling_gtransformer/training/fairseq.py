"""Read models that the authors' fairseq code (github.com/baoguangsheng/g-transformer) trained."""

import re
from typing import Any

import torch
from torch import Tensor

from ..configuration_gtransformer import GTransformerConfig


# The authors call the group attention "local"; its pretrained half keeps mBART's name here.
RENAMED = [
    (r"^(encoder|decoder)\.", r"model.\1."),
    (r"_attn_local\.", "_attn."),
    (r"_attn_gate\.0\.", "_attn_gate."),
    (r"^model\.decoder\.output_projection\.", "lm_head."),
]
DROPPED = re.compile(r"(\.version|\._float_tensor)$")


def config_from_fairseq(args: dict[str, Any], vocab_size: int) -> GTransformerConfig:
    """
    The configuration of a fairseq run.

    Args:
        args: the run's arguments, `vars(checkpoint["args"])`.
        vocab_size: number of words, language codes and `<mask>` included.

    Raises:
        ValueError: encoder and decoder differ in what a `GTransformerConfig` has only once.
    """
    for name in ("normalize_before", "learned_pos", "embed_dim"):
        if args[f"encoder_{name}"] != args[f"decoder_{name}"]:
            raise ValueError(f"encoder_{name} and decoder_{name} differ: no GTransformerConfig has both.")
    config = {
        "vocab_size": vocab_size,
        "d_model": args["encoder_embed_dim"],
        "max_position_embeddings": max(args["max_source_positions"], args["max_target_positions"]),
        "normalize_before": args["encoder_normalize_before"],
        "layernorm_embedding": args["layernorm_embedding"],
        "position_embedding_type": "learned" if args["encoder_learned_pos"] else "sinusoidal",
        "scale_embedding": not args["no_scale_embedding"],
        "activation_function": args["activation_fn"],
        "dropout": args["dropout"],
        "attention_dropout": args["attention_dropout"],
        "activation_dropout": args["activation_dropout"],
        # The base architectures start from Xavier, those of mBART from a normal distribution.
        "init_std": 0.02 if args["arch"].startswith("mbart") else None,
    }
    for side in ("encoder", "decoder"):
        config[f"{side}_layers"] = args[f"{side}_layers"]
        config[f"{side}_ffn_dim"] = args[f"{side}_ffn_embed_dim"]
        config[f"{side}_attention_heads"] = args[f"{side}_attention_heads"]
    if args["doc_mode"] == "full":
        layers = {"encoder": "encoder_layers", "decoder": "decoder_layers", "cross": "decoder_layers"}
        config |= {f"{stack}_attention_types": ["global"] * args[count] for stack, count in layers.items()}
    else:
        config |= {f"{stack}_global_layers": args[f"{stack}_ctxlayers"] for stack in ("encoder", "decoder", "cross")}
    return GTransformerConfig(**config)


def rename(name: str) -> str:
    """The name of a fairseq parameter in [`GTransformerForConditionalGeneration`]."""
    for pattern, replacement in RENAMED:
        name = re.sub(pattern, replacement, name)
    return name


def state_dict_from_fairseq(state_dict: dict[str, Tensor], config: GTransformerConfig) -> dict[str, Tensor]:
    """
    The weights of a fairseq checkpoint under the names of [`GTransformerForConditionalGeneration`], for
    `load_state_dict`. Position tables that are shorter than the configuration's are filled up with zeros.
    """
    renamed = {}
    for name, tensor in state_dict.items():
        if DROPPED.search(name):
            continue
        name = rename(name)
        if name.endswith("embed_positions.weight"):
            missing = config.max_position_embeddings + 2 - tensor.shape[0]
            tensor = torch.nn.functional.pad(tensor, (0, 0, 0, missing))
        renamed[name] = tensor
    renamed["model.shared.weight"] = renamed["model.encoder.embed_tokens.weight"]
    renamed["final_logits_bias"] = torch.zeros(1, config.vocab_size)
    return renamed
