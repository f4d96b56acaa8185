"""Numbers and codes that translations lack, with and without the check."""

import json

from json_lines import write_json_lines

from train.studies import kept_numbers
from train.studies.kept_numbers import NumberOptions


def test_counts_with_and_without_the_check(monkeypatch, tmp_path):
    """Documents without numbers do not count; the check repairs one of two losses, and names the other."""

    def translate(documents, keep_placeholders):
        assert documents == [["Ring 98765432.", "Flight LH441, 1,250 euros.", "Bye."]]
        numbers = ["98765432", "LH441 zu 125"] if keep_placeholders else ["9876432", "LH441 zu 125"]
        pairs = zip(documents[0], [*numbers, "Tschüss."], strict=True)
        sentences = [{"source_text": source, "translation_text": text} for source, text in pairs]
        return [{"sentences": sentences, "warnings": ["its translation lacks 1,250."] if keep_placeholders else []}]

    monkeypatch.setattr(kept_numbers, "Translator", lambda *args, **options: translate)
    records = [{"source": ["Ring 98765432.", "Flight LH441, 1,250 euros.", "Bye."]}, {"source": ["Hi."]}]
    corpus, report = write_json_lines(tmp_path / "test.jsonl", records), tmp_path / "report.json"
    found = kept_numbers.count_kept_numbers(NumberOptions("model", [corpus], json=report))
    assert found == {
        "documents": 1,
        "numbers": 3,
        "unchecked": {"lost": 2, "warnings": 0},
        "checked": {"lost": 1, "warnings": 1},
    }
    assert json.loads(report.read_text())["results"] == found
