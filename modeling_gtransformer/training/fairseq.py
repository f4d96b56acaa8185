"""Reads models that were trained with the authors' fairseq code (github.com/baoguangsheng/g-transformer)."""

import argparse
import os
import pickle
import re
from typing import Any

import torch
from torch import Tensor, nn
from transformers.utils import logging

from ..configuration_gtransformer import GTransformerConfig
from ..layers_gtransformer import POSITION_OFFSET
from ..modeling_gtransformer import GTransformerForConditionalGeneration


logger = logging.get_logger(__name__)

# Defaults that fairseq fills in for a run: those of its base architecture, and the changes for mBART.
BASE_ARGUMENTS: dict[str, Any] = {
    "encoder_normalize_before": False,
    "decoder_normalize_before": False,
    "encoder_learned_pos": False,
    "decoder_learned_pos": False,
    "layernorm_embedding": False,
    "no_scale_embedding": False,
    "share_all_embeddings": False,
    "share_decoder_input_output_embed": False,
    "activation_fn": "relu",
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "relu_dropout": 0.0,
    "max_source_positions": 1024,
    "max_target_positions": 1024,
    "encoder_ctxlayers": 2,
    "decoder_ctxlayers": 2,
    "cross_ctxlayers": 2,
}
MBART_ARGUMENTS: dict[str, Any] = {
    "encoder_learned_pos": True,
    "decoder_learned_pos": True,
    "layernorm_embedding": True,
    "share_all_embeddings": True,
    "share_decoder_input_output_embed": True,
    "activation_fn": "gelu",
}
REQUIRED = ["arch", "doc_mode", "dropout", "langs", "source_lang", "target_lang"]
REQUIRED += [f"{side}_{size}" for side in ("encoder", "decoder") for size in ("embed_dim", "ffn_embed_dim", "layers")]
REQUIRED += ["encoder_attention_heads", "decoder_attention_heads"]
# Arguments that change a model's results in a way that no GTransformerConfig has; unset, they have no effect.
UNSUPPORTED = (
    "adaptive_input",
    "adaptive_softmax_cutoff",
    "cross_self_attention",
    "decoder_layers_to_keep",
    "encoder_layers_to_keep",
    "no_cross_attention",
    "no_decoder_final_norm",
    "no_token_positional_embeddings",
    "prepend_bos",
    "quant_noise_pq",
    "quant_noise_scalar",
)
DOC_MODES = ("full", "partial")
ARCHITECTURES = ("transformer", "gtransformer", "mbart")
ACTIVATIONS = ("relu", "gelu", "gelu_accurate", "gelu_fast", "tanh", "linear")

# The authors call group attention "local"; here it keeps the name of mBART's attention, from which it starts.
RENAMED = [
    (r"^(encoder|decoder)\.", r"model.\1."),
    (r"_attn_local\.", "_attn."),
    (r"_attn_gate\.0\.", "_attn_gate."),
    (r"^model\.decoder\.output_projection\.", "lm_head."),
]
# The number of a format, and stand-ins for position tables that are computed.
DROPPED = re.compile(r"\.(version|embed_positions\.(_float_tensor|weights))$")
ENCODER_EMBEDDINGS, DECODER_EMBEDDINGS = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
OUTPUT_LAYER = "decoder.output_projection.weight"
EMBEDDINGS = (ENCODER_EMBEDDINGS, DECODER_EMBEDDINGS, OUTPUT_LAYER)


def read_checkpoint(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """
    Loads the arguments and the weights of a fairseq checkpoint without running any code of the file.

    Raises:
        ValueError: the file holds more than tensors, numbers, text and the arguments, or is not such a checkpoint.
    """
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError) as error:
        found = re.search(r"GLOBAL (\S+)", str(error))
        if found is None:
            raise ValueError(f"{path} is damaged, or was not written by torch.save.") from error
        raise ValueError(
            f"{path} holds a {found[1]}. Only tensors, numbers, text and an argparse.Namespace are loaded: anything "
            "else could run code. If you trust the file, save its entries 'args' and 'model' alone: "
            "torch.save({name: checkpoint[name] for name in ('args', 'model')}, path)."
        ) from None
    args, weights = (checkpoint.get(name) if isinstance(checkpoint, dict) else None for name in ("args", "model"))
    if not isinstance(args, argparse.Namespace) or not isinstance(weights, dict):
        raise ValueError(
            f"{path} is not a checkpoint of the authors' code, which has 'args', an argparse.Namespace, and 'model'."
        )
    return vars(args), weights


