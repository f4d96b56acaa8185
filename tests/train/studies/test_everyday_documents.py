"""Documents about everyday things."""

import itertools
import json
import re
from pathlib import Path

import pytest
import yaml

from train.studies import everyday_documents
from train.studies.everyday_documents import EXAMPLE, EverydayOptions, contract, write_everyday


NAMES = ("train", "dev", "test", "new_nouns")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("everyday")
    write_everyday(EverydayOptions(folder, train=2000, test=100))
    return {name: list(map(json.loads, (folder / f"{name}.jsonl").read_text("utf-8").splitlines())) for name in NAMES}


@pytest.fixture(scope="module")
def asides():
    """The German sentences that do not belong to a noun."""
    patterns = Path(everyday_documents.__file__).parent.joinpath("shared", "everyday.yaml").read_text("utf-8")
    return {german for _, german in yaml.safe_load(patterns)["between"]}


def test_test_sets_are_held_out(files, asides):
    def consecutive(name):
        return {pair for document in files[name] for pair in itertools.pairwise(map(contract, document["en"]))}

    def nouns(name):
        sentences = [sentence for document in files[name] for sentence in document["de"] if sentence not in asides]
        return set(re.findall(r"\b(?:Der|Die|Das|Dieser|Diese|Dieses) (\w+) ist ", " ".join(sentences)))

    assert {name: len(documents) for name, documents in files.items()} == {"train": 2000} | dict.fromkeys(
        NAMES[1:], 100
    )
    training = consecutive("train") | consecutive("dev")
    assert tuple(map(contract, EXAMPLE)) not in training
    assert not training & (consecutive("test") | consecutive("new_nouns"))
    assert nouns("new_nouns") and not nouns("new_nouns") & nouns("train")


def test_pronouns_have_the_gender_of_the_noun_before(files, asides):
    found = set()
    for document in files["train"]:
        pairs = itertools.pairwise(zip(document["en"], document["de"], strict=True))
        for (_, before), (source, following) in pairs:
            noun = re.match(r"(Der|Die|Das|Dieser|Diese|Dieses) \w+ ist ", before)
            if noun and re.match(r"It (is|was) (very )?\w+\.", source) and not {before, following} & asides:
                pronoun = {"r": "Er", "e": "Sie", "s": "Es"}[noun[1][-1]]
                assert following.startswith(f"{pronoun} "), (before, following)
                found.add(pronoun)
    assert found == {"Er", "Sie", "Es"}
