"""Stop words and stems of languages, by libraries that may be missing."""

import sys

import pytest

from modeling_gtransformer.files.word_forms import WordForms


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
