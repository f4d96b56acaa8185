"""The beam search of single sentences against that of Transformers."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ATTENTION_KINDS, EOS, PAD, random_documents, seeded_model

from modeling_gtransformer import ParallelDocumentsOutput


@settings(max_examples=20)
@given(
    words=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    kind=st.sampled_from(ATTENTION_KINDS),
    num_beams=st.integers(2, 4),
    length_penalty=st.sampled_from([0.0, 1.0, 2.0]),
    early_stopping=st.booleans(),
    prefix_length=st.integers(1, 3),
    end_bias=st.sampled_from([0.0, 3.0]),
)
def test_beams_of_one_sentence_are_those_of_the_document(
    words, kind, num_beams, length_penalty, early_stopping, prefix_length, end_bias
):
    model = seeded_model(**kind, init_std=0.25)
    model.final_logits_bias[0, EOS] = end_bias  # without it hardly a hypothesis ends before its limit
    arguments = {"num_beams": num_beams, "length_penalty": length_penalty, "early_stopping": early_stopping}
    arguments |= random_documents([[length] for length in words])
    arguments |= {"max_length_b": 4, "decoder_input_ids": torch.tensor([[0, 5, 6][:prefix_length]] * len(words))}
    outputs = model.generate(**arguments, parallel_sentences=True, return_dict_in_generate=True)
    assert isinstance(outputs, ParallelDocumentsOutput)
    assert outputs.sequences.equal(model.generate(**arguments))


def test_fewer_hypotheses_than_beams(tiny_model):
    arguments = {"num_beams": 5, "length_penalty": 2.0, "max_length_b": 0, "suppress_tokens": [*range(5, 49)]}
    arguments |= {**random_documents([[2]]), "decoder_input_ids": torch.tensor([[0, 5]])}
    model = tiny_model()
    assert model.generate(**arguments, parallel_sentences=True).equal(model.generate(**arguments))


def test_length_penalty_decides_between_short_and_long():
    model = seeded_model(init_std=0.25)
    model.final_logits_bias[0, EOS] = 3.0
    torch.manual_seed(0)
    arguments = {**random_documents([[3], [5], [2]]), "num_beams": 3, "max_length_b": 4}
    arguments["decoder_input_ids"] = torch.tensor([[0, 5]] * 3)
    lengths = []
    for length_penalty in (0.0, 1.0, 3.0):
        outputs = model.generate(**arguments, length_penalty=length_penalty, parallel_sentences=True)
        assert outputs.equal(model.generate(**arguments, length_penalty=length_penalty))
        lengths.append(outputs.ne(PAD).sum().item())
    assert lengths[0] < lengths[1] < lengths[2]
