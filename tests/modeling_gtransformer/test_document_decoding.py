"""The loop that decodes documents against that of Transformers, which a returned dictionary asks for."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ATTENTION_KINDS, END_OF_DOCUMENT, EOS, random_documents, seeded_model

from modeling_gtransformer.document_decoding import DocumentBatch
from modeling_gtransformer.framed_decoder import FramedDecoder
from modeling_gtransformer.sentence_batch import SentenceBatch


DOCUMENTS = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=5), min_size=1, max_size=4)


def of_transformers(model, **arguments):
    return model.generate(**arguments, return_dict_in_generate=True).sequences


@settings(max_examples=60)
@given(
    documents=DOCUMENTS,
    kind=st.sampled_from(ATTENTION_KINDS),
    implementation=st.sampled_from(["sdpa", "eager"]),
    num_beams=st.integers(1, 8),
    length_penalty=st.sampled_from([0.0, 1.0, 2.0]),
    early_stopping=st.booleans(),
    end_bias=st.sampled_from([0.0, 3.0]),
    room=st.integers(0, 20),
    prefix_length=st.integers(1, 12),
)
def test_documents_are_those_of_transformers(
    documents, kind, implementation, num_beams, length_penalty, early_stopping, end_bias, room, prefix_length
):
    model = seeded_model(**kind, init_std=0.25).double()  # no near ties
    model.set_attn_implementation(implementation)
    model.final_logits_bias[0, EOS] = end_bias  # without it hardly a hypothesis ends before its limit
    arguments = {**random_documents(documents), "num_beams": num_beams, "max_length_b": 4, "parallel_sentences": False}
    if num_beams > 1:
        arguments |= {"length_penalty": length_penalty, "early_stopping": early_stopping}
    if room > 10:
        arguments["max_length"] = 3 * max(map(len, documents)) + room
    expected = of_transformers(model, **arguments)
    assert model.generate(**arguments).equal(expected)
    prefix = expected[:, :prefix_length]
    if not (prefix == END_OF_DOCUMENT).any() and prefix.shape[1] < expected.shape[1] and room <= 10:
        arguments["decoder_input_ids"] = prefix
        assert model.generate(**arguments).equal(of_transformers(model, **arguments))


def test_suppressed_tokens(tiny_model):
    model = tiny_model().double()
    arguments = {**random_documents([[2, 3]]), "suppress_tokens": [*range(5, 49)], "max_length_b": 2}
    for num_beams in (1, 4):
        outputs = model.generate(**arguments, num_beams=num_beams)
        assert outputs.equal(of_transformers(model, **arguments, num_beams=num_beams)) and outputs[0, 1] == 4


@pytest.mark.parametrize("num_beams", [1, 3])
def test_finished_documents_leave_the_batch(tiny_model, monkeypatch, num_beams):
    rows, states = [], FramedDecoder.states

    def count(decoder, sources, *arguments, **others):
        rows.append(len(sources.states))
        return states(decoder, sources, *arguments, **others)

    monkeypatch.setattr(FramedDecoder, "states", count)
    model = tiny_model().double()
    arguments = {
        **random_documents([[3], [3, 3], [3] * 6]),
        "max_length_a": 1.0,
        "max_length_b": 0,
        "parallel_sentences": False,
    }
    outputs = model.generate(**arguments, num_beams=num_beams)
    assert [*dict.fromkeys(rows)] == [3 * num_beams, 2 * num_beams, num_beams]
    assert outputs.equal(of_transformers(model, **arguments, num_beams=num_beams))


@pytest.mark.parametrize(
    "asked",
    [
        {"do_sample": True},
        {"num_beams": 2, "num_return_sequences": 2},
        {"repetition_penalty": 2.0},
        {"exponential_decay_length_penalty": (2, 1.5)},
        {"return_dict_in_generate": True},
        {"max_time": 10.0},
        {"use_cache": False},
        {"stopping_criteria": [lambda ids, scores: torch.zeros(len(ids), dtype=torch.bool)]},
        {"logits_processor": [lambda ids, scores: scores]},
        {"max_new_tokens": 3},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_what_the_loop_does_not_know_is_left_to_transformers(tiny_model, documents, monkeypatch, asked):
    model = tiny_model()
    for batch in (DocumentBatch, SentenceBatch):
        monkeypatch.setattr(batch, "__init__", None)
    for parallel_sentences in (None, False):
        with pytest.raises(TypeError):
            model.generate(**documents, parallel_sentences=parallel_sentences)
    assert model.generate(**documents, **asked) is not None


@pytest.mark.parametrize("parallel_sentences", [None, False, True])
def test_prompts_in_frames_where_the_end_of_a_sentence_opens_the_next(parallel_sentences):
    """The prompt may lack what opens a sentence, which takes room; or a document may be complete from the start."""
    model = seeded_model(sentence_template="bart", init_std=0.5).double()
    model.generation_config.eos_token_id = EOS
    source = torch.tensor([[0, 5, 6, 7, 8, 2, 0, 5, 6, 7, 2, 0, 5, 2, 0, 5, 9, 2], [0, 9, 9, 9, 9, 9, 2] + [1] * 11])
    arguments = {"max_length": 20, "min_length": 3, "decoder_input_ids": torch.tensor([[2]] * 2)}
    expected = of_transformers(model, inputs=source, **arguments, parallel_sentences=False)
    assert model.generate(source, **arguments, parallel_sentences=parallel_sentences).equal(expected)
    source = torch.tensor([[0, 5, 2, 1, 1, 1, 1], [0, 5, 6, 2, 0, 7, 2]])
    arguments = {"decoder_input_ids": torch.tensor([[2, 0, 7, 2]] * 2), "max_length_b": 3}
    expected = of_transformers(model, inputs=source, **arguments, parallel_sentences=False)
    assert model.generate(source, **arguments, parallel_sentences=parallel_sentences).equal(expected)
