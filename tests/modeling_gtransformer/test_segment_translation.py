"""Batches of segments: every sentence has a translation, with its score and with what it must contain."""

import pytest
import torch
from accelerate import cpu_offload
from tiny import watch_generate
from transformers import LogitsProcessor

from modeling_gtransformer.document_loss import sentence_log_probabilities
from modeling_gtransformer.segment_plan import PlannedDocument, SegmentLimits
from modeling_gtransformer.segment_translation import SegmentTranslator
from modeling_gtransformer.sentence import Sentence


LIMITS = {"max_length_a": 0, "max_length_b": 6}
TERMS = {"katze": ["cat"]}


@pytest.fixture
def model(translation_model):
    return translation_model()


@pytest.fixture
def translator(model, processor):
    def make(confidence=False, **arguments):
        return SegmentTranslator(model, processor, confidence, {**LIMITS, **arguments})

    return make


@pytest.fixture
def segment(processor, model):
    """Makes a document of one segment."""
    limits = SegmentLimits(model, processor, 512, None, LIMITS)

    def make(texts, required=(), is_aligned=False, terms=TERMS):
        required = required or [[] for _ in texts]
        sentences = [
            Sentence(text, required=words, terms=terms, is_aligned=is_aligned)
            for text, words in zip(texts, required, strict=True)
        ]
        [segment] = PlannedDocument(sentences, processor, limits).segments
        return segment

    return make


@pytest.fixture
def calls(model, monkeypatch):
    return watch_generate(model, monkeypatch)


def test_translations_are_those_of_the_model(translator, segment, model, processor):
    first, second = segment(["the cat", "it is old"]), segment(["it sleeps"])
    translator().translate([first, second])
    inputs = processor(["the cat", "it is old"], return_tensors="pt")
    [expected] = processor.split_sentences(model.generate(**inputs, **LIMITS))
    assert [part.target for part in first.parts] == expected
    assert [part.text for part in first.parts] == processor.decode_sentences(expected)
    assert len(second.parts) == 1 and second.parts[0].text and second.parts[0].tokens == 0


def test_scores_of_sentences(translator, segment, model, processor):
    """Sum of the log-probabilities of tokens and `</s>`, and their number."""
    both = segment(["the cat", "it sleeps"])
    translator(confidence=True).translate([both])
    target = torch.tensor([processor.build_source([part.target for part in both.parts])])
    with torch.no_grad():
        inputs = processor(["the cat", "it sleeps"], return_tensors="pt")
        logits = model(**inputs, decoder_input_ids=target).logits[0].log_softmax(dim=-1)
    place = 0
    for part in both.parts:
        own = range(place, place + len(part.target) + 1)  # from <s>, each gives the token behind it
        expected = sum(logits[position, target[0, position + 1]].item() for position in own)
        assert (part.log_probability, part.tokens) == (pytest.approx(expected, rel=1e-4), len(part.target) + 1)
        place += len(part.target) + 2


def test_what_is_missing_takes_the_place_of_the_aligned_words(translator, segment, model, calls):
    """Without a second search. The other sentences stay, and the scores are those of the changed translation."""
    texts = ["it is old", "the cat", "it is"]
    free, bound = segment(texts), segment(texts, [[], ["katze"], []])
    fine = segment(["it sleeps"])
    translate = translator(confidence=True)
    translate.translate([free])
    translate.translate([fine, bound])
    assert len(calls) == 2
    words, changed = free.parts[1].text.split(), bound.parts[1].text.split()
    assert "katze" in changed and not bound.parts[1].missing
    assert sum(word != other for word, other in zip(words, changed, strict=True)) == 1
    assert [bound.parts[number].text for number in (0, 2)] == [free.parts[number].text for number in (0, 2)]
    again = segment(texts)
    for part, other in zip(again.parts, bound.parts, strict=True):
        part.target = other.target
    translate._score([0], [again], translate.encode([again]))
    for part, other in zip(again.parts, bound.parts, strict=True):
        assert (part.log_probability, part.tokens) == (pytest.approx(other.log_probability, rel=1e-4), other.tokens)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_encoder_reads_every_segment_once(translator, segment, model, processor, side):
    """Whatever is done with it: what is missing is put in its place, scores and aligned words. It reads no padding if
    lengths differ enough."""
    processor.tokenizer.padding_side = side
    model.config.output_hidden_states = True
    read = []
    model.model.encoder.register_forward_pre_hook(
        lambda _, args, kwargs: read.append(kwargs["attention_mask"]), with_kwargs=True
    )
    long = segment(["the cat", "it is", *["the old cat"] * 8], [["katze"], *[[]] * 9], is_aligned=True)
    batch = [long, *(segment(["it is"], is_aligned=True) for _ in range(3))]
    translator(confidence=True).translate(batch)
    assert sum(map(len, read)) == len(batch) and all(mask.all() for mask in read)
    assert all(part.alignment and part.tokens for each in batch for part in each.parts)
    alone = segment(["it is"])
    translator().translate([alone])
    assert batch[2].parts[0].text == alone.parts[0].text


