"""Formality: the forms of address of a sentence, whether documents keep to one, and the command."""

import json

import pytest
from json_lines import write_json_lines

from modeling_gtransformer.evaluation.formality import (
    FormalityOptions,
    compare_formality,
    evaluate_formality,
    formality_of,
    formality_scores,
)


@pytest.mark.parametrize(
    ("sentence", "forms"),
    [
        ("Können Sie mir Ihren Namen sagen?", {"formal"}),
        ("Kannst du mir deinen Namen sagen?", {"informal"}),
        ("Du hast Ihnen geschrieben, und Sie?", {"formal", "informal"}),
        ("Gut, Sie bekommen es.", {"formal"}),
        # At its beginning a sentence has a capital letter for "they" and "her" as well.
        ("Sie sind da. Ihr Haus steht dort.", set()),
        ("Ich gebe sie ihnen und ihr ihre Bücher.", set()),
        ("Das Duell, euphorisch und indirekt.", set()),
    ],
)
def test_forms_of_a_sentence(sentence, forms):
    assert formality_of(sentence) == forms


def test_documents_that_mix_forms():
    references = [["Was wollen Sie?", "Ja.", "Wo sind Sie?"], ["Bist du da?", "Wo bist du?"], ["Ich höre dich."]]
    kept = formality_scores(references, references)
    assert (kept["formal"], kept["informal"]) == (2, 3)
    # The third document addresses somebody only once, and cannot mix.
    assert kept["mixed"] == {"share": 0, "of": 2, "interval": [0, 0]}
    assert kept["as_reference"] == {"share": 1, "of": 5, "interval": [1, 1]}

    mixing = formality_scores([["Was willst du?", "Ja.", "Wo sind Sie?"], *references[1:]], references)
    assert (mixing["mixed"]["share"], mixing["mixed"]["of"]) == (0.5, 2)
    assert (mixing["as_reference"]["share"], mixing["as_reference"]["of"]) == (0.8, 5)
    low, high = mixing["as_reference"]["interval"]
    assert low < 0.8 < high


def test_two_systems_are_compared_document_by_document():
    references = [["Was wollen Sie?", "Wo sind Sie?"]] * 30
    mixing = [["Was willst du?", "Wo sind Sie?"]] * 30
    half = [*references[:15], *mixing[15:]]
    differences = compare_formality([references, half], [mixing, half], references)
    # The documents of both seeds: 15 of 60 mix the forms, against 45.
    assert differences["mixed"]["difference"] == -0.5 and differences["mixed"]["p_value"] < 0.01
    assert differences["as_reference"]["difference"] == pytest.approx(0.25)
    same = compare_formality([half], [half], references)["mixed"]
    assert (same["difference"], same["interval"], same["p_value"]) == (0, [0, 0], 1)
    with pytest.raises(ValueError, match="has no form of address"):
        compare_formality([references], [[["Ja.", "Nein."]] * 30], references)


def test_documents_that_address_nobody():
    counts = formality_scores([["Ja."]], [["Nein."]])
    assert counts["mixed"] == counts["as_reference"] == {"share": None, "of": 0, "interval": None}


REFERENCES = [["Was wollen Sie?", "Wo sind Sie?"], ["Bist du da?"]]
MIXING = [["Was willst du?", "Wo sind Sie?"], ["Bist du da?"]]


@pytest.fixture
def files(tmp_path):
    """Paths of the references, of translations that keep the forms, and twice of some that mix them."""
    write_json_lines(tmp_path / "test.jsonl", [{"target": document} for document in REFERENCES])
    for name, documents in {"good": REFERENCES, "mixing": MIXING, "again": MIXING}.items():
        write_json_lines(tmp_path / f"{name}.jsonl", [{"translation": document} for document in documents])
    return [str(tmp_path / f"{name}.jsonl") for name in ("test", "good", "mixing", "again")]


def test_a_row_per_system(files, tmp_path, capsys):
    reference, _, mixing, _ = files
    report = tmp_path / "formality.json"
    scores = evaluate_formality(FormalityOptions([mixing], reference, json=report))["scores"]
    assert scores["reference"]["mixed"]["share"] == 0 and scores[mixing]["mixed"]["share"] == 1
    assert json.loads(report.read_text())["scores"] == scores
    head, people, ours = capsys.readouterr().out.splitlines()
    assert "documents that mix them" in head and people.endswith("reference")
    assert "100.0% [100.0%, 100.0%] of 1" in ours and "66.7% [50.0%, 100.0%] of 3" in ours


def test_against_a_baseline_of_several_seeds(files, capsys):
    reference, good, mixing, again = files
    results = evaluate_formality(FormalityOptions([good], reference, [mixing, again]))
    assert set(results["scores"]) == {"reference", good, mixing, again}
    assert results["differences"]["mixed"]["difference"] == -1
    assert results["differences"]["as_reference"]["difference"] == pytest.approx(1 / 3)
    assert "documents that mix them, against the baseline: -100.0%" in capsys.readouterr().out


def test_systems_of_unequal_numbers_of_seeds_have_equal_weights():
    """A copy of a system's translations is no further evidence, nor less."""
    references = [["Was wollen Sie?", "Wo sind Sie?"]] * 40
    ours, theirs = ([MIXING[0]] * mixed + references[mixed:] for mixed in (10, 4))
    single, copies = (compare_formality([ours] * number, [theirs], references) for number in (1, 5))
    assert single == copies


def test_other_sentences_than_those_of_the_references(files, tmp_path):
    short = write_json_lines(tmp_path / "short.jsonl", [{"translation": ["Wo?"]}, {"translation": ["Wann?"]}])
    with pytest.raises(ValueError, match=r"short.jsonl does not have one sentence for every sentence"):
        evaluate_formality(FormalityOptions([short], files[0]))
