"""Write a corpus in an invented language pair, whose pronouns depend on an earlier sentence, and a tokenizer for it.

python train/invented_language.py outputs/corpus --train 500 --valid 25 --test 25 --sentences 80
"""

import argparse
import json
import sys
from pathlib import Path

from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.script_options import at_least
from modeling_gtransformer.training.invented_language import ANTECEDENTS, LANGUAGES, InventedLanguagePair, write_corpus
from modeling_gtransformer.training.tokenizer import train_tokenizer


def main(argv: list[str]) -> None:
    args = parse_arguments(argv)
    language_pair = InventedLanguagePair(args.seed, antecedent=args.antecedent)
    sizes = {"train": args.train, "valid": args.valid, "test": args.test}
    files = write_corpus(language_pair, args.output, sizes, args.seed, args.sentences)
    with open(files["train"], encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    sentences = (sentence for document in documents for side in document.values() for sentence in side)
    tokenizer = train_tokenizer(sentences, LANGUAGES)
    tokenizer.save_pretrained(args.output / "tokenizer")
    print(f"{sum(sizes.values())} documents and a tokenizer of {len(tokenizer)} tokens in {args.output}")


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="Folder for train.jsonl, valid.jsonl, test.jsonl and tokenizer/.")
    for part in ("train", "valid", "test"):
        parser.add_argument(f"--{part}", type=int, default=100, help="Number of documents in this split.")
    parser.add_argument("--sentences", type=at_least(1), help="Number of sentences in a document; default: 4 to 8.")
    parser.add_argument(
        "--antecedent",
        choices=ANTECEDENTS,
        default="topic",
        help="What a pronoun refers to: the topic of the document, or the noun of the previous sentence.",
    )
    parser.add_argument("--seed", type=int, default=1, help="Seed of the language pair and the documents.")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run("invented_language.py", lambda: main(sys.argv[1:])))