def model_from_fairseq(args: dict[str, Any], weights: dict[str, Tensor]) -> GTransformerForConditionalGeneration:
    """
    Builds the model of a fairseq run, in float32 as the authors evaluate it.

    Embeddings that the run does not share are untied. If there are two vocabularies, the matrix of the smaller one is
    padded, and words that the target vocabulary does not have get the logit minus infinity.

    Args:
        args: the run's arguments, `vars(checkpoint["args"])`.
        weights: `checkpoint["model"]`.

    Raises:
        ValueError: an argument that no [`GTransformerConfig`] expresses, or weights that contradict the arguments.
        RuntimeError: weights have other sizes than the arguments say.
    """
    args = supported_arguments(args)
    weights = with_current_names(weights, args["share_decoder_input_output_embed"])
    check_sharing(args, weights)
    config = config_from_fairseq(args, max(len(weights[name]) for name in EMBEDDINGS))
    model = GTransformerForConditionalGeneration(config)
    missing, unexpected = model.load_state_dict(state_dict_from_fairseq(weights, config), strict=False)
    if missing or unexpected:
        raise ValueError(
            f"The arguments contradict the weights: {missing} are missing, {unexpected} are not expected."
        )
    return model.eval()


def supported_arguments(args: dict[str, Any]) -> dict[str, Any]:
    """
    Completes the arguments of a run: those that an older checkpoint lacks get fairseq's defaults.

    Raises:
        ValueError: an argument is missing that has no default, or no [`GTransformerConfig`] expresses its value.
    """
    given = {name: value for name, value in args.items() if value is not None}
    if absent := [name for name in REQUIRED if name not in given]:
        raise ValueError(f"The arguments of the checkpoint lack {absent}: it was not trained with the authors' code.")
    family = given["arch"].split("_")[0]
    if family not in ARCHITECTURES:
        raise ValueError(f"arch={given['arch']!r} is unknown: the authors' begin with one of {ARCHITECTURES}.")
    args = BASE_ARGUMENTS | (MBART_ARGUMENTS if family == "mbart" else {}) | given
    for name in UNSUPPORTED:
        if args.get(name):
            raise ValueError(f"{name}={args[name]!r} makes another model, which GTransformerConfig cannot express.")
    for name, known in (("doc_mode", DOC_MODES), ("activation_fn", ACTIVATIONS)):
        if args[name] not in known:
            raise ValueError(f"{name}={args[name]!r} is unknown: the authors' code has {known}.")
    for name in ("normalize_before", "learned_pos", "embed_dim"):
        if args[f"encoder_{name}"] != args[f"decoder_{name}"]:
            raise ValueError(
                f"encoder_{name} and decoder_{name} differ, but GTransformerConfig has one value for both."
            )
    if args.get("decoder_output_dim", args["decoder_embed_dim"]) != args["decoder_embed_dim"]:
        raise ValueError(
            "decoder_output_dim and decoder_embed_dim differ, but GTransformerConfig has one value for both."
        )
    if args["share_all_embeddings"]:
        args["share_decoder_input_output_embed"] = True
    return args


def config_from_fairseq(args: dict[str, Any], vocab_size: int) -> GTransformerConfig:
    """
    Makes the configuration of a fairseq run.

    Args:
        args: the run's arguments, `vars(checkpoint["args"])`.
        vocab_size: number of words of the larger vocabulary, language codes and `<mask>` included.

    Raises:
        ValueError: an argument that no [`GTransformerConfig`] expresses.
    """
    args = supported_arguments(args)
    if args["encoder_learned_pos"] and args["max_source_positions"] != args["max_target_positions"]:
        logger.warning(
            f"The encoder has learned {args['max_source_positions']} positions, the decoder "
            f"{args['max_target_positions']}: beyond its own positions, each has zeros that were never trained."
        )
    config = {
        "vocab_size": vocab_size,
        "d_model": args["encoder_embed_dim"],
        "max_position_embeddings": max(args["max_source_positions"], args["max_target_positions"]),
        "normalize_before": args["encoder_normalize_before"],
        "layernorm_embedding": args["layernorm_embedding"],
        "position_embedding_type": "learned" if args["encoder_learned_pos"] else "sinusoidal",
        "scale_embedding": not args["no_scale_embedding"],
        "tie_word_embeddings": args["share_all_embeddings"],
        "activation_function": args["activation_fn"],
        "dropout": args["dropout"],
        "attention_dropout": args["attention_dropout"],
        "activation_dropout": args["activation_dropout"] or args["relu_dropout"],
        # The base architectures start from Xavier's distribution, those of mBART from a normal one.
        "init_std": 0.02 if args["arch"].startswith("mbart") else None,
    }
    for side in ("encoder", "decoder"):
        config[f"{side}_layers"] = args[f"{side}_layers"]
        config[f"{side}_ffn_dim"] = args[f"{side}_ffn_embed_dim"]
        config[f"{side}_attention_heads"] = args[f"{side}_attention_heads"]
    for stack, side in (("encoder", "encoder"), ("decoder", "decoder"), ("cross", "decoder")):
        layers = args[f"{side}_layers"]
        if args["doc_mode"] == "full":
            config[f"{stack}_attention_types"] = ["global"] * layers
        else:
            config[f"{stack}_global_layers"] = min(args[f"{stack}_ctxlayers"], layers)
    return GTransformerConfig(**config)


