"""The beams of a sentence in the context of its document, against a document that is continued by Transformers; what
sentences see of each other."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ATTENTION_KINDS, BOS, END_OF_DOCUMENT, EOS, PAD, random_documents, seeded_model

from modeling_gtransformer.framed_decoder import FramedDecoder, Sources
from modeling_gtransformer.parallel_generation import ParallelDecoder
from modeling_gtransformer.sentence_batch import OpenSentence, SentenceBatch
from modeling_gtransformer.sentence_template import SENTENCE_TEMPLATES
from modeling_gtransformer.target_sentences import GroupTagLogitsProcessor


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


IDS = {"bos": BOS, "eos": EOS, "pad": PAD, "tgt_lang": END_OF_DOCUMENT}
TEMPLATE = SENTENCE_TEMPLATES["paper"].in_ids(IDS.__getitem__)


@pytest.fixture
def decode(tiny_model, monkeypatch):
    """Decodes both sentences of the document `<s> 5 </s> <s> 6`, and the only one of another from its `<s>`, for two
    steps, before the second of which so many are still alive; gives the masks of the steps."""

    def run(alive, **settings):
        model, calls, states = tiny_model(), [], FramedDecoder.states
        tags = torch.tensor([[1, 1, 2, 2, 0], [1, 1, 1, 1, 0]])
        limits = torch.tensor([[8, 8], [8, 0]])
        template = GroupTagLogitsProcessor(limits, min_length=1, max_length=40, template=TEMPLATE)
        sources = Sources(torch.randn(2, 5, model.config.d_model), (tags > 0).long(), tags)
        decoder = FramedDecoder(model, template, torch.tensor([], dtype=torch.long), sources)
        cache, _ = ParallelDecoder(decoder).check([[BOS, 5, EOS, BOS, 6], [BOS]], [0, 1], [5, 1])
        sentences = [(0, OpenSentence(1, 0, [BOS, 5], 1)), (0, OpenSentence(2, 3, [BOS, 6, 7], 5))]
        sentences.append((1, OpenSentence(1, 0, [BOS], 0)))
        batch = SentenceBatch(decoder, cache, [0, 1], sentences, **settings)

        def record(decoder, sources, ids, mask, *arguments, **keywords):
            calls.append((mask, arguments[0][:, 0].tolist(), keywords))
            return states(decoder, sources, ids, mask, *arguments, **keywords)

        monkeypatch.setattr(FramedDecoder, "states", record)
        with torch.no_grad():
            for each in (torch.tensor([True] * 3), torch.tensor(alive)):
                batch.step(batch.tokens, alive=each)
        return calls

    return run


def places(mask):
    return [row.nonzero()[:, 0].tolist() for row in mask]


def test_sentences_see_their_document_as_it_stands_and_what_they_write(decode):
    first, second = (masks for masks, _, _ in decode([True] * 3))
    assert places(first["group"][:, 0, 0]) == [[0, 1], [0, 1, 2], [0]]
    assert places(second["group"][:, 0, 0]) == [[0, 1, 2], [0, 1, 2, 3], [0, 1]]
    for step in (first, second):
        assert places(step["global"].document) == [[], [0, 1, 2], []]
        assert places(step["global"].own) == places(step["group"][:, 0, 0])


def test_drafts_see_what_living_sentences_before_them_write(decode):
    """Behind five places of the documents stands what both sentences of the first write, in turn."""
    first, second = (masks["global"] for masks, _, _ in decode([True] * 3, drafting=True))
    assert places(first.document) == [[0, 5], [0, 1, 2, 3, 4, 5, 6], [5]]
    assert places(second.document) == [[0, 5, 7], [0, 1, 2, 3, 4, 5, 6, 7, 8], [5, 7]]
    _, second = (masks["global"] for masks, _, _ in decode([False, True, True], drafting=True))
    assert places(second.document) == [[0, 5, 7], [0, 1, 2, 3, 4, 5, 6, 8], [5, 7]]


def test_positions_tags_and_sources_are_those_of_each_sentence(decode):
    (_, first, arguments), (_, second, _) = decode([True] * 3)
    assert (first, second) == ([1, 5, 0], [2, 6, 1])
    assert arguments["decoder_group_tags"].tolist() == [[1], [2], [1]]
    assert places(arguments["source_mask"]["group"][:, 0, 0]) == [[0, 1], [0, 1], [0, 1, 2, 3]]
    assert places(arguments["source_mask"]["global"].document) == [[0, 1, 2, 3]] * 3


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


@pytest.mark.parametrize("num_beams", [1, 3])
def test_finished_sentences_leave_the_batch(tiny_model, monkeypatch, num_beams):
    model, kept, keep = tiny_model().double(), [], SentenceBatch.keep
    monkeypatch.setattr(
        SentenceBatch, "keep", lambda batch, rest: (kept.append((len(batch.number), len(rest))), keep(batch, rest))
    )
    arguments = {
        **random_documents([[1, 9, 3], [2]]),
        "num_beams": num_beams,
        "parallel_sentences": True,
        "max_length_b": 0,
    }
    outputs = model.generate(**arguments)
    assert kept and all(after < before for before, after in kept)
    for module in ("beam_search", "parallel_generation"):
        monkeypatch.setattr(f"modeling_gtransformer.{module}.SHRINKS_AT", 1.1)
    kept.clear()
    assert model.generate(**arguments).equal(outputs) and not kept
