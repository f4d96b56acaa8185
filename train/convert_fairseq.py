"""Convert a checkpoint that was trained with the authors' fairseq code (github.com/baoguangsheng/g-transformer).

    python train/convert_fairseq.py checkpoint_best.pt outputs/authors --dict dict.en.txt --bpe_codes code
    python train/convert_fairseq.py model.pt outputs/authors_mbart --dict dict.txt --sentencepiece sentence.bpe.model

The checkpoint is loaded without running any code in it. The checkpoint becomes a model, and dictionary and codes
become a processor, so the result translates. A model with BPE reads and writes the kind of text that it was trained
on, tokenized and truecased by Moses; `train/moses.py` converts text in both directions.

Two different dictionaries become two processors. The pipeline cannot use them, because it has only one:

    source = GTransformerProcessor.from_pretrained("outputs/authors/source")
    target = GTransformerProcessor.from_pretrained("outputs/authors/target")
    target.batch_decode_sentences(model.generate(**source(document, return_tensors="pt")))
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from modeling_gtransformer import GTransformerProcessor
from modeling_gtransformer.atomic_file import atomic_folder
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.training.fairseq import model_from_fairseq, read_checkpoint
from modeling_gtransformer.training.fairseq_tokenizer import (
    Dictionary,
    bpe_tokenizer,
    read_dictionary,
    sentencepiece_tokenizer,
)


def main(argv: list[str]) -> None:
    args = parse_arguments(argv)
    with atomic_folder(Path(args.output)) as folder:
        print(convert(args, folder))


def convert(args: argparse.Namespace, folder: Path) -> str:
    """Writes the model and its processor or processors, and returns a summary."""
    arguments, weights = read_checkpoint(args.checkpoint)
    model = model_from_fairseq(arguments, weights)
    languages = arguments["langs"].split(",")
    source = read_dictionary(args.dict, languages)
    target = read_dictionary(args.target_dict or args.dict, languages)
    check_sizes(weights, source, target)
    if model.config.tie_word_embeddings and source != target:
        raise ValueError("The checkpoint shares its embeddings, so it has one dictionary: leave out --target_dict.")
    sides = {"": source} if source == target else {"source": source, "target": target}
    for side, dictionary in sides.items():
        processor = make_processor(dictionary, arguments, args, folder / side)
        processor.save_pretrained(folder / side)
    # The last one belongs to the target, whose dictionary has the generated tokens.
    processor.configure(model)
    model.save_pretrained(folder)
    tokens = f"{len(source):,} source and {len(target):,} target tokens"
    made = f"{model.num_parameters():,} parameters, {tokens}, in {args.output}"
    if len(sides) > 1:
        read = f"{args.output}/source reads documents, {args.output}/target writes them"
        made += f"\nNo pipeline: the dictionaries differ; {read}."
    return made


def check_sizes(weights: dict[str, Any], source: Dictionary, target: Dictionary) -> None:
    """Raises a `ValueError` if a dictionary has another number of tokens than the checkpoint has embeddings."""
    for side, dictionary, option in (("encoder", source, "--dict"), ("decoder", target, "--target_dict")):
        rows = len(weights[f"{side}.embed_tokens.weight"])
        if rows != len(dictionary):
            raise ValueError(
                f"With the special tokens and language codes the dictionary has {len(dictionary)} tokens, the "
                f"checkpoint's {side} {rows}: give its own by {option}."
            )


def make_processor(
    dictionary: Dictionary, arguments: dict[str, Any], args: argparse.Namespace, folder: Path
) -> GTransformerProcessor:
    """The processor of a dictionary, between the run's languages; some tokenizers keep their files in the folder."""
    folder.mkdir(parents=True)
    if args.bpe_codes:
        tokenizer = bpe_tokenizer(dictionary, args.bpe_codes, folder)
    else:
        tokenizer = sentencepiece_tokenizer(dictionary, args.sentencepiece)
    source, target = (f"[{arguments[name]}]" for name in ("source_lang", "target_lang"))
    return GTransformerProcessor(tokenizer, source, target, normalization=None)


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="Checkpoint that the authors' code saved, such as checkpoint_best.pt.")
    parser.add_argument("output", help="New folder for model and processor.")
    parser.add_argument("--dict", required=True, help="File dict.txt of the source, or of both sides.")
    parser.add_argument("--target_dict", help="File dict.txt of the target, if it differs from that of the source.")
    pieces = parser.add_mutually_exclusive_group(required=True)
    pieces.add_argument("--bpe_codes", help="Codes that subword-nmt learned from both languages.")
    pieces.add_argument("--sentencepiece", help="SentencePiece model, such as mBART's sentence.bpe.model.")
    args = parser.parse_args(argv)
    files = [args.checkpoint, args.dict, args.target_dict, args.bpe_codes, args.sentencepiece]
    if missing := [file for file in files if file and not Path(file).is_file()]:
        parser.error(f"no such file: {', '.join(missing)}")
    return args


if __name__ == "__main__":
    sys.exit(run("convert_fairseq.py", lambda: main(sys.argv[1:])))
