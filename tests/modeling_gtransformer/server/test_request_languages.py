"""Languages by the codes that clients use, and the language of a text if it can be detected."""

import sys

import pytest
from starlette.exceptions import HTTPException

from modeling_gtransformer import Translator
from modeling_gtransformer.server.request_languages import Languages, Pair, _by_client_code, language_detector


def test_codes_of_two_letters_where_they_are_enough():
    codes = _by_client_code(["eng_Latn", "zho_Hans", "zho_Hant", "ary_Arab", "ro_RO"], None)
    assert codes == {
        "en": "eng_Latn",
        "zh-Hans": "zho_Hans",
        "zh-Hant": "zho_Hant",
        "ary": "ary_Arab",
        "ro": "ro_RO",
    }


def test_a_model_of_documents_has_one_pair(checkpoint):
    """Its tokenizer knows other languages."""
    languages = Languages(Translator(checkpoint).pipeline)
    assert languages.listed() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    pair = Pair("en", "de", None, None)
    assert languages.pair("en", None, []) == languages.pair("en", "de_DE", []) == pair
    assert languages.pair("auto", "de", []) == pair._replace(confidence=100)
    assert (languages.own_source, languages.own_target) == ("en", "de")
    with pytest.raises(HTTPException, match=r"Cannot translate into 'fr'\. Supported languages: de") as error:
        languages.pair("en", "fr", [])
    assert error.value.status_code == 400


def test_a_model_of_several_targets(sentence_level_checkpoint):
    languages = Languages(Translator(sentence_level_checkpoint("marian-many"), tgt_lang="fra").pipeline)
    assert [*languages.sources] == ["en"] and languages.targets == {"de": "deu", "fr": "fra", "ro": "ron"}
    assert languages.own_target == "fr"
    assert languages.pair("en", "ro-MD", []) == languages.pair("en", "RON", []) == Pair("en", "ro", None, "ron")


def test_a_model_of_several_sources(sentence_level_checkpoint):
    languages = Languages(Translator(sentence_level_checkpoint("m2m_100-nllb"), tgt_lang="fra_Latn").pipeline)
    pair = Pair("en", "fr", "eng_Latn", "fra_Latn")
    assert languages.pair("en", None, ["the cat"]) == languages.pair("eng_Latn", "fra-latn", []) == pair
    with pytest.raises(HTTPException, match="set source"):
        languages.pair("auto", None, [])
    pytest.importorskip("py3langid")
    german = languages.pair("auto", "en", ["Der Hund schläft heute", "in seinem kleinen Haus."])
    assert (german.source, german.src_lang) == ("de", "deu_Latn") and 50 < german.confidence <= 100


def test_a_language_of_several_codes_must_be_named(sentence_level_checkpoint, monkeypatch):
    languages = Languages(Translator(sentence_level_checkpoint("m2m_100-nllb"), tgt_lang="fra_Latn").pipeline)
    languages.sources |= {"zh-Hans": "zho_Hans", "zh-Hant": "zho_Hant"}
    monkeypatch.setattr(languages, "detect", lambda text: [("zh", 90.0)])
    with pytest.raises(HTTPException, match="The text is in Chinese: set source to zh-Hans or zh-Hant") as error:
        languages.pair("auto", None, ["这是一个句子。"])
    assert error.value.status_code == 400


def test_languages_of_texts():
    pytest.importorskip("py3langid")
    detect = language_detector(["en", "de", "zh-Hans", "zh-Hant", "ace-Latn"])  # not all are known to it
    assert detect("Der Hund schläft heute in seinem kleinen Haus.")[0][0] == "de"
    assert detect("这是一个句子。")[0][0] == "zh"
    tags = "<meta name='description' content='the page and the house'>" * 9
    assert detect(f"{tags}<p>Der Hund schläft heute.</p>")[0][0] == "de"
    ranked = detect("The dog sleeps in its small house today.")
    assert ranked[0][0] == "en" and 50 < ranked[0][1] <= 100
    assert sum(share for _, share in ranked) == pytest.approx(100, abs=0.5)


def test_without_a_detector_only_a_single_language_is_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    assert language_detector(["de"])("the cat") == [("de", 100.0)]
    with pytest.raises(HTTPException, match=r"pip install 'gtransformer-hf\[detect\]'") as error:
        language_detector(["de", "en"])("the cat")
    assert error.value.status_code == 501