@pytest.mark.parametrize(
    ("arguments", "passes"), [({}, 0), ({"num_beams": 3}, 0), ({"do_sample": True, "top_k": 1}, 2)], ids=str
)
def test_only_translations_without_a_score_are_scored_again(translator, segment, monkeypatch, arguments, passes):
    """A translation that has changed, and those of the loops of Transformers."""
    scored = []

    def score(model, sequences, *args, **inputs):
        scored.append(len(sequences))
        return sentence_log_probabilities(model, sequences, *args, **inputs)

    monkeypatch.setattr("modeling_gtransformer.segment_translation.sentence_log_probabilities", score)
    changed = segment(["the cat", "it is"], [["katze"], []])
    batch = [segment(["it sleeps"]), segment(["the old cat"])]
    translator(confidence=True, **arguments).translate([batch[0], changed, batch[1]])
    assert changed.parts[0].is_changed and scored == [passes + 1]
    for each in batch:
        [part] = each.parts
        again = segment([part.source_text])
        again.parts[0].target = part.target
        translator()._score([0], [again], translator().encode([again]))
        assert (again.parts[0].log_probability, again.parts[0].tokens) == (
            pytest.approx(part.log_probability, rel=1e-4),
            part.tokens,
        )


@pytest.mark.parametrize("confidence", [False, True])
@pytest.mark.parametrize("arguments", [{}, {"early_stopping": "never"}], ids=["engine", "Transformers"])
def test_beams_leave_the_encoder_states_to_what_follows(translator, segment, confidence, arguments):
    """Required strings, scores and aligned words; Transformers repeats states for beams in place."""
    texts, required = ["the old cat", "it is"], [["katze"], []]
    translate = translator(confidence, num_beams=3, **arguments)
    batch = [segment(["it is old"], is_aligned=True), segment(texts, required, is_aligned=True)]
    translate.translate(batch)
    alone = segment(texts, required, is_aligned=True)
    translate.translate([alone])
    for part, expected in zip(batch[1].parts, alone.parts, strict=True):
        assert (part.target, part.tokens) == (expected.target, expected.tokens) and not part.missing
        assert part.log_probability == pytest.approx(expected.log_probability, rel=1e-4)
        torch.testing.assert_close(torch.tensor(part.alignment), torch.tensor(expected.alignment))


class Watcher(LogitsProcessor):
    def __call__(self, input_ids, scores):
        return scores


def test_the_callers_own_processors_are_used(translator, segment, calls):
    watcher = Watcher()
    translate = translator(logits_processor=[watcher])
    translate.translate([segment(["the cat"])])
    translate.stream(segment(["the cat"]), lambda part: None)
    assert [call["logits_processor"][0] for call in calls] == [watcher, watcher]


def test_a_document_that_was_cut_off_is_an_error(translator, segment):
    with pytest.raises(ValueError, match="3 sentences have 1 translations: raise or omit max_new_tokens"):
        translator(max_new_tokens=4).translate([segment(["the cat", "it is", "it sleeps"])])


def test_an_offloaded_model(translator, segment, model):
    expected, found = (segment(["the cat", "it is"], [["4711"], []]) for _ in range(2))
    translator(confidence=True).translate([expected])
    cpu_offload(model, execution_device=torch.device("cpu"))
    translator(confidence=True).translate([found])
    assert [part.text for part in found.parts] == [part.text for part in expected.parts]
    scores = [part.log_probability for part in expected.parts]
    assert [part.log_probability for part in found.parts] == pytest.approx(scores, rel=1e-4)


@pytest.mark.parametrize("arguments", [{}, {"num_beams": 3}, {"parallel_sentences": True}])
def test_a_stream_reports_every_part_in_order(translator, segment, arguments):
    texts, required = ["the cat", "it sleeps", "it is old"], [["katze"], [], []]
    streamed, expected, reported = segment(texts, required), segment(texts, required), []
    translate = translator(confidence=True, **arguments)
    translate.stream(streamed, lambda part: reported.append((part, part.text)))
    translate.translate([expected])
    assert reported == [(part, part.text) for part in streamed.parts] and "katze" in reported[0][1]
    for part, other in zip(streamed.parts, expected.parts, strict=True):
        assert (part.target, part.text, part.tokens) == (other.target, other.text, other.tokens)
        assert part.log_probability == pytest.approx(other.log_probability)


def test_alternatives_are_those_of_their_segment(translator, segment, model, processor):
    first, second = segment(["the cat", "it is old"]), segment(["it sleeps"])
    arguments = {"num_beams": 3, "num_return_sequences": 3}
    translator(confidence=True, **arguments).translate([first, second])
    alone = segment(["it sleeps"])
    translator(num_beams=3).translate([alone])
    assert [part.text for part in second.parts] == [part.text for part in alone.parts]
    for texts, done in ((["the cat", "it is old"], first), (["it sleeps"], second)):
        best, *others = model.generate(**processor(texts, return_tensors="pt"), **LIMITS, **arguments)
        documents = processor.batch_decode_sentences(torch.stack([best, *others]))
        assert [part.text for part in done.parts] == documents[0]
        assert [part.alternatives for part in done.parts] == [list(each) for each in zip(*documents[1:], strict=True)]


def test_the_generation_config_of_a_model_refuses_packed_weights(translator, model, monkeypatch):
    monkeypatch.setattr("modeling_gtransformer.packed_weights.MIN_SIZE", 0)
    for setting, arguments, packs in ((None, {}, True), (False, {}, False), (False, {"pack_weights": True}, True)):
        model.generation_config.pack_weights = setting
        with translator(**arguments).packed_weights():
            assert ("forward" in vars(model.lm_head)) is packs
