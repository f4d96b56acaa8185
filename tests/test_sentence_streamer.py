"""Sentences are told of early, in order, once, and as they are in the end."""

import threading

import pytest
import torch
from transformers import pipeline

from modeling_gtransformer import SentenceStreamer
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.sentence_template import TargetTemplate


DOCUMENT = ["the cat sleeps", "it is old", "the cat", "it sleeps", "the old cat is it"]
SEARCHES = [{}, {"num_beams": 4}, {"do_sample": True}, {"num_beams": 3, "do_sample": True}]


@pytest.fixture
def model(translation_model):
    return translation_model()


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("early_stopping", [False, True])
def test_what_is_told_is_what_comes_out(model, processor, search, early_stopping):
    told = []
    inputs = processor(DOCUMENT, return_tensors="pt")
    streamer = SentenceStreamer(lambda *sentence: told.append(sentence), len(DOCUMENT), processor.target_template)
    arguments = search | ({"early_stopping": early_stopping} if "num_beams" in search else {})
    output = model.generate(**inputs, logits_processor=[streamer], **arguments)
    [sentences] = processor.split_sentences(output)
    assert told == list(enumerate(sentences))[: len(told)]
    if "num_beams" not in search:
        assert len(told) == len(DOCUMENT)


@pytest.mark.parametrize("beams", [1, 3])
def test_the_engine_reports_what_the_loop_of_transformers_reports(model, processor, beams):
    inputs = processor(DOCUMENT, return_tensors="pt")

    def told(**arguments):
        sentences = []

        def on_sentence(number, words):
            sentences.append((number, words, len(steps)))

        steps = []
        streamer = SentenceStreamer(on_sentence, len(DOCUMENT), processor.target_template)

        def count(input_ids, scores):
            steps.append(input_ids.shape)
            return scores

        model.generate(**inputs, logits_processor=[count, streamer], num_beams=beams, **arguments)
        return sentences, steps

    expected = told(return_dict_in_generate=True)
    assert told() == expected and expected[0]


def test_greedy_sentences_are_reported_as_they_end(model, processor):
    """A streamed document is not drafted in parallel."""
    passes, told = [], []
    model.model.decoder.register_forward_hook(lambda *_: passes.append(True))
    streamer = SentenceStreamer(lambda *_: told.append(len(passes)), len(DOCUMENT), processor.target_template)
    model.generate(**processor(DOCUMENT, return_tensors="pt"), logits_processor=[streamer])
    assert len(told) == len(DOCUMENT) and told == sorted({*told})


def test_beams_agree_before_the_end(model, processor):
    """Where every step leaves less in doubt than the one before, beams differ in their last words only."""
    eos = processor.eos_token_id
    lengths = []

    def surer(input_ids, scores):
        words = input_ids.shape[1] - 1 - (input_ids == processor.bos_token_id).int().argmax(dim=1)
        best = torch.where(words % 4 < 2, 9, eos)
        certain = torch.full_like(scores, -1e3 * 0.7 ** input_ids.shape[1])
        lengths.append(input_ids.shape[1])
        return certain.scatter(1, best[:, None], 0.0)

    told = []
    streamer = SentenceStreamer(
        lambda *event: told.append((lengths[-1], *event)), len(DOCUMENT), processor.target_template
    )
    output = model.generate(
        **processor(DOCUMENT, return_tensors="pt"), logits_processor=[surer, streamer], num_beams=3
    )
    assert [number for _, number, _ in told][:4] == [0, 1, 2, 3]
    assert told[0][0] < output.shape[1] / 2 and told[1][0] < told[2][0] < told[3][0]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"num_beams": 3}, {"parallel_sentences": True}, {"parallel_sentences": False}],
)
def test_documents_in_windows(model, processor, arguments):
    documents = [DOCUMENT * 3, ["it is"]]
    arguments = arguments | {"segment_tokens": 20, "max_length_b": 3}
    told = []
    translated = translate_documents(model, processor, documents, on_sentence=told.append, **arguments)
    assert translated == translate_documents(model, processor, documents, **arguments)
    expected = [sentence for document in translated for sentence in document.sentences]
    assert [(each.source, each.text) for each in told] == [(each.source, each.text) for each in expected]


def test_sentences_in_parts_come_whole(model, processor):
    model.config.max_position_embeddings = 40
    told = []
    long = ", ".join(["the cat"] * 12)
    translated = translate_documents(
        model, processor, [["it is", long, "old"]], on_sentence=told.append, max_length_b=2
    )
    assert [sentence.text for sentence in told] == translated[0].texts and len(told) == 3


@pytest.fixture
def translate(checkpoint):
    return pipeline("document-translation", model=checkpoint)


def test_the_pipeline_as_an_iterator(translate):
    document = ["", *DOCUMENT[:2], " ", DOCUMENT[2], ""]
    expected = translate(document, confidence=True)

    def listen():
        result = yield from translate.stream(document, confidence=True)
        assert result == expected

    events = list(listen())
    assert events == [
        {name: pair[name] for name in ("source_text", "translation_text")} for pair in expected["sentences"]
    ]
    text = "# the *cat*\n\nit is old\n"
    events = list(translate.stream(text, format="markdown", splitter="line"))
    assert [event["source_text"] for event in events] == ["the cat", "it is old"]


def test_terms_in_a_stream(translate):
    for event in translate.stream(["the cat", "it is"], glossary={"cat": "katze"}):
        assert ("katze" in event["translation_text"]) or "cat" not in event["source_text"]


def test_errors_are_raised_where_the_stream_is_read(translate):
    with pytest.raises(ValueError, match="parallel_sentences"):
        list(translate.stream(DOCUMENT, do_sample=True, parallel_sentences=True))
    with pytest.raises(ValueError, match="format must be one of"):
        translate.stream("the cat", format="nonsense")
    with pytest.raises(ValueError, match="takes a string, not a list"):
        translate.stream(DOCUMENT, format="markdown")


def test_closed_early_it_ends_at_its_next_sentence(translate, monkeypatch):
    """Which is in the first or the second of four segments: the model waits before that until the stream is closed."""
    closed, segments, generate = threading.Event(), [], translate.model.generate

    def generate_once_closed(**inputs):
        segments.append(inputs)
        if len(segments) > 1:
            closed.wait()
        return generate(**inputs)

    monkeypatch.setattr(translate.model, "generate", generate_once_closed)
    threads = set(threading.enumerate())
    stream = translate.stream(DOCUMENT * 3, segment_tokens=20)
    next(stream)
    [worker] = set(threading.enumerate()) - threads
    stream.close()
    closed.set()
    worker.join()
    assert len(segments) <= 2


@pytest.mark.parametrize("order", [1, -1], ids=["last", "first"])
def test_nothing_is_certain_once_a_beam_may_have_ended(order):
    """A hypothesis that ends is no longer among those that are followed, and may still be the best; whether it was the
    last or the first of them."""
    template, told = TargetTemplate(0, (0,), 2, 1, 49), []
    streamer = SentenceStreamer(lambda *sentence: told.append(sentence), 2, template)

    def see(*rows):
        streamer(torch.tensor(rows[::order]), torch.zeros(len(rows), 50))

    see([0, 5, 2, 0, 6], [0, 7, 2, 0, 6])
    assert told == []
    see([0, 5, 2, 0, 6, 7, 7], [0, 5, 2, 0, 6, 6, 2])
    assert told == [(0, [5])]
    see([0, 5, 2, 0, 6, 7, 7, 2], [0, 5, 2, 0, 6, 7, 7, 2])
    assert told == [(0, [5])]
