"""Documents of any length: nothing is cut short, and long sentences come in parts."""

import pytest
from tiny import watch_generate

from modeling_gtransformer.document_translation import translate_documents, translate_in_steps
from modeling_gtransformer.sentence import Sentence, TranslatedDocument


WORDS = ["the cat", "sleeps", "it is old", "a", "the old cat sleeps"]


@pytest.fixture
def translator(processor, translation_model):
    model = translation_model()

    def translate(documents, **arguments):
        return translate_documents(model, processor, documents, **arguments)

    translate.model, translate.processor = model, processor
    return translate


def confidences(document):
    return [sentence.confidence for sentence in document.sentences]


def long_document(sentences):
    return [WORDS[i % len(WORDS)] for i in range(sentences)]


def test_a_thousand_sentences(translator, caplog):
    [translated] = translator([long_document(1000)], max_length_a=0, max_length_b=2)
    assert len(translated.sentences) == 1000 == sum(translated.segments)
    assert all(translated.texts) and "cut short" not in caplog.text


def test_segments_leave_positions_for_the_longest_translations(translator, monkeypatch, caplog):
    """128 positions, and sentences of two tokens that may become 12 long: however it goes, none is cut short."""
    model = translator.model
    model.generation_config.suppress_tokens += [model.config.eos_token_id]  # every sentence goes to its limit
    shapes = []
    generate = model.generate
    monkeypatch.setattr(model, "generate", lambda **kwargs: shapes.append(generate(**kwargs)) or shapes[-1])
    monkeypatch.setattr(type(model), "_refuse_contradictions", lambda *_: None)
    translated = translator([["a"] * 40])
    assert max(output.shape[1] for output in shapes) <= 128
    assert len(translated[0].sentences) == 40 and "cut short" not in caplog.text
    documents = [document for output in shapes for document in translator.processor.split_sentences(output)]
    assert {len(words) for document in documents for words in document} == {12}


@pytest.mark.parametrize("beams", [1, 3])
def test_documents_together_are_as_alone(translator, beams):
    documents = [long_document(9), ["a"] * 12, long_document(5)[::-1] * 2]
    settings = {"segment_tokens": 18, "max_length_b": 4, "num_beams": beams, "confidence": True}
    together = translator(documents, **settings)
    for document, expected in zip(documents, together, strict=True):
        [alone] = translator([document], **settings)
        assert (alone.texts, alone.segments) == (expected.texts, expected.segments)
        assert confidences(alone) == pytest.approx(confidences(expected), rel=1e-3)


def test_a_document_unlike_those_of_the_training_gets_a_warning(translator, processor):
    """Where the model is far less sure of what it wrote; what was put in afterwards does not count."""
    document = [Sentence(text, f"a.txt, sentence {number}") for number, text in enumerate(long_document(3), 1)]
    own = Sentence("the cat", "a.txt, sentence 4", required=["xy"], terms={"xy": ["cat"]})
    [scored] = translator([document], confidence=True)
    mean = scored.log_probability / scored.tokens
    assert not scored.warnings
    processor.typical_confidence = mean + 0.4
    assert not translator([document])[0].warnings
    processor.typical_confidence = mean + 0.6
    [translated] = translator([document])
    assert translated.texts == scored.texts and confidences(translated) == [None] * 3
    assert translated.warnings == [
        "a.txt: the translation is doubtful, perhaps because the text is unlike the model's training data "
        f"(mean log-probability of a token {mean:.2f}, typically {mean + 0.6:.2f})."
    ]
    assert TranslatedDocument.joined([translated, translated]).warnings == translated.warnings
    [changed] = translator([[own]], confidence=True)
    assert "xy" in changed.texts[0] and changed.tokens == 0 and not changed.warnings


def test_a_long_sentence_comes_in_parts(translator):
    long = "it is old, " * 30 + "the cat sleeps"
    [translated] = translator([["the cat", long, "a"]])
    assert len(translated.sentences) == 3 == sum(translated.segments)
    [warning] = translated.warnings
    assert warning.startswith("Document 1, sentence 2 has") and warning.endswith("positions of a sentence.")
    first, second, _ = translated.texts
    assert " " in second and len(second) > len(first)


def test_a_step_translates_a_batch(translator, monkeypatch):
    """Whoever takes the steps may do something else between them. A giant makes no other batch larger."""
    documents = [["the cat"] * 3, ["it is old"] * 3, ["a"], ["the cat is old " * 5]]
    calls = watch_generate(translator.model, monkeypatch)
    settings = {"segment_sentences": 2, "max_tokens": 12}
    begun = list(translate_in_steps(translator.model, translator.processor, documents, **settings))
    shapes = [call["input_ids"].shape for call in calls]
    assert len(begun) > 3 and sum(begun) == 8
    assert all(shape[0] == 1 or shape.numel() <= 12 for shape in shapes) and max(shapes)[0] > 1


def test_batches_leave_room_for_the_beams_of_the_model(translator, monkeypatch):
    """Also where nobody has asked for any. As few rows at a time are slow, many beams take more memory."""
    asked = []
    monkeypatch.setattr(
        "modeling_gtransformer.document_translation.longest_first_batches",
        lambda lengths, max_tokens: asked.append(max_tokens) or [[*range(len(lengths))]],
    )
    for own, arguments in ((1, {}), (3, {}), (3, {"num_beams": 2}), (1, {"num_beams": 5}), (3, {"max_tokens": 99})):
        translator.model.generation_config.num_beams = own
        translator([["the cat"]], **arguments)
    assert asked == [16_384, 5_461, 8_192, 4_096, 99]