def with_current_names(weights: dict[str, Tensor], share_output_layer: bool) -> dict[str, Tensor]:
    """
    Renames weights to the names that the authors' code saves today; that code reads older names, too.

    Raises:
        ValueError: a weight has two names, embeddings are missing, or fairseq would leave out the last layer norm.
    """
    current: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if name.endswith(".version") and tensor.item() < 3:
            raise ValueError(f"{name} is {tensor.item():g}, for which fairseq leaves out the last layer norm.")
        if DROPPED.search(name):
            continue
        named = with_current_name(name, tensor)
        if twice := current.keys() & named.keys():
            raise ValueError(
                f"The checkpoint has {sorted(twice)} under both an old and a current name, one of them {name}."
            )
        current |= named
    if share_output_layer and DECODER_EMBEDDINGS in current:
        current.setdefault(OUTPUT_LAYER, current[DECODER_EMBEDDINGS])
    if absent := [name for name in EMBEDDINGS if name not in current]:
        raise ValueError(f"The checkpoint lacks {absent}.")
    return current


def with_current_name(name: str, tensor: Tensor) -> dict[str, Tensor]:
    """Yields a weight under its current name; older names join queries, keys and values as `in_proj_*`."""
    name = re.sub(r"\.(self|encoder)_attn\.", r".\1_attn_local.", name)
    if match := re.fullmatch(r"(.+\.)in_proj_(weight|bias)", name):
        parts = zip("qkv", tensor.chunk(3), strict=True)
        return {f"{match[1]}{projection}_proj.{match[2]}": part for projection, part in parts}
    return {OUTPUT_LAYER if name == "decoder.embed_out" else name: tensor}


def check_sharing(args: dict[str, Any], weights: dict[str, Tensor]) -> None:
    """Raises a `ValueError` if embeddings that the arguments call shared differ."""
    for argument, first in (("share_all_embeddings", 0), ("share_decoder_input_output_embed", 1)):
        matrices = [weights[name] for name in EMBEDDINGS[first:]]
        if args[argument] and not all(matrix.equal(matrices[0]) for matrix in matrices):
            raise ValueError(f"{argument} is set, but the checkpoint's {', '.join(EMBEDDINGS[first:])} differ.")


def rename(name: str) -> str:
    """Gives the name of a fairseq parameter in [`GTransformerForConditionalGeneration`]."""
    for pattern, replacement in RENAMED:
        name = re.sub(pattern, replacement, name)
    return name


def state_dict_from_fairseq(weights: dict[str, Tensor], config: GTransformerConfig) -> dict[str, Tensor]:
    """
    Renames the weights of a fairseq checkpoint from their current names to those of
    [`GTransformerForConditionalGeneration`].

    Position tables and embeddings that are shorter than the configuration says are padded with zeros.
    """
    lengths = {"embed_positions.weight": config.max_position_embeddings + POSITION_OFFSET}
    lengths |= dict.fromkeys(EMBEDDINGS, config.vocab_size)
    state: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        for ending, length in lengths.items():
            if name.endswith(ending) and len(tensor) < length:
                tensor = nn.functional.pad(tensor, (0, 0, 0, length - len(tensor)))
        state[rename(name)] = tensor
    if config.tie_word_embeddings:
        state["model.shared.weight"] = weights[ENCODER_EMBEDDINGS]
    # A finite logit would give probability to words that do not exist.
    state["final_logits_bias"] = torch.zeros(1, config.vocab_size)
    state["final_logits_bias"][:, len(weights[OUTPUT_LAYER]) :] = -torch.inf
    return state
