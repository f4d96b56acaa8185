"""Sentences that are decoded as a batch against the same sentences alone, and in their document."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import BOS, END_OF_DOCUMENT, EOS, PAD, random_documents, seeded_model

from modeling_gtransformer import GTransformerConfig, independent_sentences
from modeling_gtransformer.independent_sentences import sentence_places


INDEPENDENT = {"decoder_global_layers": 0, "cross_global_layers": 0, "position_scope": "sentence"}


def sentences_of(row):
    """The ids of every sentence of a generated document."""
    ids = [token for token in row.tolist() if token not in (PAD, END_OF_DOCUMENT)]
    starts = [place for place, token in enumerate(ids) if token == BOS]
    return [ids[start:stop] for start, stop in zip(starts, [*starts[1:], None], strict=True)]


@settings(max_examples=30)
@given(
    documents=st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=5), min_size=1, max_size=3),
    encoder_global_layers=st.sampled_from([0, 2]),
    num_beams=st.integers(1, 4),
    end_bias=st.sampled_from([0.0, 3.0]),
)
def test_each_is_translated_as_if_it_were_alone(documents, encoder_global_layers, num_beams, end_bias):
    model = seeded_model(**INDEPENDENT, encoder_global_layers=encoder_global_layers, init_std=0.25).double()
    model.final_logits_bias[0, EOS] = end_bias
    inputs = random_documents(documents)
    arguments = {"num_beams": num_beams, "max_length_b": 4}
    outputs = model.generate(**inputs, **arguments)
    assert [len(sentences_of(row)) for row in outputs] == [len(document) for document in documents]
    if num_beams == 1:
        assert outputs.equal(model.generate(**inputs, **arguments, parallel_sentences=False))
    if encoder_global_layers == 0:
        for row, ids in zip(outputs, inputs["input_ids"], strict=True):
            for translation, source in zip(sentences_of(row), sentences_of(ids), strict=True):
                [alone] = model.generate(torch.tensor([source]), **arguments)
                assert translation == alone.tolist()[:-1] and alone[-1] == END_OF_DOCUMENT


def test_small_batches_of_sentences_are_joined(tiny_model, monkeypatch):
    model, inputs = tiny_model(**INDEPENDENT).double(), random_documents([[2, 5, 1], [3]])
    expected = model.generate(**inputs, num_beams=2)
    monkeypatch.setattr(independent_sentences, "STEP_LOGITS", 1)
    assert model.generate(**inputs, num_beams=2).equal(expected)


@pytest.mark.parametrize(
    "changed", [{"decoder_global_layers": 1}, {"cross_global_layers": 1}, {"position_scope": "document"}]
)
def test_what_sees_other_sentences_is_not_independent(changed):
    sizes = {"encoder_layers": 2, "decoder_layers": 2}
    assert GTransformerConfig(**sizes, **INDEPENDENT).independent_sentences
    assert not GTransformerConfig(**sizes, **INDEPENDENT | changed).independent_sentences


def test_what_needs_the_document_is_decoded_as_one(tiny_model, monkeypatch):
    """A prompt, or a limit of the document's length."""
    monkeypatch.setattr("modeling_gtransformer.generation_gtransformer.decode_independently", None)
    model, inputs = tiny_model(**INDEPENDENT), random_documents([[2, 3]])
    with pytest.raises(TypeError):
        model.generate(**inputs)
    for asked in ({"decoder_input_ids": torch.tensor([[BOS, 5]])}, {"max_length": 12}, {"parallel_sentences": False}):
        assert len(sentences_of(model.generate(**inputs, **asked)[0])) == 2


def test_places_of_sentences():
    rows, places = sentence_places(torch.tensor([[0, 1, 1, 2, 0], [1, 2, 2, 2, 3]]))
    assert rows.tolist() == [0, 0, 1, 1, 1]
    assert places.tolist() == [[1, 2, -1], [3, -1, -1], [5, -1, -1], [6, 7, 8], [9, -1, -1]]
