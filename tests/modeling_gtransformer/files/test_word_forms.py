"""Stop words and stems of languages, by libraries that may be missing."""

import sys

import pytest

from modeling_gtransformer.files.word_forms import stemmer, stop_words


@pytest.mark.parametrize("language", ["de_DE", "deu_Latn", "[de]", "de"])
def test_codes_of_a_language(language):
    assert {"der", "und", "sich"} <= stop_words(language) and "hund" not in stop_words(language)
    assert stemmer(language)("hunden") == "hund"


@pytest.mark.parametrize("language", ["nb_NO", "nno_Latn", "no"])
def test_norwegian_by_its_codes(language):
    assert "ikke" in stop_words(language) and stemmer(language)("husene") == "hus"


@pytest.mark.parametrize("language", ["tlh", "[target]", "ja_XX", "", None])
def test_a_language_that_a_library_does_not_know(language):
    assert "der" not in stop_words(language)
    assert stemmer(language)("hunden") == "hunden"


@pytest.mark.parametrize("function", [stop_words, stemmer])
@pytest.mark.parametrize("library", ["stop_words", "snowballstemmer", "babel"])
def test_a_missing_library_is_named(library, function, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"needs {library}: pip install 'gtransformer-hf"):
        function("en")
