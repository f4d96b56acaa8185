"""Batches of segments: every sentence has a translation, with its score and with what it must contain."""

import pytest
import torch
from transformers import LogitsProcessor

from modeling_gtransformer.segment_plan import PendingDocument, Segment, SegmentLimits
from modeling_gtransformer.segment_translation import SegmentTranslator
from modeling_gtransformer.terminology import RequiredWordsLogitsProcessor


LIMITS = {"max_length_a": 0, "max_length_b": 6}


@pytest.fixture
def model(translation_model):
    return translation_model()


@pytest.fixture
def translator(model, processor):
    def make(confidence=False, **arguments):
        arguments = {**LIMITS, **arguments}
        limits = SegmentLimits(model, processor, 512, None, arguments)
        return SegmentTranslator(model, processor, limits, confidence, arguments)

    return make


@pytest.fixture
def segment(processor):
    """Makes a segment of a document of which the first sentences are translated."""

    def make(sentences, translated=(), required=None, start=0):
        document = PendingDocument(
            number=4,
            places=[f"Place {number}" for number, _ in enumerate(sentences)],
            parts=processor.encode_sentences(sentences),
            separator=[None] * len(sentences),
        )
        document.required = required or [[] for _ in sentences]
        document.translations = processor.encode_sentences(list(translated)) if translated else []
        source = processor.build_source(document.parts[start:])
        return Segment(document, start, len(document.translations), len(sentences), source)

    return make


@pytest.fixture
def calls(model, monkeypatch):
    """The arguments of every call of `generate`."""
    made = []
    generate = model.generate
    monkeypatch.setattr(model, "generate", lambda **arguments: made.append(arguments) or generate(**arguments))
    return made


def test_translations_are_those_of_the_model(translator, segment, model, processor):
    first, second = segment(["the cat", "it is old"]), segment(["it sleeps"])
    [(words, scores), (other, _)] = translator().translate([first, second])
    inputs = processor(["the cat", "it is old"], return_tensors="pt")
    [expected] = processor.split_sentences(model.generate(**inputs, **LIMITS))
    assert words == expected and len(other) == 1 and scores == []


def test_carried_sentences_are_given_and_not_translated_again(translator, segment, calls, processor):
    """Prefixes of unequal lengths, one of them empty, are padded on the left."""
    carried = segment(["it is", "the cat", "it sleeps"], ["sie ist", "die katze"], start=1)
    fresh = segment(["it is old"])
    (words, _), (others, _) = translator().translate([carried, fresh])
    assert len(words) == 1 == len(others)
    prompt = calls[0]["decoder_input_ids"]
    katze = processor.build_source(processor.encode_sentences(["die katze"]))
    pad, bos = processor.pad_token_id, processor.bos_token_id
    assert prompt.tolist() == [katze, [pad] * (len(katze) - 1) + [bos]]
    assert calls[0]["decoder_attention_mask"].tolist() == [[1] * len(katze), [0] * (len(katze) - 1) + [1]]
    alone = translator()
    assert [alone.translate([each])[0][0] for each in (carried, fresh)] == [words, others]
    assert "decoder_attention_mask" not in calls[1] and "decoder_input_ids" not in calls[2]


def test_scores_of_new_sentences(translator, segment, model, processor):
    """Sum of the log-probabilities of words and `</s>`, and their number; what is carried over has none."""
    carried = segment(["it is", "the cat", "it sleeps"], ["sie ist"])
    [(words, scores)] = translator(confidence=True).translate([carried])
    inputs = processor(["it is", "the cat", "it sleeps"], return_tensors="pt")
    target = torch.tensor([processor.build_source([*carried.prefix, *words])])
    with torch.no_grad():
        logits = model(**inputs, decoder_input_ids=target).logits[0].log_softmax(dim=-1)
    place = len(processor.build_source(carried.prefix))
    for sentence, (total, number) in zip(words, scores, strict=True):
        own = range(place, place + len(sentence) + 1)  # from <s>, each gives the token behind it
        expected = sum(logits[position, target[0, position + 1]].item() for position in own)
        assert (total, number) == (pytest.approx(expected, rel=1e-4), len(sentence) + 1)
        place += len(sentence) + 2


def test_only_segments_that_lack_something_are_translated_again(translator, segment, calls, processor):
    fine, lacking = segment(["it is"]), segment(["the cat", "it is"], required=[["katze"], []])
    results = translator(parallel_sentences=True).translate([fine, lacking])
    assert [len(call["input_ids"]) for call in calls] == [2, 1]
    assert "katze" in processor.decode_sentences(results[1][0])[0]
    # The constraint looks at all that was written before, so it goes token by token.
    assert [call.get("parallel_sentences") for call in calls] == [True, False]


class Watcher(LogitsProcessor):
    def __call__(self, input_ids, scores):
        return scores


def test_the_callers_own_processors_come_first(translator, segment, calls):
    watcher = Watcher()
    translator(logits_processor=[watcher]).translate([segment(["the cat"], required=[["katze"]])])
    assert calls[0]["logits_processor"] == [watcher]
    own, constraint = calls[1]["logits_processor"]
    assert own is watcher and isinstance(constraint, RequiredWordsLogitsProcessor)


def test_a_sentence_that_got_lost_is_an_error(translator, segment, model, monkeypatch, processor):
    """It never should; if it did, all that follows would stand beside the wrong source."""
    short = torch.tensor([processor.build_source(processor.encode_sentences(["die katze"]))])
    monkeypatch.setattr(model, "generate", lambda **arguments: short)
    with pytest.raises(RuntimeError, match="2 sentences have 1 translations"):
        translator().translate([segment(["the cat", "it is"])])


@pytest.mark.parametrize(
    "arguments, early",
    [({}, 3), ({"num_beams": 3}, None), ({"parallel_sentences": True}, 0)],
    ids=["greedy", "beams", "parallel"],
)
def test_a_stream_tells_of_every_part_and_ends_with_all(translator, segment, arguments, early):
    carried = segment(["it is", "the cat", "it sleeps", "it is old"], ["sie ist"])
    told = []
    words, scores = translator(confidence=True, **arguments).stream(carried, lambda *part: told.append(part))
    [(expected, expected_scores)] = translator(confidence=True, **arguments).translate([carried])
    assert (words, scores) == (expected, expected_scores)
    # By their number in the document, in order; in the end once more.
    assert told[-3:] == list(enumerate(expected, 1))
    assert told[:-3] == list(enumerate(expected, 1))[: len(told) - 3]
    assert early in (None, len(told) - 3)


def test_the_generation_config_of_a_model_refuses_packed_weights(translator, model):
    for setting, arguments, packs in ((None, {}, True), (False, {}, False), (False, {"pack_weights": True}, True)):
        model.generation_config.pack_weights = setting
        with translator(**arguments).packed_weights():
            assert ("forward" in vars(model.lm_head)) is packs
