"""Sentences and words that are translated in several ways, with their places."""

import sys

import pytest

from modeling_gtransformer.files.consistency import Consistency, WordForms


def pairs(*texts):
    return [dict(zip(("source_text", "translation_text"), each, strict=True)) for each in texts]


def test_sentences_translated_in_several_ways():
    consistency = Consistency()
    assert consistency.to_tsv() == "source_text\ttranslation_text\tkind\ttimes\tplaces\n"
    consistency.add("a", pairs(("Open", "Auf"), ("=Gate", "Tor"), ("Yes", "Ja"), ("Yes", "Ja"), ("", "")))
    consistency.add("b", pairs(("open", "offen"), ("Open", "Öffnen"), ("=Gate", "Tür"), ("Open", "Öffnen"), ("", "-")))
    assert consistency.to_tsv().splitlines()[1:] == [
        "Open\tÖffnen\tsentence\t2\tb, sentence 2; b, sentence 4",
        "Open\tAuf\tsentence\t1\ta, sentence 1",
        "'=Gate\tTor\tsentence\t1\ta, sentence 2",
        "'=Gate\tTür\tsentence\t1\tb, sentence 3",
    ]


def test_words_translated_in_several_ways():
    """In upper and lower case, with other endings, by the weights of words for each other."""
    same_order = [[1.0, 0.0], [0.0, 1.0]]
    consistency = Consistency("en_XX", "de_DE")
    texts = pairs(("Big shops", "große Läden"), ("shop nearby", "Geschäfte nahe"), ("big SHOPS", "großes Geschäft"))
    consistency.add("a", texts, [same_order] * 3)
    consistency.add("b", pairs(("small shops", "Läden klein")), [[[0.2, 0.8], [0.9, 0.1]]])
    assert [list(row.values())[:4] for row in consistency.rows()] == [
        ["shops", "Läden", "word", 2],
        ["shop", "Geschäfte", "word", 2],
    ]
    assert [row["places"] for row in consistency.rows()] == [
        "a, sentence 1; b, sentence 1",
        "a, sentence 2; a, sentence 3",
    ]


@pytest.mark.parametrize(
    "sentences, alignments",
    [
        ([("the shop", "der Laden"), ("the door", "die Tür")], [[[1.0, 0.0], [0.0, 1.0]]] * 2),
        ([("thank you", "vielen Dank"), ("hello you", "hallo Ihr")], [[[1.0, 0.0], [0.0, 1.0]]] * 2),
        ([("old shop", "ein Laden"), ("new shop", "das Geschäft")], [None, None]),
        ([("shop", "Laden"), ("Shop", "Geschäft")], [[[1.0]], [[1.0]]]),
        ([("old shop", "店旧"), ("new shop", "铺新")], [[[0.0, 1.0], [1.0, 0.0]]] * 2),
        ([("old cafe\u0301", "altes Lokal"), ("new cafe\u0301", "neues Café")], [[[1.0, 0.0], [0.0, 1.0]]] * 2),
    ],
    ids=[
        "stop words",
        "short stop word",
        "no weights",
        "sentence of one word",
        "no spaces",
        "combining mark",
    ],
)
def test_words_that_are_not_compared(sentences, alignments):
    consistency = Consistency("en_XX", "de_DE")
    consistency.add("a", pairs(*sentences), alignments)
    assert [row for row in consistency.rows() if row["kind"] == "word"] == []


def test_a_stop_word_is_compared_where_its_translation_is_none():
    """Lists of stop words are long: that of English has the word "system"."""
    consistency = Consistency("en_XX", "de_DE")
    texts = pairs(("the system", "die Anlage"), ("the system", "das System"))
    consistency.add("a", texts, [[[1.0, 0.0], [0.0, 1.0]]] * 2)
    assert [row["translation_text"] for row in consistency.rows() if row["kind"] == "word"] == ["Anlage", "System"]


def test_only_the_first_places_are_named():
    """A cell of a spreadsheet is bounded, and the report is read as a glossary."""
    consistency = Consistency()
    consistency.add("a", pairs(*[("Open", "Auf")] * 5000, ("Open", "Öffnen")))
    often, once = consistency.rows()
    assert (often["times"], once["places"]) == (5000, "a, sentence 5001")
    assert often["places"].startswith("a, sentence 1; ") and often["places"].endswith("sentence 10; and 4990 more")


def test_words_of_a_language_without_stop_words_and_stems():
    consistency = Consistency(None, "[target]")
    alignments = [[[1.0, 0.0], [0.0, 1.0]]] * 2
    consistency.add("a", pairs(("the shop", "der Laden"), ("the shop", "die Laden")), alignments)
    rows = [(row["source_text"], row["translation_text"]) for row in consistency.rows() if row["kind"] == "word"]
    assert rows == [("the", "der"), ("the", "die")]


def test_a_word_that_has_no_more_than_half_of_the_weight_stands_for_none():
    consistency = Consistency()
    for name, translation in (("a", "Tor auf"), ("b", "Tür auf")):
        consistency.add(name, pairs(("gate open", translation)), [[[0.5, 0.5], [0.1, 0.9]]])
    assert [row["kind"] for row in consistency.rows()] == ["sentence"] * 2


@pytest.mark.parametrize("language", ["de_DE", "deu_Latn", "[de]", "de"])
def test_codes_of_a_language(language):
    forms = WordForms(language)
    assert {"der", "und", "sich"} <= forms.stop_words and "hund" not in forms.stop_words
    assert forms.stem("hunden") == "hund"


@pytest.mark.parametrize("language", ["nb_NO", "nno_Latn", "no"])
def test_norwegian_by_its_codes(language):
    assert "ikke" in WordForms(language).stop_words and WordForms(language).stem("husene") == "hus"


@pytest.mark.parametrize("language", ["tlh", "[target]", "ja_XX", "", None])
def test_a_language_that_a_library_does_not_know(language):
    assert "der" not in WordForms(language).stop_words and WordForms(language).stem("hunden") == "hunden"


@pytest.mark.parametrize("library", ["stop_words", "snowballstemmer", "babel"])
def test_a_missing_library_is_named(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"needs {library}: pip install 'gtransformer-hf"):
        WordForms("en")
