"""Writes a corpus in an invented language pair with context-dependent pronouns, and a tokenizer for it.

python train/studies/invented_language.py outputs/corpus --train 500 --valid 25 --test 25 --sentences 80
"""

import json
import sys
from dataclasses import MISSING, dataclass
from pathlib import Path

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.training.invented_language import LANGUAGES, Antecedent, InventedLanguagePair, write_corpus
from modeling_gtransformer.training.tokenizer import train_tokenizer
from modeling_gtransformer.translation_options import option


@dataclass(frozen=True)
class LanguageOptions:
    output: Path = option(MISSING, "Folder for train.jsonl, valid.jsonl, test.jsonl and tokenizer/.", argument=True)
    train: int = option(100, "Number of documents to train on.", 0)
    valid: int = option(100, "Number of documents to validate on.", 0)
    test: int = option(100, "Number of documents to test on.", 0)
    sentences: int | None = option(None, "Number of sentences in a document; default: 4 to 8.", 1)
    antecedent: Antecedent = option("topic", "Pronouns refer to the topic, or to the noun of the previous sentence.")
    seed: int = option(1, "Seed of the language pair and the documents.")


def invent_language(options: LanguageOptions) -> None:
    language_pair = InventedLanguagePair(options.seed, antecedent=options.antecedent)
    sizes = {"train": options.train, "valid": options.valid, "test": options.test}
    files = write_corpus(language_pair, options.output, sizes, options.seed, options.sentences)
    with open(files["train"], encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    sentences = (sentence for document in documents for side in document.values() for sentence in side)
    tokenizer = train_tokenizer(sentences, LANGUAGES)
    tokenizer.save_pretrained(options.output / "tokenizer")
    print(f"{sum(sizes.values())} documents and a tokenizer of {len(tokenizer)} tokens in {options.output}")


if __name__ == "__main__":
    sys.exit(run_script((LanguageOptions, invent_language)))
