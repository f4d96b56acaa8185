"""Make a G-Transformer whose encoder starts from BERT, to be trained with `recipes/bert.yaml`.

    python train/start_from_bert.py google-bert/bert-base-multilingual-cased outputs/bert_start

BERT's layers become the encoder's group attention and feed-forward layers; its word embeddings serve encoder, decoder
and output layer, so choose a BERT that knows both languages. Decoder, global attention and gates start from random
weights. BERT's `[CLS]` opens a sentence and its `[SEP]` closes it. When BERT's tokenizer decodes, it does not restore
all spaces, so also score such models against references that it has encoded and decoded.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import AutoTokenizer, BertConfig, BertModel, set_seed

from modeling_gtransformer import GTransformerConfig, GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.atomic_file import atomic_folder
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.script_options import at_least
from modeling_gtransformer.layers_gtransformer import POSITION_OFFSET
from modeling_gtransformer.training.licenses import keep_origin


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


def main(argv: list[str]) -> None:
    args = parse_arguments(argv)
    with atomic_folder(Path(args.output)) as folder:
        print(start(args, folder))


def start(args: argparse.Namespace, folder: Path) -> str:
    """Writes model and processor, and prints how large they are."""
    set_seed(args.seed)
    tokenizer = AutoTokenizer.from_pretrained(args.bert, bos_token="[CLS]", eos_token="[SEP]")
    tokenizer.add_special_tokens({"extra_special_tokens": args.languages})
    source, target = args.languages
    processor = GTransformerProcessor(tokenizer, source, target, normalization=None)
    bert = BertModel.from_pretrained(args.bert, add_pooling_layer=False)
    model = gtransformer_from_bert(bert, processor, args.decoder_layers)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    keep_origin(folder, args.bert)
    return f"{model.num_parameters():,} parameters, {bert.num_parameters():,} of them from BERT, in {args.output}"


def gtransformer_from_bert(
    bert: BertModel, processor: GTransformerProcessor, decoder_layers: int = 6
) -> GTransformerForConditionalGeneration:
    """
    Builds a G-Transformer with the encoder and the word embeddings of `bert`.

    The encoder's states of a one-sentence document are BERT's, except for the epsilon of the layer norms (1e-12 in
    BERT, 1e-5 here).

    Args:
        processor: processor of BERT's tokenizer, to which language codes have been added.

    Raises:
        ValueError: `bert` lacks weights of a plain BERT, or has weights that a plain BERT does not have.
    """
    model = GTransformerForConditionalGeneration(config_from_bert(bert.config, processor, decoder_layers))
    missing, unexpected = model.model.encoder.load_state_dict(encoder_state_from_bert(bert.state_dict()), strict=False)
    missing = [name for name in missing if not re.search("_global|_gate|^embed_tokens", name)]
    if missing or unexpected:
        raise ValueError(f"No plain BERT: weights missing {missing}, without a place in a G-Transformer {unexpected}.")
    languages = {processor.src_lang, processor.tgt_lang}
    known = [index for token, index in processor.tokenizer.get_vocab().items() if token not in languages]
    model.get_input_embeddings().weight.data[known] = bert.get_input_embeddings().weight.data[known]
    # The decoder reads the same words, and its positions mean the same.
    model.model.decoder.embed_positions.weight.data.copy_(model.model.encoder.embed_positions.weight.data)
    processor.configure(model)
    return model


def config_from_bert(bert: BertConfig, processor: GTransformerProcessor, decoder_layers: int) -> GTransformerConfig:
    """Makes the configuration of BERT's layers and of a decoder of the same width."""
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
    """Renames BERT's weights to those of the encoder, without the word embeddings."""
    state = {}
    for name, tensor in state_dict.items():
        for pattern, replacement in RENAMED:
            name = re.sub(pattern, replacement, name)
        state[name] = tensor
    # BERT adds the embedding of the first segment at every position.
    positions = (
        state.pop("embeddings.position_embeddings.weight") + state.pop("embeddings.token_type_embeddings.weight")[0]
    )
    state["embed_positions.weight"] = positions.new_zeros(len(positions) + POSITION_OFFSET, positions.shape[1])
    state["embed_positions.weight"][POSITION_OFFSET:] = positions
    return {name: tensor for name, tensor in state.items() if not name.startswith("embeddings.")}


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bert", help="Folder or Hub name of a BertModel checkpoint with its tokenizer.")
    parser.add_argument("output", help="Folder for model and processor.")
    parser.add_argument(
        "--languages", nargs=2, default=["[en]", "[de]"], help="Language codes to add for source and target."
    )
    parser.add_argument("--decoder_layers", type=at_least(1), default=6, help="Number of decoder layers.")
    parser.add_argument("--seed", type=int, default=42, help="Seed of the random weights.")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run("start_from_bert.py", lambda: main(sys.argv[1:])))
