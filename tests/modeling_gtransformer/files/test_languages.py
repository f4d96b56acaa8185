"""What files say of their language."""

import sys

import pytest

from modeling_gtransformer.files.languages import english_name, language_tag, plural_forms_of, text_direction


@pytest.mark.parametrize(
    "language, tag, direction",
    [
        ("de_DE", "de-DE", "ltr"), ("ar_AR", "ar-AR", "rtl"), ("[he]", "he", "rtl"), ("arb_Arab", "arb-Arab", "rtl"),
        ("ur", "ur", "rtl"), ("zzz", "zzz", "ltr"),
    ],
)  # fmt: skip
def test_direction_of_a_language(language, tag, direction):
    assert language_tag(language) == tag and text_direction(tag) == direction


def test_plural_forms_of_unknown_languages_are_those_of_english():
    assert plural_forms_of("zzz") == plural_forms_of(None) == plural_forms_of("en_XX")
    assert plural_forms_of("pl_PL").startswith("nplurals=3")


def test_a_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "babel", None)
    for function in (plural_forms_of, english_name):
        with pytest.raises(ImportError, match="pip install babel"):
            function("de")
