"""An invented language pair with pronouns that only an earlier sentence disambiguates.

Nouns of the target language have one of two genders; the source language has no gender. A document opens by
presenting its topic. Later sentences refer to it as `it`, which agrees with its gender in the target language:

    source   behold the NOUN            today it VERBs the ADJECTIVE NOUN
    target   ARTICLE NOUN appears       PRONOUN ARTICLE NOUN ADJECTIVE+ENDING VERBs today

A sentence determines its word order, articles and endings, but never its pronoun. So a sentence-level model gets half
of the pronouns right, however long it trains. With the antecedent "previous", a pronoun refers to the noun of the
previous sentence, so the order of the sentences matters, too.
"""

import itertools
import json
import random
from pathlib import Path
from typing import Literal


GENDERS = (0, 1)
WORDS = {"nouns": 48, "names": 16, "verbs": 24, "adjectives": 16, "adverbs": 8}
Antecedent = Literal["topic", "previous"]
# Source and target language.
LANGUAGES = ("[sou]", "[tar]")


class InventedLanguagePair:
    """Lexicon and grammar of a language pair.

    Args:
        seed: determines every word and the gender of every noun.
        antecedent: antecedent of pronouns, the "topic" of the document or the noun of the "previous" sentence.
    """

    def __init__(self, seed: int, antecedent: Antecedent = "topic"):
        self.antecedent = antecedent
        rng = random.Random(seed)
        source_words = _words(rng, "ptkmnsl", "aeiou")
        target_words = _words(rng, "bdgvrzf", "aiouy")

        def lexicon(size: int) -> list[tuple[str, str]]:
            return list(itertools.islice(zip(source_words, target_words, strict=True), size))

        self.nouns = [(*pair, rng.choice(GENDERS)) for pair in lexicon(WORDS["nouns"])]
        self.names, self.verbs = lexicon(WORDS["names"]), lexicon(WORDS["verbs"])
        self.adjectives, self.adverbs = lexicon(WORDS["adjectives"]), lexicon(WORDS["adverbs"])
        (self.behold, self.appears), (self.the, _), (self.it, _) = lexicon(3)
        self.articles = tuple(itertools.islice(target_words, 2))
        self.pronouns = tuple(itertools.islice(target_words, 2))
        self.endings = ("m", "x")

    def document(self, rng: random.Random, sentences: int | None = None) -> dict[str, list[str]]:
        """Draws an aligned document, by default of 4 to 8 sentences: `{"source": [...], "target": [...]}`."""
        *topic, gender = rng.choice(self.nouns)
        opening = ([self.behold, self.the, topic[0]], [self.articles[gender], topic[1], self.appears])
        pairs = [opening]
        for _ in range(rng.randint(3, 7) if sentences is None else sentences - 1):
            pair, noun_gender = self._sentence(rng, gender)
            pairs.append(pair)
            gender = noun_gender if self.antecedent == "previous" else gender
        source, target = zip(*pairs, strict=True)
        return {"source": [" ".join(words) for words in source], "target": [" ".join(words) for words in target]}

    def pronoun_accuracy(self, hypotheses: list[list[str]], references: list[list[str]]) -> float:
        """Computes the share of reference sentences with pronouns in which the hypothesis has exactly these pronouns.

        Documents are lists of aligned sentences. Missing, wrong and superfluous pronouns are errors.
        """
        pairs = [
            (self._pronouns_in(hypothesis), self._pronouns_in(reference))
            for documents in zip(hypotheses, references, strict=True)
            for hypothesis, reference in zip(*documents, strict=True)
        ]
        decided = [found == right for found, right in pairs if right]
        return sum(decided) / len(decided)

    def _pronouns_in(self, sentence: str) -> list[str]:
        return [word for word in sentence.split() if word in self.pronouns]

    def _sentence(self, rng: random.Random, gender: int) -> tuple[tuple[list[str], list[str]], int]:
        """Draws a sentence pair with a pronoun of this gender. Also returns the gender of its noun."""
        subject = (self.it, self.pronouns[gender]) if rng.random() < 0.7 else rng.choice(self.names)
        verb = rng.choice(self.verbs)
        source, target, noun_gender = self._noun_phrase(rng)
        adverb = rng.choice(self.adverbs)
        pair = [adverb[0], subject[0], verb[0], *source], [subject[1], *target, verb[1], adverb[1]]
        return pair, noun_gender

    def _noun_phrase(self, rng: random.Random) -> tuple[list[str], list[str], int]:
        source, target, gender = rng.choice(self.nouns)
        article = self.articles[gender]
        if rng.random() < 0.5:
            return [self.the, source], [article, target], gender
        adjective = rng.choice(self.adjectives)
        return [self.the, adjective[0], source], [article, target, adjective[1] + self.endings[gender]], gender


def _words(rng: random.Random, consonants: str, vowels: str):
    """Yields distinct words of two or three open syllables, indefinitely."""
    seen = set()
    while True:
        word = "".join(rng.choice(consonants) + rng.choice(vowels) for _ in range(rng.choice((2, 3))))
        if word not in seen:
            seen.add(word)
            yield word


def write_corpus(
    language_pair: InventedLanguagePair, folder: Path, sizes: dict[str, int], seed: int, sentences: int | None = None
) -> dict[str, str]:
    """Writes as many documents as JSON lines as each split has, drawn independently, and returns its file. Documents
    have the given number of sentences, by default a random one."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for part, size in sizes.items():
        rng = random.Random(f"{seed} {part}")
        files[part] = str(folder / f"{part}.jsonl")
        lines = [json.dumps(language_pair.document(rng, sentences)) + "\n" for _ in range(size)]
        Path(files[part]).write_text("".join(lines), encoding="utf-8")
    return files
