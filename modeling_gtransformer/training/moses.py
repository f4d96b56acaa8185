"""The paper's preprocessing for models from random weights: Moses tokenization and truecasing, and its inverse."""

from collections.abc import Callable, Sequence
from pathlib import Path

from sacremoses import MosesDetokenizer, MosesTokenizer, MosesTruecaser


def learn_truecasing(sentences: Sequence[str], language: str, file: Path) -> Callable[[str], str]:
    """Learns truecasing, saves it in `file`, and returns a function that tokenizes and truecases a sentence."""
    tokenizer, truecaser = MosesTokenizer(language), MosesTruecaser()
    truecaser.train([tokenizer.tokenize(sentence) for sentence in sentences], save_to=str(file))

    def tokenized(sentence: str) -> str:
        return truecaser.truecase(tokenizer.tokenize(sentence, return_str=True), return_str=True)

    return tokenized


def detokenizer(language: str) -> Callable[[str], str]:
    """Returns a function that detokenizes a sentence."""
    moses = MosesDetokenizer(language)
    return lambda sentence: moses.detokenize(sentence.split())
