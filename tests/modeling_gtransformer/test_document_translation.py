"""Documents of any length: nothing is cut short, windows continue each other, and long sentences come in parts."""

import pytest
import torch

from modeling_gtransformer.document_translation import batch_tokens, translate_documents
from modeling_gtransformer.segment_translation import SegmentTranslator


WORDS = ["the cat", "sleeps", "it is old", "a", "the old cat sleeps"]


@pytest.fixture
def translator(processor, translation_model):
    model = translation_model()

    def translate(documents, **arguments):
        return translate_documents(model, processor, documents, **arguments)

    translate.model = model
    return translate


def long_document(sentences):
    return [WORDS[i % len(WORDS)] for i in range(sentences)]


def test_a_thousand_sentences(translator, caplog):
    [translated] = translator([long_document(1000)], max_length_a=0, max_length_b=2)
    assert len(translated.sentences) == 1000 == sum(translated.segments)
    assert all(translated.sentences) and "cut short" not in caplog.text


@pytest.mark.parametrize("carried", [0, 2])
def test_windows_leave_room_for_the_longest_translations(translator, monkeypatch, caplog, carried):
    """128 positions, and sentences of two tokens that may become 12 long: however it goes, none is cut short."""
    model = translator.model
    model.generation_config.suppress_tokens += [model.config.eos_token_id]  # every sentence goes to its limit
    shapes = []
    generate = model.generate
    monkeypatch.setattr(model, "generate", lambda **kwargs: shapes.append(generate(**kwargs)) or shapes[-1])
    monkeypatch.setattr(type(model), "_refuse_contradictions", lambda *_: None)
    translated = translator([["a"] * 40], carried_sentences=carried)
    assert max(output.shape[1] for output in shapes) <= 128
    assert len(translated[0].sentences) == 40 and "cut short" not in caplog.text
    lengths = [len(model_words) for output in shapes for model_words in sentences_of(output)]
    assert set(lengths) == {12}


def sentences_of(output):
    """Words between `<s>` and `</s>` of every sentence of generated rows."""
    for row in output.tolist():
        words: list[int] = []
        for token in row:
            if token == 0:
                words = []
            elif token == 2:
                yield words
            else:
                words.append(token)


def test_a_window_continues_the_one_before(translator, processor):
    document = long_document(7)
    [translated] = translator([document], segment_tokens=16, carried_sentences=1, max_length_b=3)
    assert len(translated.segments) > 2 and sum(translated.segments) == 7
    first = translated.segments[0]
    # By hand: the last sentence of the first window, its translation as a prefix, and what the second window added.
    [[*words]] = processor.split_sentences(
        translator.model.generate(**processor(document[:first], return_tensors="pt"), max_length_b=3)
    )
    prefix = torch.tensor([processor.build_source(words[-1:])])
    window = document[first - 1 : first + translated.segments[1]]
    output = translator.model.generate(
        **processor(window, return_tensors="pt"), decoder_input_ids=prefix, max_length_b=3
    )
    [expected] = processor.batch_decode_sentences(output)
    assert translated.sentences[first : first + translated.segments[1]] == expected[1:]
    # The context makes a difference, to the model's confidence at least.
    apart, together = (
        translator([document[: first + 1]], segment_tokens=16, carried_sentences=carried, confidence=True)[0]
        for carried in (0, 1)
    )
    assert apart.confidences[:first] == pytest.approx(together.confidences[:first])
    assert apart.confidences[first] != pytest.approx(together.confidences[first], rel=1e-3)


@pytest.mark.parametrize("beams", [1, 3])
def test_documents_together_are_as_alone(translator, beams):
    """Prefixes of unequal lengths in a batch."""
    documents = [long_document(9), ["a"] * 12, long_document(5)[::-1] * 2]
    settings = {
        "segment_tokens": 18,
        "carried_sentences": 2,
        "max_length_b": 4,
        "num_beams": beams,
        "confidence": True,
    }
    together = translator(documents, **settings)
    for document, expected in zip(documents, together, strict=True):
        [alone] = translator([document], **settings)
        assert (alone.sentences, alone.segments) == (expected.sentences, expected.segments)
        assert alone.confidences == pytest.approx(expected.confidences, rel=1e-3)


