"""Segments are planned for the longest translations that may come, and nothing of a document is left out."""

import math
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from transformers import GenerationConfig, MBartConfig
from word_processor import WordProcessor

from modeling_gtransformer import GTransformerConfig
from modeling_gtransformer.segment_plan import PendingDocument, SegmentLimits, next_segments, take_apart


def limits_of(tokens=512, sentences=None, positions=128, embeddings="learned", **limits):
    """Limits of a model whose translations have at most 2 n + 1 words, unless the call says otherwise."""
    model = SimpleNamespace(
        config=GTransformerConfig(position_embedding_type=embeddings, max_position_embeddings=positions),
        generation_config=SimpleNamespace(max_length_a=2, max_length_b=1),
    )
    return SegmentLimits(model, WordProcessor(), tokens, sentences, limits)


def document_of(lengths, required=None):
    parts = [[9] * length for length in lengths]
    return PendingDocument(0, [""] * len(parts), parts, [None] * len(parts), required or [[] for _ in parts])


def test_positions_that_a_sentence_may_need():
    limits = limits_of()
    # Five words become eleven, with <s>, </s> and the end of the document.
    assert (limits.token_limit(5), limits.longest(5)) == (11, 14)
    # Where translations are short, the source is the longer side.
    short = limits_of(max_length_a=0, max_length_b=1)
    assert (short.token_limit(5), short.longest(5)) == (1, 7)


def test_a_segment_has_no_more_tokens_than_the_model_positions():
    assert limits_of(tokens=512, positions=128).tokens == 128
    assert limits_of(tokens=64, positions=128).tokens == 64
    sinusoidal = limits_of(tokens=512, positions=128, embeddings="sinusoidal")
    assert (sinusoidal.tokens, sinusoidal.positions) == (512, math.inf)


def test_positions_of_a_plain_translator():
    model = SimpleNamespace(config=MBartConfig(max_position_embeddings=128), generation_config=GenerationConfig())
    limits = SegmentLimits(model, WordProcessor(), 512, None, {})
    assert (limits.tokens, limits.positions, limits.document_positions) == (128, 128, 128)


def test_a_sentence_costs_its_share_of_the_positions_if_that_is_more():
    # A segment of 32 tokens leaves 4 positions for each: the translation of 14 tokens takes 3.5, the source takes 7.
    assert limits_of(tokens=32).cost(5) == 7
    # Of as many tokens as positions every one counts.
    assert limits_of(tokens=128).cost(5) == 14


def test_a_segment_has_room_for_what_translations_usually_have():
    """Ten words of the source become fifteen, with `<s>` and `</s>`."""
    limits = limits_of(tokens=512, positions=10_000)
    assert limits.cost(10) == 12
    limits.target_ratio = 1.45
    assert limits.cost(10) == 17
    limits.target_ratio = 0.5  # the source is the longer side
    assert limits.cost(10) == 12


def test_a_sentence_that_fits_stays_whole():
    required = [["x"], [], ["y", "z"]]
    document = take_apart(["a b", "c", "d e f"], 7, WordProcessor(), limits_of(), required, ["", "", ""])
    assert (document.number, document.separator, document.required) == (7, [None] * 3, required)
    assert [len(part) for part in document.parts] == [2, 1, 3]


def test_a_sentence_or_a_part_of_one_may_take_all_positions(caplog):
    """Five words may become eleven, which with their template and the end of the document take 14 positions."""
    sentences, nothing, places = ["a b c d e", "a b c d e f g h i j"], [[], []], ["first", "second"]
    document = take_apart(sentences, 0, WordProcessor(), limits_of(positions=14), nothing, places)
    assert [len(part) for part in document.parts] == [5, 5, 5]
    assert "first has" not in caplog.text and "second has 10 tokens" in caplog.text
    document = take_apart(sentences, 0, WordProcessor(), limits_of(positions=13), nothing, places)
    assert max(len(part) for part in document.parts) < 5 and "first has 5 tokens" in caplog.text


