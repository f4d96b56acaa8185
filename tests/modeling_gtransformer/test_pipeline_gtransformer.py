import re

import pytest
from datasets import Dataset
from safetensors.torch import load_file, save_file
from tiny import watch_generate
from transformers import pipeline

from modeling_gtransformer import (
    DocumentTranslationPipeline,
    GTransformerForConditionalGeneration,
    pipeline_gtransformer,
)
from modeling_gtransformer.pipeline_gtransformer import NamedDocument
from modeling_gtransformer.runtime.translator import SMALL_MODEL


@pytest.fixture
def translate(checkpoint):
    loaded = pipeline("document-translation", model=checkpoint)
    assert isinstance(loaded, DocumentTranslationPipeline)
    return loaded


SENTENCES = ["the cat sleeps", "it is old", "the old cat"]


def test_sentences_and_lines_give_aligned_sentences(translate):
    by_list, by_text = translate(SENTENCES), translate("\n".join(SENTENCES))
    assert by_list == by_text
    assert [pair["source_text"] for pair in by_list["sentences"]] == SENTENCES
    translations = [pair["translation_text"] for pair in by_list["sentences"]]
    assert by_list["translation_text"] == "\n".join(translations)
    # The same as by hand.
    inputs = translate.processor(SENTENCES, return_tensors="pt")
    assert [translations] == translate.processor.batch_decode_sentences(translate.model.generate(**inputs))


