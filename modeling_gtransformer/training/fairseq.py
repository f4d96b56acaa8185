"""Converts checkpoints of the authors' fairseq code (github.com/baoguangsheng/g-transformer).

The checkpoint is loaded without running its code. A model with BPE reads and writes text tokenized and truecased by
Moses, like its training data; `train/studies/moses.py` converts text in both directions. A model from mBART has
mBART's tokenizer.
"""

import argparse
import os
import pickle
import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoTokenizer, PhobertTokenizer, PreTrainedTokenizerBase
from transformers.utils import logging

from ..configuration_gtransformer import GTransformerConfig
from ..language_tokens import LanguageTokens
from ..layers_gtransformer import POSITION_OFFSET
from ..modeling_gtransformer import GTransformerForConditionalGeneration
from ..processing_gtransformer import GTransformerProcessor
from ..runtime.atomic_file import atomic_folder
from ..translation_options import option
from .tokenizer import SPECIAL_TOKENS


logger = logging.get_logger(__name__)

# Arguments that change the results of a model, but are neither supported by GTransformerConfig nor visible in weights.
UNSUPPORTED = ("encoder_layers_to_keep", "decoder_layers_to_keep", "no_token_positional_embeddings", "prepend_bos")
# The authors' "local" attention is group attention, which has the names of mBART's attention.
RENAMED = [
    (r"^(encoder|decoder)\.", r"model.\1."),
    (r"_attn_local\.", "_attn."),
    (r"_attn_gate\.0\.", "_attn_gate."),
    (r"^model\.decoder\.output_projection\.", "lm_head."),
]
# Format versions, and placeholders for computed position tables.
DROPPED = re.compile(r"\.(version|embed_positions\.(_float_tensor|weights))$")
EMBEDDINGS = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight")
CODES_HEADER = "#version: 0.2"
# Padding of a dictionary, and language codes.
NO_WORD = re.compile(r"madeupword\d{4}|\[\w+\]")


@dataclass(frozen=True)
class FairseqOptions:
    """Options of `gtransformer convert fairseq`."""

    checkpoint: Path = option(MISSING, "Checkpoint of the authors' code, such as checkpoint_best.pt.", argument=True)
    output: Path = option(MISSING, "New folder for model and processor.", argument=True)
    dict: Path | None = option(None, "File dict.txt of both sides; needs bpe_codes.")
    bpe_codes: Path | None = option(None, "Codes that subword-nmt learned from both languages; needs dict.")
    tokenizer: str | None = option(None, "Tokenizer, such as facebook/mbart-large-cc25, instead of these files.")

    def __post_init__(self) -> None:
        files = [self.dict, self.bpe_codes]
        if [*map(bool, files)] != [not self.tokenizer] * 2:
            raise ValueError("Give either dict and bpe_codes, or tokenizer.")
        if missing := [str(file) for file in (self.checkpoint, *files) if file and not file.is_file()]:
            raise ValueError(f"No such file: {', '.join(missing)}.")


def convert_fairseq(options: FairseqOptions) -> None:
    """
    Writes the model and its processor, and prints a summary.

    Raises:
        ValueError: the files do not match, or do not belong to the authors' code.
    """
    with atomic_folder(options.output) as folder:
        arguments, weights = read_checkpoint(options.checkpoint)
        model = model_from_fairseq(arguments, weights)
        processor = _make_processor(arguments, options, folder)
        if (tokens := len(processor.tokenizer)) != model.config.vocab_size:
            raise ValueError(f"The tokenizer has {tokens} tokens, the checkpoint {model.config.vocab_size}.")
        processor.save_pretrained(folder)
        processor.configure(model)
        model.save_pretrained(folder)
        print(f"{model.num_parameters():,} parameters, {tokens:,} tokens, in {options.output}")


def read_checkpoint(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """
    Loads the arguments and the weights of a fairseq checkpoint without running code of the file.

    Raises:
        ValueError: the file contains other objects than tensors, numbers, text and the arguments, or is not such a
            checkpoint.
    """
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError) as error:
        found = re.search(r"GLOBAL (\S+)", str(error))
        if found is None:
            raise ValueError(f"{path} is damaged, or was not written by torch.save.") from error
        raise ValueError(
            f"{path} contains a {found[1]}. Only tensors, numbers, text and an argparse.Namespace are loaded, because "
            "other objects can run code. If you trust the file, save its entries 'args' and 'model' alone: "
            "torch.save({name: checkpoint[name] for name in ('args', 'model')}, path)."
        ) from None
    args, weights = (checkpoint.get(name) if isinstance(checkpoint, dict) else None for name in ("args", "model"))
    if not isinstance(args, argparse.Namespace) or not isinstance(weights, dict):
        raise ValueError(
            f"{path} is not a checkpoint of the authors' code: 'args' must be an argparse.Namespace, 'model' a dict."
        )
    return vars(args), weights