def test_a_long_sentence_in_parts_has_the_required_words_where_they_belong(caplog):
    """In the part that has them; what is in none, such as the translation of a term, in the last."""
    long = "one {x} two, three four, five six {y}"
    limits, required = limits_of(positions=10), [["w"], ["{y}", "{x}", "Tor"], []]
    document = take_apart(["a", long, "b"], 3, WordProcessor(), limits, required, ["", "news.txt:7", ""])
    assert (
        document.separator[:2] == [None, None]
        and None not in document.separator[2:-1]
        and document.separator[-1] is None
    )
    assert document.required[0] == ["w"] and document.required[-1] == []
    by_part = document.required[1:-1]
    assert by_part[0] == ["{x}"] and by_part[-1] == ["{y}", "Tor"] and not any(by_part[1:-1])
    assert [document.sentence_of(part) for part in range(len(document.parts))] == [0, *[1] * len(by_part), 2]
    assert all(limits.longest(len(part)) <= 10 for part in document.parts)
    assert "news.txt:7 has 8 tokens" in caplog.text and f"in {len(by_part)} parts" in caplog.text


def translate_at_length(segment, limits):
    """Every sentence becomes as long as it may: what is then before the end of the document."""
    new = segment.document.parts[segment.new : segment.stop]
    translations = [[8] * limits.token_limit(len(words)) for words in new]
    return [*segment.prefix, *translations], translations


@given(
    lengths=st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=12), min_size=1, max_size=3),
    tokens=st.integers(16, 80),
    sentences=st.none() | st.integers(1, 4),
    carried_sentences=st.integers(0, 4),
)
def test_any_documents_are_planned_whole_and_within_the_limits(lengths, tokens, sentences, carried_sentences):
    limits = limits_of(tokens, sentences, positions=60)
    documents = [document_of(document) for document in lengths]
    processor = WordProcessor()
    while segments := list(next_segments(documents, processor, limits, carried_sentences)):
        for segment in segments:
            parts = segment.document.parts
            assert segment.source == processor.build_source(parts[segment.start : segment.stop])
            assert segment.carried <= carried_sentences
            if segment.stop - segment.new > 1:  # more than what alone may be too long
                assert len(segment.source) < limits.tokens
                assert sentences is None or segment.stop - segment.new <= sentences
            whole, translations = translate_at_length(segment, limits)
            assert sum(map(len, whole)) + 2 * len(whole) + 1 <= limits.positions
            assert segment.new == len(segment.document.translations)
            segment.document.translations += translations
    assert all(len(document.translations) == len(document.parts) for document in documents)


def test_what_is_carried_over_takes_at_most_half_of_a_segment():
    limits = limits_of(tokens=48, positions=48)  # a sentence of five words costs 14
    document = document_of([5, 5, 5, 5, 5])
    [first] = next_segments([document], WordProcessor(), limits, carried_sentences=3)
    assert (first.start, first.new, first.stop) == (0, 0, 3)
    document.translations += [[8]] * 3
    [second] = next_segments([document], WordProcessor(), limits, carried_sentences=3)
    assert (second.start, second.new, second.stop) == (2, 3, 5)  # two would take 28 of 48
    assert second.prefix == [[8]] and second.carried == 1


def test_segments_wait_for_each_other_only_if_sentences_are_carried_over():
    documents = [document_of([5] * 7), document_of([5])]
    limits = limits_of(tokens=48, positions=48)
    apart, carried = (list(next_segments(documents, WordProcessor(), limits, number)) for number in (0, 1))
    assert [(segment.new, segment.stop) for segment in apart] == [(0, 3), (3, 6), (6, 7), (0, 1)]
    assert [(segment.new, segment.stop) for segment in carried] == [(0, 3), (0, 1)]


def test_what_is_carried_over_may_take_just_half_of_a_segment():
    limits = limits_of(tokens=56, positions=56)  # a sentence of five words costs 14
    document = document_of([5] * 6)
    document.translations += [[8]] * 3
    [segment] = next_segments([document], WordProcessor(), limits, carried_sentences=3)
    assert (segment.start, segment.new, segment.stop) == (1, 3, 4)
