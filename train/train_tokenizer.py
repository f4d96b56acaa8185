"""Train a tokenizer on your own documents, for a model that starts from random weights.

    python train/train_tokenizer.py outputs/tokenizer --files train.jsonl --columns en de --languages "[en]" "[de]"

Both languages share one vocabulary: `<s> <pad> </s> <unk>`, pieces, language codes, `<mask>`. Texts are normalized to
NFKC, and spaces are part of the pieces, so decoding restores the text.
"""

import argparse
import sys
from pathlib import Path

from modeling_gtransformer.atomic_file import check_outputs
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.script_options import at_least
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.training.tokenizer import train_tokenizer


def main(argv: list[str]) -> None:
    args = parse_arguments(argv)
    check_outputs([Path(args.output) / "tokenizer.json"], args.files)
    documents = read_documents(args.files, args.columns)
    sentences = (sentence for document in documents for column in args.columns for sentence in document[column])
    try:
        tokenizer = train_tokenizer(sentences, args.languages, args.vocab_size, args.model, args.merges)
    except Exception as error:  # the library has no exception class of its own
        raise ValueError(f"No tokenizer can be trained: {error}") from error
    tokenizer.save_pretrained(args.output)
    print(f"{len(tokenizer)} tokens in {args.output}")


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", help="Folder for the tokenizer.")
    parser.add_argument("--files", nargs="+", required=True, help="Documents in a format that train.py reads.")
    parser.add_argument("--columns", nargs="+", required=True, help="Columns that hold lists of sentences.")
    parser.add_argument("--languages", nargs="+", required=True, help='Language codes, e.g. "[en]" "[de]".')
    parser.add_argument("--vocab_size", type=at_least(1), default=30000, help="Number of tokens in the vocabulary.")
    parser.add_argument(
        "--merges",
        type=at_least(0),
        help="Number of BPE merges (paper: 30000), instead of the size of the vocabulary.",
    )
    parser.add_argument(
        "--model", choices=("bpe", "unigram"), default="bpe", help="Type of the tokenizer; the paper uses BPE."
    )
    args = parser.parse_args(argv)
    if args.merges is not None and args.model != "bpe":
        parser.error("--merges: only BPE has merges, give --vocab_size instead")
    return args


if __name__ == "__main__":
    sys.exit(run("train_tokenizer.py", lambda: main(sys.argv[1:])))