def model_from_fairseq(args: dict[str, Any], weights: dict[str, Tensor]) -> GTransformerForConditionalGeneration:
    """
    Builds the model of a fairseq run in float32, the precision of the authors' evaluation.

    Args:
        args: `vars(checkpoint["args"])`.
        weights: `checkpoint["model"]`.

    Raises:
        ValueError: [`GTransformerConfig`] does not support an argument, or weights contradict the arguments.
        RuntimeError: sizes of weights contradict the arguments.
    """
    config = config_from_fairseq(args, len(weights.get(EMBEDDINGS[0], ())))
    embeddings = [weights[name] for name in EMBEDDINGS if name in weights]
    if len(embeddings) < 3 or not all(each.equal(embeddings[0]) for each in embeddings):
        raise ValueError(f"The checkpoint must share its embeddings {', '.join(EMBEDDINGS)}, as the authors' do.")
    state = {rename(name): tensor for name, tensor in weights.items() if not DROPPED.search(name)}
    for name, tensor in state.items():
        missing_rows = config.max_position_embeddings + POSITION_OFFSET - len(tensor)
        if name.endswith("embed_positions.weight") and missing_rows > 0:
            logger.warning(f"{name} has {len(tensor)} trained positions: the remaining {missing_rows} are zeros.")
            state[name] = nn.functional.pad(tensor, (0, 0, 0, missing_rows))
    state |= {"model.shared.weight": embeddings[0], "final_logits_bias": torch.zeros(1, config.vocab_size)}
    model = GTransformerForConditionalGeneration(config)
    missing, unexpected = model.load_state_dict(state, strict=False)
    if missing or unexpected:
        raise ValueError(
            f"The arguments contradict the weights: {missing} are missing, {unexpected} are not expected."
        )
    return model.eval()


def config_from_fairseq(args: dict[str, Any], vocab_size: int) -> GTransformerConfig:
    """
    Makes the configuration of a fairseq run from its arguments.

    Raises:
        ValueError: an argument is missing, or [`GTransformerConfig`] does not support it.
    """
    for name in UNSUPPORTED:
        if args.get(name):
            raise ValueError(f"GTransformerConfig does not support {name}={args[name]!r}.")
    try:
        for name in ("normalize_before", "learned_pos", "embed_dim"):
            if args[f"encoder_{name}"] != args[f"decoder_{name}"]:
                raise ValueError(f"encoder_{name} and decoder_{name} differ, but GTransformerConfig has one value.")
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
            "activation_dropout": args["activation_dropout"] or args.get("relu_dropout", 0.0),
            # The base architectures use Xavier initialization, mBART's a normal distribution.
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
    except KeyError as error:
        raise ValueError(
            f"The arguments of the checkpoint lack {error}: the authors' code did not train it."
        ) from None
    return GTransformerConfig(**config)


def rename(name: str) -> str:
    """Returns the name of a fairseq parameter in [`GTransformerForConditionalGeneration`]."""
    for pattern, replacement in RENAMED:
        name = re.sub(pattern, replacement, name)
    return name


def _make_processor(arguments: dict[str, Any], options: FairseqOptions, folder: Path) -> GTransformerProcessor:
    """Makes the processor for the run's languages. Tokenizers with BPE write their files into the folder."""
    source, target = (arguments[name] for name in ("source_lang", "target_lang"))
    if options.tokenizer:
        tokenizer = AutoTokenizer.from_pretrained(options.tokenizer)
        codes = LanguageTokens(tokenizer, ()).codes
        # The authors shorten mBART's language codes to two letters.
        source, target = (next((c for c in codes if c.startswith(name)), name) for name in (source, target))
        return GTransformerProcessor(tokenizer, source, target)
    assert options.dict and options.bpe_codes
    folder.mkdir()
    words = read_dictionary(options.dict, arguments["langs"].split(","))
    tokenizer = bpe_tokenizer(words, options.bpe_codes, folder)
    return GTransformerProcessor(tokenizer, f"[{source}]", f"[{target}]", normalization=None)


def read_dictionary(path: str | os.PathLike, languages: Sequence[str]) -> list[str]:
    """
    Reads the tokens of a `dict.txt` with lines `word count`, in the order of their ids. As in the authors' task,
    `<s> <pad> </s> <unk>` precede the words, and the codes of `--langs`, `[en]`, ... and `<mask>` follow them. Raises
    `ValueError` for a line of another form or with a word that is there already.
    """
    words = dict.fromkeys(SPECIAL_TOKENS)
    with open(path, encoding="utf-8", errors="surrogateescape") as file:  # binary files fail below
        for number, line in enumerate(file, 1):
            word, _, count = line.rstrip().rpartition(" ")
            if not word or not count.isdecimal() or word in words:
                raise ValueError(f"{path}, line {number}: expected a new word and its count, found {line.rstrip()!r}.")
            words[word] = None
    return [*words, *(f"[{language}]" for language in languages), "<mask>"]


def bpe_tokenizer(words: list[str], codes: str | os.PathLike, folder: str | os.PathLike) -> PreTrainedTokenizerBase:
    """
    Makes a tokenizer with the pieces of subword-nmt, marked `@@` where a word continues, and their fairseq ids. Pieces
    outside the dictionary become `<unk>`. PhoBERT's tokenizer works this way, because it was trained with fairseq; its
    files are in the folder. Raises `ValueError` for codes of an unknown version or form.
    """
    header, *merges = Path(codes).read_text("utf-8", "surrogateescape").rstrip("\n").split("\n")
    if header != CODES_HEADER:
        raise ValueError(f"{codes} begins with {header!r}, but codes of subword-nmt begin with {CODES_HEADER!r}.")
    for number, merge in enumerate(merges, 2):
        if len(merge.split()) != 2:
            raise ValueError(f"{codes}, line {number}: expected two pieces to merge, found {merge!r}.")
    files = Path(folder, "vocab.txt"), Path(folder, "bpe.codes")
    # The tokenizer ignores a count at the end of each line.
    for file, lines in zip(files, (words[len(SPECIAL_TOKENS) :], dict.fromkeys(merges)), strict=True):
        file.write_text("".join(f"{line} 0\n" for line in lines), encoding="utf-8")
    special = [*filter(NO_WORD.fullmatch, words)]
    return PhobertTokenizer(*map(str, files), extra_special_tokens=special, clean_up_tokenization_spaces=False)