def test_sentences_in_parallel(translate, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("modeling_gtransformer.generation_gtransformer.JacobiDecoder", None)
        expected = translate(SENTENCES, parallel_sentences=False)
    monkeypatch.setattr("modeling_gtransformer.generation_gtransformer.decode_documents", None)
    assert translate(SENTENCES, parallel_sentences=True) == expected


def test_without_a_model_the_bundled_one_translates(caplog):
    """Transformers names it in a warning."""
    translate = pipeline("document-translation")
    assert translate.model.name_or_path == str(SMALL_MODEL) in caplog.text


def test_a_checkpoint_that_lacks_a_tensor_is_refused_until_it_is_trained(checkpoint):
    weights = load_file(f"{checkpoint}/model.safetensors")
    del weights["model.decoder.layers.1.fc1.weight"]
    save_file(weights, f"{checkpoint}/model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=f"{checkpoint} lacks tensors: model.decoder.layers.1.fc1.weight"):
        pipeline("document-translation", model=checkpoint)
    model = GTransformerForConditionalGeneration.from_pretrained(checkpoint).train().eval()
    assert pipeline("document-translation", model=model)("the cat")["translation_text"]


def test_blank_sentences_stay(translate):
    output = translate(["", "the cat", " ", "it is"])
    assert [pair["source_text"] for pair in output["sentences"]] == ["", "the cat", " ", "it is"]
    assert [bool(pair["translation_text"]) for pair in output["sentences"]] == [False, True, False, True]
    nothing = {"translation_text": "", "sentences": [], "segments": [], "warnings": []}
    assert translate("") == translate([]) == nothing
    assert translate(" \r\n")["translation_text"] == " \r\n"


def test_sentences_without_words_stay(translate):
    """In a list as in a text: the model would make something of them."""
    sentences = ["the cat", "42", "2023-10-05", "it is", "http://a.org/x"]
    output = translate(sentences, confidence=True)
    texts = [pair["translation_text"] for pair in output["sentences"]]
    assert (texts[1:3], texts[4]) == (["42", "2023-10-05"], "http://a.org/x") and output["segments"] == [2]
    assert [pair["confidence"] is None for pair in output["sentences"]] == [False, True, True, False, True]
    assert [pair["translation_text"] for pair in translate.stream(sentences)] == texts
    words = translate(["the cat", "it is"])["sentences"]
    assert [texts[0], texts[3]] == [pair["translation_text"] for pair in words]
    assert translate(["the cat", "42"], keep_placeholders=False)["segments"] == [2]


def test_iterators_and_what_is_no_document(translate):
    documents = [["the cat"], ["it is"]]
    assert list(translate(iter(documents))) == translate(documents)
    assert list(translate(documents, num_workers=0)) == translate(documents)
    # Every item of a column is a document, a text or a list of sentences.
    assert translate(Dataset.from_dict({"en": documents})["en"]) == translate(documents)
    assert translate(Dataset.from_dict({"en": ["the cat\nit is"]})["en"]) == [translate("the cat\nit is")]
    for wrong in (("the cat",), None, 3, {"source": ["the cat"]}, Dataset.from_dict({"en": ["the cat"]})):
        with pytest.raises(ValueError, match=f"not a {type(wrong).__name__}"):
            translate(wrong)
    for wrong in (("the cat",), ["the cat", 3], {"source": "the cat"}):
        with pytest.raises(ValueError, match="A document is a string or a list of strings, not"):
            translate([["it is"], wrong])
    for setting in ({"num_return_sequences": 2, "num_beams": 2}, {"return_dict_in_generate": True}):
        with pytest.raises(ValueError, match=f"{next(iter(setting))} is an argument of generate"):
            translate("the cat", **setting)


def test_a_model_of_one_pair_refuses_other_languages(translate):
    """Its decoder has no way to be told another target language."""
    source, target = translate.processor.src_lang, translate.processor.tgt_lang
    assert translate("the cat", src_lang=source) == translate("the cat")
    with pytest.raises(ValueError, match=re.escape(f"from {source} into {target} only, not from {target} into")):
        translate("the cat", src_lang=target, tgt_lang=source)


def test_a_glossary_of_the_pipeline_is_for_its_own_languages(sentence_level_checkpoint):
    languages = {"src_lang": "eng_Latn", "tgt_lang": "deu_Latn"}
    model = sentence_level_checkpoint("m2m_100-nllb")
    translate = pipeline("document-translation", model=model, **languages, glossary={"cat": "Katze"})
    other = {"tgt_lang": "fra_Latn"}
    for options, required in (({}, ["Katze"]), (languages, ["Katze"]), (other, [])):
        [sentence] = translate.prepare(NamedDocument("a.txt", "the cat"), **options).sentences
        assert sentence.required == required
    given = translate.prepare(NamedDocument("a.txt", "the cat"), **other, glossary={"cat": "chat"})
    assert given.sentences[0].required == ["chat"]


@pytest.mark.parametrize("splitter", ["sentencex", lambda line: line.split(".")])
def test_what_stands_between_the_sentences_stays(translate, splitter):
    output = translate("\ufeffit is.  the cat.\r\n\r\n- the old cat\n---\n", splitter=splitter)
    sources = [pair["source_text"].rstrip(".") for pair in output["sentences"]]
    assert sources == ["it is", "the cat", "the old cat"]
    dot = "" if splitter == "sentencex" else "."
    one, two, three = (pair["translation_text"] for pair in output["sentences"])
    assert output["translation_text"] == f"\ufeff{one}{dot}  {two}{dot}\r\n\r\n- {three}\n---\n"
    # The sentences are a document: each is translated in the context of the others.
    as_list = translate([pair["source_text"] for pair in output["sentences"]])
    assert as_list["sentences"] == output["sentences"]
    with pytest.raises(ValueError, match="splitter must be 'line', 'sentencex' or a function"):
        translate("it is", splitter="nltk")


def test_many_documents_and_long_ones(translate):
    outputs = translate([SENTENCES[:1], SENTENCES * 9], segment_tokens=12, max_length_b=1)
    assert [len(output["sentences"]) for output in outputs] == [1, 27]
    # Segments are translated separately: the same three sentences give the same translation.
    texts = [pair["translation_text"] for pair in outputs[1]["sentences"]]
    alone = translate(SENTENCES[:2], max_length_b=1)
    assert [pair["translation_text"] for pair in alone["sentences"]] == texts[:2]


def test_documents_of_a_list_share_batches(translate, monkeypatch):
    documents = ["the cat\nit is", ["the old cat"], "the cat", "it is old\nthe cat sleeps"]
    alone = [translate(document) for document in documents]
    calls = watch_generate(translate.model, monkeypatch)
    assert translate(documents) == alone and len(calls) == 1


def test_documents_are_read_as_they_are_needed(monkeypatch):
    monkeypatch.setattr(pipeline_gtransformer, "MAX_DOCUMENTS", 2)
    monkeypatch.setattr(pipeline_gtransformer, "MAX_CHARACTERS", 10)
    lengths = [4, 4, 2, 9, 50, 1, 1, 1]
    read = []

    def documents():
        for length in lengths:
            read.append(length)
            yield NamedDocument("", ["x" * (length - 1), "x"])

    made = pipeline_gtransformer.chunks(documents())
    assert [len(document.document[0]) + 1 for document in next(made)] == [4, 4] and read == [4, 4, 2]
    assert [[document.characters for document in chunk] for chunk in made] == [[2], [9], [50], [1, 1], [1]]


def test_documents_before_a_stop_are_kept(translate, monkeypatch):
    monkeypatch.setattr(pipeline_gtransformer, "MAX_DOCUMENTS", 1)
    generate = translate.model.generate

    def stop_at_the_third(**inputs):
        if len(kept) == 2:
            raise KeyboardInterrupt
        return generate(**inputs)

    monkeypatch.setattr(translate.model, "generate", stop_at_the_third)
    kept: list = []
    with pytest.raises(KeyboardInterrupt):
        for document in translate.translate_all([NamedDocument("", [text]) for text in ("the cat", "it is", "old")]):
            kept.append(document)
    assert [len(document["sentences"]) for document in kept] == [1, 1]


@pytest.mark.parametrize(("option", "field"), [("confidence", "confidence"), ("word_alignment", "alignment")])
def test_a_call_may_refuse_what_the_pipeline_returns(translate, option, field):
    own = pipeline("document-translation", model=translate.model, processor=translate.processor, **{option: True})
    assert [sorted(own(["the cat"], **given)["sentences"][0]) for given in ({}, {option: False})] == [
        sorted([field, "source_text", "translation_text"]),
        ["source_text", "translation_text"],
    ]


def test_none_leaves_the_choice_to_the_model(translate, monkeypatch):
    calls = watch_generate(translate.model, monkeypatch)
    translate(["the cat"], num_beams=None)
    assert "num_beams" not in calls[0]


def test_pairs_of_an_unknown_format(translate):
    with pytest.raises(ValueError, match="format must be one of jsonl, tsv, tmx, not 'csv'"):
        translate.export_pairs(translate(["the cat"])["sentences"], "csv")


def test_warnings_name_document_and_sentence(translate, caplog, monkeypatch):
    """Of several documents by their numbers, of one by the name that is given."""
    monkeypatch.setattr("modeling_gtransformer.segment_translation.with_required", lambda source, text, *_: text)
    glossary = {"cat": "Катя"}
    _, second = translate([["it is"], ["it is", "", "the cat"]], glossary=glossary)
    assert second["warnings"] == ["Document 2, sentence 3: its translation lacks Катя."]
    talk = translate(["the cat"], glossary=glossary, name="talk.txt")
    assert talk["warnings"] == ["talk.txt, sentence 1: its translation lacks Катя."]
    messages = translate('msgid "the cat"\nmsgstr ""\n\nmsgid "%d cats"\nmsgstr ""\n', format="po", name="ru.po")
    assert messages["warnings"] == [
        "ru.po, sentence 2: its translation lacks %d.",
        "ru.po, sentence 2: stays untranslated, because its translation has other placeholders.",
    ]
    assert all(warning in caplog.text for each in (second, talk, messages) for warning in each["warnings"])


def test_code_that_is_also_a_placeholder_is_required_once(translate):
    """As often as it is there."""
    for text, times in (("Use `{name}` now", 1), ("Use `{name}` and `{name}`", 2), ("Use `{name}` or {name}", 2)):
        [sentence] = translate.prepare(NamedDocument("a.md", text), format="markdown").sentences
        assert sentence.required == ["{name}"] * times


@pytest.mark.parametrize(
    "setting, words",
    [
        ({"num_beams": 0}, "num_beams must be between 1 and 100, not 0"),
        ({"num_beams": 101}, "num_beams must be between 1 and 100, not 101"),
        ({"segment_tokens": -5}, "segment_tokens must be at least 1, not -5"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, not 0"),
        ({"segment_sentences": 0}, "segment_sentences must be at least 1, not 0"),
    ],
)
def test_settings_out_of_their_range_are_refused(translate, setting, words):
    with pytest.raises(ValueError, match=words):
        translate(["the cat"], **setting)


def test_documents_of_a_file_do_not_see_each_other(translate):
    unit = "<file><body><trans-unit><source>{}</source></trans-unit></body></file>"
    documents = ["the cat sleeps", "it is old", ""]
    content = '<xliff version="1.2">' + "".join(map(unit.format, documents)) + "</xliff>"
    alone = [pair for document in documents[:2] for pair in translate([document], confidence=True)["sentences"]]
    output = translate(content, format="xliff", confidence=True)
    together = translate(documents[:2], confidence=True)["sentences"]
    of_each = [[pair.pop("confidence") for pair in pairs] for pairs in (output["sentences"], alone, together)]
    assert output["sentences"] == alone
    assert of_each[0] == pytest.approx(of_each[1]) and of_each[1] != pytest.approx(of_each[2])
    assert all(pair["translation_text"] in output["translation_text"] for pair in alone)
    streamed = list(translate.stream(content, format="xliff"))
    assert [pair["translation_text"] for pair in streamed] == [pair["translation_text"] for pair in alone]


def test_source_and_translation_side_by_side(translate):
    [pair] = translate("the cat")["sentences"]
    words = pair["translation_text"]
    assert translate("the cat\n", bilingual=True)["translation_text"] == f"the cat\n→ {words}\n"
    html = translate("<p>the cat</p>", format="html", bilingual=True)["translation_text"]
    assert html.startswith("<p>the cat<br/>") and html.endswith(f">{words}</span></p>")
    with pytest.raises(ValueError, match="bilingual takes a string, not a list of sentences"):
        translate(["the cat"], bilingual=True)


def test_a_batch_size_is_refused_wherever_it_is_given(checkpoint, translate):
    with pytest.raises(ValueError, match="max_tokens"):
        pipeline("document-translation", model=checkpoint, batch_size=2)
    with pytest.raises(ValueError, match="Set max_tokens instead of batch_size"):
        translate("the cat", batch_size=2)


def test_a_plain_translator_is_saved_for_the_languages_of_its_pipeline(sentence_level_checkpoint, tmp_path):
    languages = {"src_lang": "eng_Latn", "tgt_lang": "fra_Latn"}
    translate = pipeline("document-translation", model=sentence_level_checkpoint("m2m_100-nllb"), **languages)
    translate.save_pretrained(tmp_path)
    saved = GTransformerForConditionalGeneration.from_pretrained(tmp_path)
    expected = translate.processor.generation_settings(saved)
    assert {name: getattr(saved.generation_config, name) for name in expected} == expected
