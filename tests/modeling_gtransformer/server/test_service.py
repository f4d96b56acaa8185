"""What a server does for a request."""

from types import SimpleNamespace

import pytest

from modeling_gtransformer import Translator
from modeling_gtransformer.server.api_error import ApiError
from modeling_gtransformer.server.request_fields import Fields, PairFields, Upload
from modeling_gtransformer.server.server_settings import ServerSettings
from modeling_gtransformer.server.service import Service, content_of, translated_name
from modeling_gtransformer.usage_error import UsageError


def test_languages_of_a_request(sentence_level_checkpoint):
    service = Service(Translator(sentence_level_checkpoint("m2m_100-nllb"), tgt_lang="fra_Latn"), ServerSettings())
    pair = service.pair_of(PairFields(source="en"), ["the cat"])
    assert (pair.source, pair.target, pair.src_lang, pair.tgt_lang) == ("en", "fr", "eng_Latn", "fra_Latn")
    assert pair.detected is None
    with pytest.raises(ApiError, match="name the source"):
        service.pair_of(PairFields(), [])
    pytest.importorskip("py3langid")
    german = service.pair_of(PairFields(target="en"), ["Der Hund schläft heute", "in seinem kleinen Haus."])
    assert (german.source, german.src_lang) == ("de", "deu_Latn") and 50 < german.detected <= 100


def test_a_language_of_several_codes_must_be_named(sentence_level_checkpoint, monkeypatch):
    service = Service(Translator(sentence_level_checkpoint("m2m_100-nllb"), tgt_lang="fra_Latn"), ServerSettings())
    service.languages.sources |= {"zh-Hans": "zho_Hans", "zh-Hant": "zho_Hant"}
    monkeypatch.setattr(service.detector, "detect", lambda text: [("zh", 0.9)])
    with pytest.raises(ApiError, match="The text is Chinese: name the source, zh-Hans or zh-Hant") as error:
        service.pair_of(PairFields(), ["这是一个句子。"])
    assert error.value.status == 400


def test_clients_are_known_by_key_or_address(checkpoint, tmp_path):
    (tmp_path / "keys.txt").write_text("one\n")
    request = SimpleNamespace(client=SimpleNamespace(host="10.0.0.1"))
    translator = Translator(checkpoint)
    with_keys = Service(translator, ServerSettings(api_keys=str(tmp_path / "keys.txt")))
    assert with_keys.client_of(request, Fields(api_key="one")) == "one"
    # A key that is not checked would make a client as many as it likes.
    assert Service(translator, ServerSettings()).client_of(request, Fields(api_key="one")) == "10.0.0.1"


def test_a_splitter_that_does_not_know_the_language(checkpoint):
    translator = Translator(checkpoint, src_lang="en_XX", splitter="sentencex")
    translator.pipeline.processor.src_lang = "[source]"
    with pytest.raises(UsageError, match="--splitter line"):
        Service(translator, ServerSettings())


def test_contents_of_files():
    assert content_of(Upload("a.TXT", "straße".encode())) == ("straße", "text")
    assert content_of(Upload("a.docx", b"PK")) == (b"PK", "docx")
    with pytest.raises(ValueError, match="not UTF-8"):
        content_of(Upload("a.html", b"\xff"))
    for name in ("a", "", "a.pdf", ".txt"):
        with pytest.raises(ApiError, match=r"by their endings: \.txt"):
            content_of(Upload(name, b""))


def test_names_of_translated_files():
    assert translated_name("../../etc/a.b.txt", "de") == "a.b.de.txt"
    assert translated_name("C:\\letters\\to Ann.docx", "de") == "to Ann.de.docx"
