"""Sentences in their document against the sentences alone."""

import json

from json_lines import write_json_lines

from train.studies import context_examples
from train.studies.context_examples import ExampleOptions


SOURCES = [["A dog.", "It runs."], ["A cat.", "It runs."]]
REFERENCES = [["Ein Hund.", "Er läuft."], ["Eine Katze.", "Sie läuft."]]


def test_counts_and_examples(monkeypatch, tmp_path):
    """A model that uses its context too often: it takes every document for one about a dog."""
    words = {"A dog.": "Ein Hund.", "A cat.": "Eine Katze.", "It runs.": "Sie läuft."}

    def translate(documents):
        outputs = [[words[sentence] for sentence in document] for document in documents]
        outputs = [
            ["Er läuft." if n and text == "Sie läuft." else text for n, text in enumerate(each)] for each in outputs
        ]
        return [{"sentences": [{"translation_text": text} for text in each]} for each in outputs]

    monkeypatch.setattr(context_examples, "Translator", lambda *args, **options: translate)
    records = [{"source": source, "target": target} for source, target in zip(SOURCES, REFERENCES, strict=True)]
    corpus, report = write_json_lines(tmp_path / "test.jsonl", records), tmp_path / "report.json"
    found = context_examples.context_examples(ExampleOptions("model", [corpus], json=report))
    assert found["results"] == {
        "sentences": 4,
        "same": 2,
        "better": 1,
        "worse": 1,
        "equal_in_document": 3,
        "equal_alone": 3,
        "only_in_document": 1,
        "only_alone": 1,
    }
    assert found["examples"]["only_in_document"] == [
        {
            "document": 1,
            "sentence": 2,
            "source": "It runs.",
            "reference": "Er läuft.",
            "previous": "A dog.",
            "in_document": "Er läuft.",
            "alone": "Sie läuft.",
        }
    ]
    assert found["examples"]["only_alone"][0]["previous"] == "A cat."
    assert json.loads(report.read_text())["examples"] == found["examples"]
