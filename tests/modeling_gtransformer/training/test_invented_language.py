import random
from collections import defaultdict
from itertools import pairwise

import pytest

from modeling_gtransformer.training import invented_language
from modeling_gtransformer.training.invented_language import InventedLanguagePair


@pytest.fixture
def tiny(monkeypatch):
    """So few words that every sentence with a pronoun comes up under topics of both genders."""
    monkeypatch.setattr(invented_language, "WORDS", {**dict.fromkeys(invented_language.WORDS, 1), "nouns": 4})
    return InventedLanguagePair(seed=3)


def documents(language_pair, number, seed=0):
    rng = random.Random(seed)
    return [language_pair.document(rng) for _ in range(number)]


def test_words_have_one_meaning():
    pair, same, other = (InventedLanguagePair(seed) for seed in (1, 1, 2))
    assert pair.nouns == same.nouns != other.nouns
    lexicon = [word[:2] for word in (*pair.nouns, *pair.names, *pair.verbs, *pair.adjectives, *pair.adverbs)]
    source, target = (list(words) for words in zip(*lexicon, strict=True))
    source += [pair.behold, pair.the, pair.it]
    target += [pair.appears, *pair.articles, *pair.pronouns]
    assert len(set(source)) == len(source)
    assert len(set(target)) == len(target)


def test_a_sentence_leaves_its_pronoun_open_and_the_first_sentence_decides_it(tiny):
    translations, pronouns_by_opening = defaultdict(set), defaultdict(set)
    for document in documents(tiny, 300):
        for source, target in zip(document["source"], document["target"], strict=True):
            translations[source].add(target)
            pronouns_by_opening[document["source"][0]] |= set(target.split()) & set(tiny.pronouns)

    with_pronoun = {source: found for source, found in translations.items() if tiny.it in source.split()}
    assert len(with_pronoun) > 1
    for found in with_pronoun.values():
        assert len(found) == 2, "one translation for each gender of the topic"
        assert len({" ".join(target.split()[1:]) for target in found}) == 1, "which differ in the pronoun only"
    assert all(len(found) == 1 for source, found in translations.items() if source not in with_pronoun)
    assert all(len(pronouns) == 1 for pronouns in pronouns_by_opening.values())


def test_a_pronoun_may_refer_to_the_noun_of_the_previous_sentence():
    pair = InventedLanguagePair(seed=1, antecedent="previous")
    genders = {target: gender for _, target, gender in pair.nouns}
    found = set()
    for document in documents(pair, 50):
        for previous, sentence in pairwise(target.split() for target in document["target"]):
            if sentence[0] in pair.pronouns:
                [gender] = [genders[word] for word in previous if word in genders]
                assert sentence[0] == pair.pronouns[gender]
                found.add((gender, sentence[0]))
    assert len(found) == 2


def test_guessing_gets_about_half_of_the_pronouns():
    pair = InventedLanguagePair(seed=1)
    references = [document["target"] for document in documents(pair, 300)]
    guesses = [
        [" ".join(pair.pronouns[0] if word in pair.pronouns else word for word in sentence.split()) for sentence in d]
        for d in references
    ]
    assert {len(document) for document in references} == {4, 5, 6, 7, 8}
    assert pair.pronoun_accuracy(references, references) == 1
    assert 0.35 < pair.pronoun_accuracy(guesses, references) < 0.65


@pytest.mark.parametrize("hypothesis", ["", "{other} word", "{right} {other} word", "{right} {right} word"])
def test_missing_wrong_and_superfluous_pronouns_are_errors(tiny, hypothesis):
    right, other = tiny.pronouns
    references = [["no pronoun", f"{right} word", f"{right} word"]]
    hypotheses = [["anything", f"{right} word", hypothesis.format(right=right, other=other)]]
    assert tiny.pronoun_accuracy(hypotheses, references) == 0.5
