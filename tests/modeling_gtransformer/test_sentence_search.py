"""The beams of a sentence in the context of its document, against a document that is continued by Transformers."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ATTENTION_KINDS, BOS, EOS, random_documents, seeded_model

from modeling_gtransformer.sentence_search import SentenceBatch


DOCUMENTS = st.lists(st.lists(st.integers(1, 5), min_size=2, max_size=5), min_size=1, max_size=3)


def sentences_of(ids):
    """The ids of every sentence, from `<s>` to `</s>`."""
    starts = [place for place, token in enumerate(ids) if token == BOS]
    return [ids[start : ids.index(EOS, start) + 1] for start in starts]


@settings(max_examples=40)
@given(
    documents=DOCUMENTS,
    kind=st.sampled_from([*ATTENTION_KINDS, {"position_scope": "sentence"}, {"global_positions": "sentence"}]),
    implementation=st.sampled_from(["sdpa", "eager"]),
    num_beams=st.integers(2, 4),
    end_bias=st.sampled_from([0.0, 3.0]),
    given_tokens=st.integers(1, 4),
)
def test_beams_of_the_last_sentence_are_those_of_a_document_that_is_continued(
    documents, kind, implementation, num_beams, end_bias, given_tokens
):
    model = seeded_model(**kind, init_std=0.25).double()  # no near ties
    model.set_attn_implementation(implementation)
    model.final_logits_bias[0, EOS] = end_bias  # without it hardly a hypothesis ends before its limit
    sources = random_documents(documents)
    arguments = {**sources, "max_length_b": 4}
    greedy = model.generate(**arguments).tolist()
    outputs = model.generate(**arguments, num_beams=num_beams, parallel_sentences=True).tolist()
    for row, (before, after) in enumerate(zip(greedy, outputs, strict=True)):
        document = {name: each[row : row + 1] for name, each in sources.items()}
        start = max(place for place, token in enumerate(before) if token == BOS)
        prompt = torch.tensor([before[: start + 1]])
        continued = model.generate(
            **document, max_length_b=4, num_beams=num_beams, decoder_input_ids=prompt, return_dict_in_generate=True
        )
        assert sentences_of(after)[-1] == sentences_of(continued.sequences[0].tolist())[-1]
        # A sentence that is begun stands in the document up to there.
        prompt = torch.tensor([before[: start + given_tokens]])
        if given_tokens < len(sentences_of(before)[-1]):
            arguments = {**document, "max_length_b": 4, "num_beams": num_beams, "decoder_input_ids": prompt}
            expected = model.generate(**arguments, return_dict_in_generate=True)
            assert model.generate(**arguments, parallel_sentences=True).equal(expected.sequences)


def test_documents_are_searched_together(tiny_model):
    """In as many steps as one of them, with the same translations."""
    model, documents = tiny_model().double(), random_documents([[3, 1], [4], [2, 2, 5]])
    settings = {"parallel_sentences": True, "max_length_b": 0, "return_dict_in_generate": True}

    def search(documents):
        greedy, beams = (model.generate(**documents, **settings, num_beams=beams) for beams in (1, 3))
        return beams.sequences.tolist(), beams.steps - greedy.steps

    together, steps = search(documents)
    alone = [search({name: each[row : row + 1] for name, each in documents.items()}) for row in range(3)]
    assert [sentences_of(ids) for ids in together] == [sentences_of(ids) for [ids], _ in alone]
    assert steps == max(each for _, each in alone) > 1


def test_finished_sentences_leave_the_batch(tiny_model, monkeypatch):
    model, kept, keep = tiny_model().double(), [], SentenceBatch.keep
    monkeypatch.setattr(
        SentenceBatch, "keep", lambda batch, rest: (kept.append((len(batch.number), len(rest))), keep(batch, rest))
    )
    arguments = {**random_documents([[1, 9, 3], [2]]), "num_beams": 3, "parallel_sentences": True, "max_length_b": 0}
    outputs = model.generate(**arguments)
    assert kept and all(after < before for before, after in kept)
    monkeypatch.setattr("modeling_gtransformer.beam_search.SHRINKS_AT", 1.1)
    kept.clear()
    assert model.generate(**arguments).equal(outputs) and not kept
