"""Languages by the codes that clients use."""

import pytest

from modeling_gtransformer import Translator
from modeling_gtransformer.server.api_error import ApiError
from modeling_gtransformer.server.language_pairs import LanguagePairs, _by_client_code


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
    languages = LanguagePairs(Translator(checkpoint).pipeline)
    assert languages.listed() == [{"code": "en", "name": "English", "targets": ["de"]}]
    assert languages.source("en") == ("en", None) and languages.target("de_DE") == ("de", None)
    assert (languages.own_source, languages.own_target) == ("en", "de")
    with pytest.raises(ApiError, match="'fr' is no language to translate into: possible are de") as error:
        languages.target("fr")
    assert error.value.status == 400


def test_a_model_of_several_targets(sentence_level_checkpoint):
    languages = LanguagePairs(Translator(sentence_level_checkpoint("marian-many"), tgt_lang="fra").pipeline)
    assert [*languages.sources] == ["en"] and languages.targets == {"de": "deu", "fr": "fra", "ro": "ron"}
    assert languages.own_target == "fr" and languages.target("ro-MD") == ("ro", "ron") == languages.target("RON")
