"""The models that benchmarks compare, of random weights from fixed seeds, and random documents for them."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from measure import DEVICE
from transformers import MBartConfig, MBartForConditionalGeneration, MBartTokenizer

from modeling_gtransformer import GTransformerConfig, GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.runtime.int8_linear import quantize_linear_layers
from modeling_gtransformer.sentence_level_models import ONLY_GROUP


BOS, PAD, EOS, END_OF_DOCUMENT = 0, 1, 2, 3


def size(vocabulary: int, width: int, layers: int, positions: int, **others: Any) -> dict[str, Any]:
    """Arguments of the configuration of a model with the proportions of the base Transformer."""
    stack = {"layers": layers, "ffn_dim": 4 * width, "attention_heads": max(width // 64, 2)}
    stacks = {f"{part}_{name}": value for part in ("encoder", "decoder") for name, value in stack.items()}
    values = {"vocab_size": vocabulary, "d_model": width, "max_position_embeddings": positions, **stacks}
    return {**values, "scale_embedding": True, **others}


ONE_GLOBAL_LAYER = {f"{stack}_global_layers": 1 for stack in ("encoder", "decoder", "cross")}
SIZES = {
    "tiny": size(1000, 32, 2, 1024),
    "small": size(4004, 256, 3, 1024, dropout=0.3, **ONE_GLOBAL_LAYER),
    "base": size(32000, 512, 6, 8200),
    "mbart25": size(250027, 1024, 12, 1024),
}
SYSTEMS: dict[str, dict[str, Any]] = {
    "gtransformer": {},
    "gtransformer-k0": ONLY_GROUP,
    "gtransformer-source": {"decoder_global_layers": 0, "cross_global_layers": 0, "position_scope": "sentence"},
    "gtransformer-eager": {"attn_implementation": "eager"},
}
# Changes of a model in place, by the last part of a system's name.
SUFFIXES: dict[str, Callable[[torch.nn.Module], Any]] = {
    "bfloat16": torch.nn.Module.bfloat16,
    "int8": quantize_linear_layers,
    "compiled": torch.nn.Module.compile,
}


def make_model(system: str, size: str = "base") -> torch.nn.Module:
    """
    Makes a model on the device.

    Args:
        system: "mbart" (Transformers' own, SDPA; whatever follows is for its inputs), "gtransformer" (K = 2),
            "gtransformer-k0", "gtransformer-source" (source context alone), or "gtransformer-eager", the reference;
            a last suffix "-compiled" compiles it, "-bfloat16" or "-int8" prepares it for serving.
    """
    torch.manual_seed(0)
    name, _, suffix = system.rpartition("-")
    if suffix in SUFFIXES:
        model = make_model(name, size)
        SUFFIXES[suffix](model)
        return model
    with torch.device(DEVICE):
        if system.startswith("mbart"):
            return MBartForConditionalGeneration(MBartConfig(**SIZES[size]))
        model = GTransformerForConditionalGeneration(GTransformerConfig(**(SIZES[size] | SYSTEMS[system])))
    model.generation_config.eos_token_id = END_OF_DOCUMENT
    return model


def make_sentences(tokens: int, words: tuple[int, int] = (8, 42), vocabulary: int = 1000) -> list[torch.Tensor]:
    """Random sentences of so many tokens together, by default of 25 words on average as in the paper's corpora."""
    generator = torch.Generator().manual_seed(0)
    sentences = []
    while tokens:
        count = int(torch.randint(words[0], words[1] + 1, (1,), generator=generator)) + 2
        count = tokens if tokens < count + 3 else count  # a rest of fewer than three tokens is no sentence
        sentence = torch.randint(END_OF_DOCUMENT + 1, vocabulary, (count,), generator=generator)
        sentence[0], sentence[-1] = BOS, EOS
        sentences.append(sentence)
        tokens -= count
    return sentences


def make_processor(words: Sequence[str]) -> GTransformerProcessor:
    """A processor of a vocabulary of words, digits and lower-case letters, from English to German."""
    specials = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    pieces = ["▁", *"0123456789abcdefghijklmnopqrstuvwxyz", *(f"▁{word}" for word in words)]
    vocabulary = [*specials, *((piece, -8 - rank / len(pieces)) for rank, piece in enumerate(pieces))]
    return GTransformerProcessor(MBartTokenizer(vocab=vocabulary, src_lang="en_XX", tgt_lang="de_DE"))


def make_translator(
    words: Sequence[str], size: str, sentence_words: int, **config: Any
) -> tuple[GTransformerForConditionalGeneration, GTransformerProcessor]:
    """A model of random weights for texts of these words, which translates every sentence into so many tokens."""
    torch.manual_seed(0)
    processor = make_processor(words)
    values = SIZES[size] | {"vocab_size": len(processor.tokenizer)} | config
    model = GTransformerForConditionalGeneration(GTransformerConfig(**values)).eval()
    processor.configure(model)
    model.generation_config.update(max_length_a=0, max_length_b=sentence_words, min_length=sentence_words)
    return model, processor
