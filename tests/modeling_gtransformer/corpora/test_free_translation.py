"""Documents decoded freely: what the model writes for each segment, with its own number of sentences."""

import pytest
import torch
from tiny import PAD

from modeling_gtransformer.corpora.free_translation import translate_freely
from modeling_gtransformer.document_translation import translate_documents


DOCUMENTS = [["the cat sleeps", "it is old", "the cat is old"], ["it sleeps"], ["the cat", "is it old"]]


def test_it_is_what_the_model_writes_for_each_segment(translation_model, processor):
    model = translation_model()
    translated = translate_freely(model, processor, DOCUMENTS, segment_tokens=14, max_tokens=1, num_beams=2)
    assert [document.segments for document in translated] == [[2, 1], [1], [2]]
    first = processor(DOCUMENTS[0][:2], return_tensors="pt")
    ids = model.generate(**first, align_sentences=False, num_beams=2)
    written = [sentence for sentence in processor.batch_decode_sentences(ids)[0] if sentence]
    assert translated[0].translations[0] == (written or [""])
    assert any(
        size != len(sentences)
        for document in translated
        for size, sentences in zip(document.segments, document.translations, strict=True)
    )
    assert translated == translate_freely(model, processor, DOCUMENTS, segment_tokens=14, num_beams=2)


def test_parts_of_a_long_sentence_stay_with_it(translation_model, processor):
    model = translation_model(max_position_embeddings=40)
    document = ["the cat sleeps", "the cat is old, " * 12 + "it sleeps", "it is old"]
    [translated] = translate_freely(model, processor, [document])
    assert sum(translated.segments) == 3 and 0 not in translated.segments
    assert len(translated.translations) == len(translated.segments) and all(translated.translations)


def test_a_segment_without_words_is_there(translation_model, processor, monkeypatch):
    model = translation_model()
    empty = torch.tensor([[0, 2, 0, 2, PAD]])
    monkeypatch.setattr(model, "generate", lambda **_: empty)
    [translated] = translate_freely(model, processor, DOCUMENTS[:1])
    assert translated.translations == [[""]]


def test_what_does_not_end_is_announced(translation_model, processor, caplog):
    model = translation_model()
    model.final_logits_bias[0, processor.target_template.end] = -100.0
    warnings = [warning for document in translate_freely(model, processor, DOCUMENTS) for warning in document.warnings]
    expected = "Document {}, sentence 1: the translation reached the maximum length without an end."
    assert warnings == [record.message for record in caplog.records] == [expected.format(n) for n in (1, 2, 3)]
    caplog.clear()
    model.final_logits_bias[0, processor.target_template.end] = 100.0
    assert [document.translations for document in translate_freely(model, processor, DOCUMENTS)] == [[[""]]] * 3
    assert "without an end" not in caplog.text


def test_documents_that_only_a_sentence_ends_are_refused(translation_model, processor, monkeypatch):
    endless = processor.target_template._replace(end=None)
    monkeypatch.setattr(type(processor), "target_template", endless)
    with pytest.raises(ValueError, match="cannot decode freely"):
        translate_freely(translation_model(), processor, DOCUMENTS)


def test_aligned_translation_refuses_it(translation_model, processor):
    with pytest.raises(ValueError, match=r"an argument of generate\(\) only"):
        translate_documents(translation_model(), processor, DOCUMENTS, align_sentences=False)
