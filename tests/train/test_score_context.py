"""The command: gains of a trained model on a corpus, printed and written."""

import json

import pytest
from json_lines import write_json_lines

from train.score_context import main as score_context


RECORDS = [
    {"en": ["ba bu .", "ka ri .", "to ."], "de": ["da gu .", "zo .", "ba du ."]},
    {"en": ["re .", "la lo ."], "de": ["zo .", "vi ."]},
]


def test_gains_of_a_corpus(trained_model, tmp_path, capsys):
    corpus, scores = write_json_lines(tmp_path / "test.jsonl", RECORDS), tmp_path / "scores" / "context.json"
    columns = ["--source_column", "en", "--target_column", "de"]
    options = [*columns, "--words", "it=zo,vi", "--contexts", "other", "none", "--json", str(scores)]
    results = score_context([str(trained_model), corpus, *options])
    assert list(results["gains"]) == ["other", "none"]
    assert results["sentences"] == {"document": 2.5, "other": 5 / 3, "none": 1.0}
    assert set(results["gains"]["none"]) == {"all", "it"}
    written = json.loads(scores.read_text())
    assert written["gains"] == results["gains"] and written["corpus"] == ["test.jsonl"]
    printed = capsys.readouterr().out
    gain = results["gains"]["none"]["it"]
    assert f"than none      it           {gain['gain']:+8.4f}" in printed and "of 2 documents" in printed
    one_by_one = score_context([str(trained_model), corpus, *options, "--max_tokens", "1"])
    for context, classes in results["gains"].items():
        assert one_by_one["gains"][context]["it"]["gain"] == pytest.approx(classes["it"]["gain"], abs=1e-4)


def test_the_seed_draws_the_contexts(trained_model, tmp_path):
    corpus = write_json_lines(tmp_path / "test.jsonl", [{"en": ["ba bu .", "ka ri .", "to .", "re .", "la lo ."]}])
    options = ["--source_column", "en", "--target_column", "en", "--contexts", "shuffled", "--seed"]
    first, again, second = (score_context([str(trained_model), corpus, *options, seed])["gains"] for seed in "112")
    assert first == again and first["shuffled"]["all"]["gain"] != second["shuffled"]["all"]["gain"]


def test_a_plain_translator_gains_nothing(sentence_level_checkpoint, tmp_path):
    """It is scored as it translates, every sentence alone, and not with global attention that nobody has trained."""
    corpus = write_json_lines(tmp_path / "test.jsonl", RECORDS)
    columns = ["--source_column", "en", "--target_column", "de"]
    gains = score_context([str(sentence_level_checkpoint("marian")), corpus, *columns, "--contexts", "none"])["gains"]
    assert gains["none"]["all"]["gain"] == pytest.approx(0, abs=1e-5)


def test_a_class_without_words_is_refused(trained_model, capsys):
    with pytest.raises(SystemExit):
        score_context([str(trained_model), "test.jsonl", "--words", "address", "verbs"])
    assert "neither one of address, pronouns nor a name with words" in capsys.readouterr().err
    for words in (["all=er"], ["it=er", "it=sie"]):
        with pytest.raises(SystemExit):
            score_context([str(trained_model), "test.jsonl", "--words", *words])
        assert "is the name of several classes of words" in capsys.readouterr().err
