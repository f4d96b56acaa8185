"""Segments are planned for the longest translations that may come, and nothing of a document is left out."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import GenerationConfig, MBartConfig
from word_processor import WordProcessor

from modeling_gtransformer import GTransformerConfig
from modeling_gtransformer.segment_plan import PlannedDocument, SegmentLimits
from modeling_gtransformer.sentence import Sentence


def limits_of(tokens=512, sentences=None, positions=128, embeddings="learned", **limits):
    """Limits of a model whose translations have at most 2 n + 1 tokens, unless the call says otherwise."""
    model = SimpleNamespace(
        config=GTransformerConfig(position_embedding_type=embeddings, max_position_embeddings=positions),
        generation_config=SimpleNamespace(max_length_a=2, max_length_b=1),
    )
    return SegmentLimits(model, WordProcessor(), tokens, sentences, limits)


def plan(texts, limits, required=None, places=None, terms=None):
    required, places = required or [()] * len(texts), places or [""] * len(texts)
    sentences = [
        Sentence(text, place, bool(text.strip()), words, terms or {})
        for text, place, words in zip(texts, places, required, strict=True)
    ]
    return PlannedDocument(sentences, WordProcessor(), limits)


def lengths_of(document):
    return [[len(part.ids) for part in segment.parts] for segment in document.segments]


def test_positions_that_a_sentence_may_need():
    limits = limits_of()
    # Five tokens become eleven, with <s>, </s> and the end of the document.
    assert (limits.token_limit(5), limits.max_length(5)) == (11, 14)
    # Where translations are short, the source is the longer side.
    short = limits_of(max_length_a=0, max_length_b=1)
    assert (short.token_limit(5), short.max_length(5)) == (1, 7)


def test_a_segment_has_no_more_tokens_than_the_model_positions():
    assert limits_of(tokens=512, positions=128).tokens == 128
    assert limits_of(tokens=64, positions=128).tokens == 64
    sinusoidal = limits_of(tokens=512, positions=128, embeddings="sinusoidal")
    assert (sinusoidal.tokens, sinusoidal.positions, sinusoidal.document_positions) == (512, 512, math.inf)


@pytest.mark.parametrize("embeddings", ["learned", "sinusoidal"])
def test_a_sentence_is_bounded_also_where_positions_are_not(embeddings):
    """A list item of 12,000 characters would take thousands of steps, one after the other."""
    limits = limits_of(tokens=4096, positions=4096, embeddings=embeddings)
    document = plan(["a " * 6000, "b"], limits, places=["first", "second"])
    lengths = [length for segment in lengths_of(document) for length in segment]
    assert sum(lengths) == 6001 and max(map(limits.max_length, lengths)) <= 512
    assert (
        "because it or its translation may exceed the 512 positions of a sentence"
        in document.translated(0).warnings[0]
    )


def test_positions_of_another_model():
    model = SimpleNamespace(config=MBartConfig(max_position_embeddings=128), generation_config=GenerationConfig())
    limits = SegmentLimits(model, WordProcessor(), 512, None, {})
    assert (limits.tokens, limits.positions, limits.document_positions) == (128, 128, 128)


@pytest.mark.parametrize(
    ("settings", "ratio", "tokens", "cost"),
    [
        # A segment of 32 tokens leaves 4 positions for each: the translation of 14 takes 3.5, the source takes 7.
        ({"tokens": 32}, 1.0, 5, 7),
        # Of as many tokens as positions every one counts.
        ({"tokens": 128}, 1.0, 5, 14),
        # The longer side counts, with <s> and </s>.
        ({"positions": 10_000}, 1.0, 10, 12),
        ({"positions": 10_000}, 1.45, 10, 17),
        ({"positions": 10_000}, 0.5, 10, 12),
    ],
)
def test_cost_of_a_sentence(settings, ratio, tokens, cost):
    limits = limits_of(**settings)
    limits.target_ratio = ratio
    assert limits.cost(tokens) == cost


def test_sentences_that_fit_stay_whole_and_copied_ones_have_no_part():
    document = plan(["a b", " ", "d e f"], limits_of(), [["x"], [], ["y", "z"]])
    assert lengths_of(document) == [[2, 3]]
    assert [[part.required for part in parts] for parts in document.parts] == [[["x"]], [], [["y", "z"]]]
    assert document.translated(1).text == "" and document.translated(1).source.text == " "


def test_a_sentence_or_a_part_of_one_may_take_all_positions():
    """Five tokens may become eleven, which with their template and the end of the document take 14 positions."""
    texts, places = ["a b c d e", "a b c d e f g h i j"], ["first", "second"]
    document = plan(texts, limits_of(positions=14), places=places)
    assert lengths_of(document) == [[5], [5], [5]]
    assert [document.translated(number).warnings for number in (0, 1)] == [
        [],
        [
            "second has 10 tokens. It was translated in 2 parts, because it or its translation may exceed the 14 "
            "positions of a sentence."
        ],
    ]
    document = plan(texts, limits_of(positions=13), places=places)
    assert all(length < 5 for lengths in lengths_of(document) for length in lengths)
    assert document.translated(0).warnings[0].startswith("first has 5 tokens")


def test_a_long_sentence_in_parts_has_the_required_words_where_they_belong():
    """In the part that has them or, for a term, its source; what is in none, in the last."""
    long = "one {x} two, three four, five six {x}"
    limits, required = limits_of(positions=10), [["w"], ["{x}", "{x}", "Tor", "Eins", "Eins"], []]
    first, parts, last = plan(["a", long, "b"], limits, required, terms={"Eins": ["One", "Six"]}).parts
    assert [[part.required for part in each] for each in (first, last)] == [[["w"]], [[]]]
    assert [part.required for part in parts] == [
        ["{x}", "Eins"],
        *[[]] * (len(parts) - 2),
        ["{x}", "Tor", "Eins"],
    ]
    assert parts[0].separator is None and None not in [part.separator for part in parts[1:]]
    assert all(limits.max_length(len(part.ids)) <= 10 for part in parts)


def test_a_sentence_joins_what_its_parts_have():
    document = plan(["one two three, four five six"], limits_of(positions=10))
    for number, part in enumerate(document.parts[0]):
        part.text, part.alternatives = str(number), [f"{number}a", f"{number}b"]
        part.target, part.alignment = [number], [[1.0]]
        part.log_probability, part.tokens = -3.0, 1 + 2 * number
    sentence = document.translated(0, confidence=True)
    assert (sentence.text, sentence.ids, sentence.alternatives) == ("0 1", [0, 1], ["0a 1a", "0b 1b"])
    # An alignment of parts would not be one of its words.
    assert (sentence.confidence, sentence.alignment) == (-1.5, None)
    assert document.finished(True, -0.5).typical_confidence == -0.5


@given(
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=12),
    tokens=st.integers(16, 80),
    sentences=st.none() | st.integers(1, 4),
)
def test_any_document_is_planned_whole_and_within_the_limits(lengths, tokens, sentences):
    limits = limits_of(tokens, sentences, positions=60)
    document = plan([" ".join("a" * length) for length in lengths], limits)
    parts = [part for segment in document.segments for part in segment.parts]
    assert [len(part.ids) for part in parts] == [length for length in lengths if length]
    for segment in document.segments:
        assert segment.source == WordProcessor().build_source([part.ids for part in segment.parts])
        if len(segment.parts) > 1:  # more than what alone may be too long
            assert len(segment.source) < limits.tokens and (sentences is None or segment.sentences <= sentences)
        # If every sentence becomes as long as it may, there is still a position for the end of the document.
        longest = sum(limits.token_limit(len(part.ids)) + 2 for part in segment.parts)
        assert longest + 1 <= limits.positions
