"""Writes English-German documents about everyday things, in which the gender of "it" depends on an earlier sentence.

    python train/studies/everyday_documents.py outputs/everyday

`shared/everyday.yaml` has the words and the patterns. `train.jsonl` and `dev.jsonl` are for training. They contain no
two consecutive sentences of `test.jsonl`, and no noun of `new_nouns.jsonl`.
"""

import itertools
import json
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

import yaml

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.translation_options import option


FORMS = {
    "m": "der den ein einen mein meinen dieser diesen er ihn",
    "f": "die die eine eine meine meine diese diese sie sie",
    "n": "das das ein ein mein mein dieses dieses es es",
}
CONTRACTIONS = {"It is": "It's", "I am": "I'm", "do not": "don't", "does not": "doesn't", "cannot": "can't"}
# The example of README stays out of the training.
EXAMPLE = ("The cat sleeps.", "It is old.")

Pair = tuple[str, str]


@dataclass(frozen=True)
class EverydayOptions:
    output: Path = option(MISSING, "Folder for train.jsonl, dev.jsonl, test.jsonl and new_nouns.jsonl.", argument=True)
    train: int = option(8000, "Number of documents to train on.", 1)
    test: int = option(300, "Number of documents in each of the other files.", 1)
    seed: int = option(1, "Seed of the documents.")


@dataclass(frozen=True)
class Noun:
    source: str
    target: str
    gender: str
    kind: str


class Everyday:
    """Words and patterns, and documents made of them."""

    def __init__(self, path: Path, seed: int) -> None:
        self.patterns: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        self.random = random.Random(seed)
        nouns = [
            Noun(source, target, gender, kind)
            for kind, words in self.patterns["kinds"].items()
            for source, target, gender in re.findall(r"([^,]+) (\S+) ([mfn])(?:, |$)", words["nouns"])
        ]
        # The cat of the example is among the known nouns.
        self.random.shuffle(nouns)
        self.new_nouns = [noun for noun in nouns[: len(nouns) // 10] if noun.source != "cat"]
        self.known_nouns = [noun for noun in nouns if noun not in self.new_nouns]

    def document(self, nouns: list[Noun]) -> list[Pair]:
        """Returns a document of one to three topics or, once in twelve times, of one sentence without its noun."""
        if self.random.random() < 1 / 12:
            noun = self.random.choice(nouns)
            english, german = self.forms(noun)
            pattern = self.random.choice(self.following(noun.kind, with_person=False))
            return [self.fill(pattern, noun.kind, (english, german | {"er": "es", "ihn": "es"}))]
        topics = self.random.choice((1, 1, 2, 3))
        pairs = [pair for _ in range(topics) for pair in self.topic(self.random.choice(nouns))]
        if self.random.random() < 0.3:
            pairs = [(contract(source), target) for source, target in pairs]
        return pairs

    def topic(self, noun: Noun) -> Iterator[Pair]:
        forms = self.forms(noun)
        first = self.random.choice(self.patterns["first"] + 2 * self.patterns["kinds"][noun.kind]["first"])
        if self.random.random() < 0.2:
            yield self.between()
        yield self.fill(first, noun.kind, forms)
        following = self.following(noun.kind, with_person="{who}" in first[0])
        for pattern in self.random.sample(following, self.random.choice((1, 1, 2, 3))):
            if self.random.random() < 0.2:
                yield self.between()
            yield self.fill(pattern, noun.kind, forms)

    def following(self, kind: str, with_person: bool) -> list[list[str]]:
        patterns = self.patterns["next"] + 2 * self.patterns["kinds"][kind]["next"]
        return [pattern for pattern in patterns if with_person or "{she}" not in pattern[0]]

    def between(self) -> Pair:
        source, target = self.random.choice(self.patterns["between"])
        return source, target

    def forms(self, noun: Noun) -> tuple[dict[str, str], dict[str, str]]:
        """Returns the English and the German text for the names in braces, with a random person."""
        who, wer, she, sie = self.random.choice(self.patterns["people"])
        article = "an" if noun.source[0] in "aeiou" else "a"
        english = {"a": f"{article} {noun.source}"} | {name: f"{name} {noun.source}" for name in ("the", "my", "this")}
        forms = zip(FORMS["m"].split(), FORMS[noun.gender].split(), strict=True)
        german = {name: form if name in ("er", "ihn") else f"{form} {noun.target}" for name, form in forms}
        return english | {"who": who, "she": she}, german | {"who": wer, "she": sie}

    def fill(self, pattern: list[str], kind: str, forms: tuple[dict[str, str], dict[str, str]]) -> Pair:
        adjectives = self.patterns["kinds"][kind]["adjectives"].split(", ")
        pairs = (adjective.rsplit(" ", 1) for adjective in self.random.sample(adjectives, 2))
        source, target = (
            text.format(**words, adjective=one, adjective2=two)
            for text, words, one, two in zip(pattern, forms, *pairs, strict=True)
        )
        return source[0].upper() + source[1:], target[0].upper() + target[1:]


def contract(sentence: str) -> str:
    for long, short in CONTRACTIONS.items():
        sentence = sentence.replace(long, short)
    return sentence


def write_everyday(options: EverydayOptions) -> None:
    """Writes the files."""
    everyday = Everyday(Path(__file__).parent / "shared" / "everyday.yaml", options.seed)
    known, new = everyday.known_nouns, everyday.new_nouns
    used: set[tuple[str, ...]] = set()
    options.output.mkdir(parents=True, exist_ok=True)
    for name, nouns in (("train", known), ("dev", known), ("test", known), ("new_nouns", new)):
        size = options.train if name == "train" else options.test
        excluded = {tuple(map(contract, EXAMPLE))} if name in ("train", "dev") else used
        candidates = (everyday.document(nouns) for _ in itertools.count())
        documents = list(itertools.islice((pairs for pairs in candidates if not excluded & consecutive(pairs)), size))
        used |= {pair for pairs in documents for pair in consecutive(pairs)}
        with open(options.output / f"{name}.jsonl", "w", encoding="utf-8") as file:
            for pairs in documents:
                source, target = zip(*pairs, strict=True)
                file.write(json.dumps({"en": source, "de": target}, ensure_ascii=False) + "\n")
        print(f"{name}: {size} documents, {sum(map(len, documents))} sentences")


def consecutive(pairs: list[Pair]) -> set[tuple[str, ...]]:
    """Returns every two consecutive source sentences or, for a document of one sentence, that sentence, contracted."""
    sources = [contract(source) for source, _ in pairs]
    return set(itertools.pairwise(sources)) or {tuple(sources)}


if __name__ == "__main__":
    sys.exit(run_script((EverydayOptions, write_everyday)))