def test_confidence_is_the_mean_log_probability_of_the_tokens(translator, processor):
    document = long_document(3)
    [translated] = translator([document], confidence=True)
    inputs = processor(document, return_tensors="pt")
    output = translator.model.generate(**inputs)
    with torch.no_grad():
        logits = translator.model(**inputs, decoder_input_ids=output[:, :-1]).logits[0].log_softmax(dim=-1)
    expected: list[list[float]] = []
    for position, token in enumerate(output[0, 1:].tolist()):
        if position == 0 or token == processor.bos_token_id:
            expected.append([])
        if token not in (processor.bos_token_id, processor.target_template.end):
            expected[-1].append(logits[position, token].item())
    means = [sum(values) / len(values) for values in expected]
    assert translated.confidences == pytest.approx(means, rel=1e-4)
    assert translator([document])[0].confidences is None


def test_a_long_sentence_comes_in_parts(translator, caplog):
    long = "it is old, " * 30 + "the cat sleeps"
    translated = translator([["the cat", long, "a"]], confidence=True)[0]
    assert len(translated.sentences) == 3 == sum(translated.segments) == len(translated.confidences)
    assert "Document 1, sentence 2 has" in caplog.text and "parts" in caplog.text
    assert " " in translated.sentences[1] and len(translated.sentences[1]) > len(translated.sentences[0])


def test_confidence_of_a_sentence_in_parts_is_that_of_all_its_tokens(translator, monkeypatch):
    scores = []
    of_batch = SegmentTranslator.scores

    def recorded(self, segments, rows):
        result = of_batch(self, segments, rows)
        for segment, row in zip(segments, result, strict=True):
            scores.extend(zip(range(segment.start, segment.stop), row, strict=True))
        return result

    monkeypatch.setattr(SegmentTranslator, "scores", recorded)
    long = "it is old, " * 30 + "the cat sleeps"
    [translated] = translator([["the cat", long]], confidence=True)
    (_, first), *parts = sorted(scores)
    assert len(parts) > 1
    total, number = (sum(values) for values in zip(*(score for _, score in parts), strict=True))
    assert translated.confidences == [pytest.approx(first[0] / first[1]), pytest.approx(total / number)]


def test_a_giant_among_others_makes_no_greater_batch(translator, monkeypatch):
    sizes = []
    generate = translator.model.generate
    monkeypatch.setattr(
        translator.model, "generate", lambda **inputs: sizes.append(inputs["input_ids"].numel()) or generate(**inputs)
    )
    documents = [["a"], long_document(300), ["the cat", "sleeps"]]
    translated = translator(documents, max_tokens=150, max_length_a=0, max_length_b=1)
    assert [len(document.sentences) for document in translated] == [1, 300, 2]
    assert len(sizes) > 5 and max(sizes) <= 150


def test_tokens_of_a_batch():
    """As few rows at a time are slow, many beams take more memory."""
    assert [batch_tokens(num_beams) for num_beams in (1, 2, 4, 5, 100)] == [16_384, 8_192, 4_096, 4_096, 4_096]


def test_batches_leave_room_for_the_beams_of_the_model(translator, monkeypatch):
    """Also where nobody has asked for any."""
    asked = []
    monkeypatch.setattr(
        "modeling_gtransformer.document_translation.longest_first_batches",
        lambda lengths, max_tokens: asked.append(max_tokens) or [[*range(len(lengths))]],
    )
    for own, arguments in ((1, {}), (3, {}), (3, {"num_beams": 2}), (3, {"max_tokens": 99})):
        translator.model.generation_config.num_beams = own
        translator([["the cat"]], **arguments)
    assert asked == [batch_tokens(1), batch_tokens(3), batch_tokens(2), 99]
