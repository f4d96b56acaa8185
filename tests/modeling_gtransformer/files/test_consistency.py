"""Sentences and words that are translated in several ways, with their places."""

import sys

import pytest

from modeling_gtransformer.files.consistency import Consistency, WordForms


IN_ORDER = [[1.0, 0.0], [0.0, 1.0]]
REVERSED = [[0.0, 1.0], [1.0, 0.0]]


def pairs(*texts):
    return [dict(zip(("source_text", "translation_text"), each, strict=True)) for each in texts]


def words_of(consistency):
    return [(row["source_text"], row["translation_text"]) for row in consistency.rows() if row["kind"] == "word"]


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
    consistency = Consistency("en_XX", "de_DE")
    texts = pairs(("Big shops", "große Läden"), ("shop nearby", "Geschäfte nahe"), ("big SHOPS", "großes Geschäft"))
    consistency.add("a", texts, [IN_ORDER] * 3)
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
    "sentences, alignment, expected",
    [
        ([("the shop", "der Laden"), ("the door", "die Tür")], IN_ORDER, []),  # stop words
        ([("thank you", "vielen Dank"), ("hello you", "hallo Welt")], IN_ORDER, []),  # a short stop word
        # Lists of stop words are long: that of English has the word "system".
        ([("the system", "die Anlage"), ("the system", "das System")], IN_ORDER,
         [("system", "Anlage"), ("system", "System")]),
        ([("old shop", "ein Laden"), ("new shop", "das Geschäft")], None, []),
        ([("shop", "Laden"), ("Shop", "Geschäft")], [[1.0]], []),  # a sentence of one word
        ([("gate open", "Tor auf"), ("gate open", "Tür auf")], [[0.5, 0.5], [0.1, 0.9]], []),  # half of the weight
        ([("old shop", "店旧"), ("new shop", "铺新")], REVERSED, []),  # no spaces
        ([("old cafe\u0301", "altes Lokal"), ("new cafe\u0301", "neues Café")], IN_ORDER, []),  # a combining mark
    ],
)  # fmt: skip
def test_which_words_are_compared(sentences, alignment, expected):
    consistency = Consistency("en_XX", "de_DE")
    consistency.add("a", pairs(*sentences), [alignment] * 2)
    assert words_of(consistency) == expected


@pytest.mark.parametrize("src_lang, expected", [(None, [("these", "diese"), ("these", "dies")]), ("en_XX", [])])
def test_words_of_a_language_without_stop_words_and_stems(src_lang, expected):
    consistency = Consistency(src_lang, "[target]")
    consistency.add("a", pairs(("these old", "diese alte"), ("these old", "dies alte")), [IN_ORDER] * 2)
    assert words_of(consistency) == expected


def test_only_the_first_places_are_named():
    """A cell of a spreadsheet is bounded, and the report is read as a glossary."""
    consistency = Consistency()
    consistency.add("a", pairs(*[("Open", "Auf")] * 5000, ("Open", "Öffnen")))
    often, once = consistency.rows()
    assert (often["times"], once["places"]) == (5000, "a, sentence 5001")
    assert often["places"].startswith("a, sentence 1; ") and often["places"].endswith("sentence 10; and 4990 more")


@pytest.mark.parametrize(
    "languages, stop_word, word, stem",
    [
        (("de_DE", "deu_Latn", "[de]", "de"), "sich", "hunden", "hund"),
        (("nb_NO", "nno_Latn", "no"), "ikke", "husene", "hus"),
        (("tlh", "[target]", "ja_XX", "", None), "sich", "hunden", "hunden"),  # unknown ones
    ],
)
def test_codes_of_a_language(languages, stop_word, word, stem):
    for language in languages:
        forms = WordForms(language)
        assert forms.stem(word) == stem and word not in forms.stop_words
        assert (stop_word in forms.stop_words) == (stem != word)


@pytest.mark.parametrize("library", ["stop_words", "snowballstemmer", "babel"])
def test_a_missing_library_is_named(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"needs {library}: pip install 'gtransformer-hf"):
        WordForms("en")
