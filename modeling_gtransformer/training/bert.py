"""Builds a G-Transformer with an encoder from BERT, for the recipe `bert` (paper, G-Transformer+BERT).

BERT's layers become the encoder's group attention and feed-forward layers. Its word embeddings serve encoder, decoder
and output layer, so choose a BERT trained on both languages. Decoder, global attention and gates start from random
weights. `[CLS]` opens a sentence and `[SEP]` closes it. BERT's tokenizer does not restore all spaces when decoding, so
also score such models against references that it has encoded and decoded.
"""

import re
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoTokenizer, BertConfig, BertModel, set_seed

from ..configuration_gtransformer import GTransformerConfig
from ..layers_gtransformer import POSITION_OFFSET
from ..modeling_gtransformer import GTransformerForConditionalGeneration
from ..processing_gtransformer import GTransformerProcessor
from ..runtime.atomic_file import atomic_folder
from ..translation_options import option
from .licenses import keep_origin
from .tokenizer import refuse_bare_codes


RENAMED: list[tuple[str, Any]] = [
    (r"^encoder\.layer\.", "layers."),
    (r"\.attention\.self\.(query|key|value)\.", lambda match: f".self_attn.{match[1][0]}_proj."),
    (r"\.attention\.output\.dense\.", ".self_attn.out_proj."),
    (r"\.attention\.output\.LayerNorm\.", ".self_attn_layer_norm."),
    (r"\.intermediate\.dense\.", ".fc1."),
    (r"\.output\.dense\.", ".fc2."),
    (r"\.output\.LayerNorm\.", ".final_layer_norm."),
    (r"^embeddings\.LayerNorm\.", "layernorm_embedding."),
]


@dataclass(frozen=True)
class BertOptions:
    """Options of `gtransformer convert bert`."""

    bert: str = option(MISSING, "Folder or Hub name of a BertModel checkpoint with its tokenizer.", argument=True)
    output: Path = option(MISSING, "New folder for model and processor.", argument=True)
    src_lang: str = option("[en]", "Language code to add for the source.")
    tgt_lang: str = option("[de]", "Language code to add for the target.")
    decoder_layers: int = option(6, "Number of decoder layers.", 1)
    seed: int = option(42, "Seed of the random weights.")


def convert_bert(options: BertOptions) -> None:
    """
    Writes model and processor, and prints their size.

    Raises:
        ValueError: the checkpoint is no BERT, or a language code consists of letters, as it would match inside words.
    """
    refuse_bare_codes([options.src_lang, options.tgt_lang])
    with atomic_folder(options.output) as folder:
        config = AutoConfig.from_pretrained(options.bert)
        if not isinstance(config, BertConfig):  # RoBERTa has BERT's names, but other positions
            raise ValueError(f"{options.bert} has the type {config.model_type!r}, not 'bert'.")
        set_seed(options.seed)
        tokenizer = AutoTokenizer.from_pretrained(options.bert, bos_token="[CLS]", eos_token="[SEP]")
        tokenizer.add_special_tokens({"extra_special_tokens": [options.src_lang, options.tgt_lang]})
        processor = GTransformerProcessor(tokenizer, options.src_lang, options.tgt_lang, normalization=None)
        bert = BertModel.from_pretrained(options.bert, add_pooling_layer=False, dtype=torch.float32)
        model = gtransformer_from_bert(bert, processor, options.decoder_layers)
        model.save_pretrained(folder)
        processor.save_pretrained(folder)
        keep_origin(folder, options.bert)
        parameters = f"{model.num_parameters():,} parameters, {bert.num_parameters():,} of them from BERT"
        print(f"{parameters}, in {options.output}")


def gtransformer_from_bert(
    bert: BertModel, processor: GTransformerProcessor, decoder_layers: int = 6
) -> GTransformerForConditionalGeneration:
    """
    Builds a G-Transformer with the encoder and the word embeddings of `bert`.

    The encoder states of a one-sentence document equal BERT's, except for the epsilon of the layer norms (1e-12 in
    BERT, 1e-5 in G-Transformer). Raises `ValueError` if `bert` has other weights than a plain BERT.
    """
    model = GTransformerForConditionalGeneration(config_from_bert(bert.config, processor, decoder_layers))
    missing, unexpected = model.model.encoder.load_state_dict(encoder_state_from_bert(bert.state_dict()), strict=False)
    missing = [name for name in missing if not re.search("_global|_gate|^embed_tokens", name)]
    if missing or unexpected:
        raise ValueError(f"Not a plain BERT: missing weights {missing}, unexpected weights {unexpected}.")
    languages = {processor.src_lang, processor.tgt_lang}
    known = [index for token, index in processor.tokenizer.get_vocab().items() if token not in languages]
    model.get_input_embeddings().weight.data[known] = bert.get_input_embeddings().weight.data[known]
    # Decoder positions have the meaning of encoder positions.
    model.model.decoder.embed_positions.weight.data.copy_(model.model.encoder.embed_positions.weight.data)
    processor.configure(model)
    return model


def config_from_bert(bert: BertConfig, processor: GTransformerProcessor, decoder_layers: int) -> GTransformerConfig:
    sizes: dict[str, Any] = {}
    for stack, layers in (("encoder", bert.num_hidden_layers), ("decoder", decoder_layers)):
        sizes |= {f"{stack}_layers": layers, f"{stack}_ffn_dim": bert.intermediate_size}
        sizes[f"{stack}_attention_heads"] = bert.num_attention_heads
    return GTransformerConfig(
        vocab_size=len(processor.tokenizer),
        d_model=bert.hidden_size,
        max_position_embeddings=bert.max_position_embeddings,
        activation_function=bert.hidden_act,
        dropout=bert.hidden_dropout_prob,
        attention_dropout=bert.attention_probs_dropout_prob,
        init_std=bert.initializer_range,
        normalize_before=False,
        scale_embedding=False,
        bos_token_id=processor.bos_token_id,
        eos_token_id=processor.eos_token_id,
        pad_token_id=processor.pad_token_id,
        **sizes,
    )


def encoder_state_from_bert(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Renames BERT's weights for the encoder, without the word embeddings."""
    state = {}
    for name, tensor in state_dict.items():
        for pattern, replacement in RENAMED:
            name = re.sub(pattern, replacement, name)
        state[name] = tensor
    # BERT adds the embedding of the first segment at every position.
    positions = state["embeddings.position_embeddings.weight"] + state["embeddings.token_type_embeddings.weight"][0]
    state["embed_positions.weight"] = nn.functional.pad(positions, (0, 0, POSITION_OFFSET, 0))
    return {name: tensor for name, tensor in state.items() if not name.startswith("embeddings.")}
