"""Sentences decoded in parallel against the same document decoded token by token."""

import math
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ATTENTION_KINDS, END_OF_DOCUMENT, random_documents, seeded_model
from transformers import LogitsProcessorList, SuppressTokensLogitsProcessor

from modeling_gtransformer.parallel_generation import ParallelDecoder
from modeling_gtransformer.sentence_batch import OpenSentence


DOCUMENTS = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=6), min_size=1, max_size=3)


@settings(max_examples=30)
@given(
    documents=DOCUMENTS,
    kind=st.sampled_from([*ATTENTION_KINDS, {"position_embedding_type": "sinusoidal", "max_position_embeddings": 8}]),
    init_std=st.sampled_from([0.1, 0.25, 0.5]),
    implementation=st.sampled_from(["sdpa", "eager"]),
    max_length=st.sampled_from([None, 20, 40, 60]),
    prefix_length=st.integers(1, 12),
    patience=st.sampled_from([0.0, 0.25, math.inf]),
    most_to_repair=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 99),
)
def test_greedy_documents_are_those_of_sequential_decoding(
    documents, kind, init_std, implementation, max_length, prefix_length, patience, most_to_repair, seed
):
    model = seeded_model(**kind, init_std=init_std)
    model.set_attn_implementation(implementation)
    torch.manual_seed(seed)
    arguments = {**random_documents(documents), "max_length_b": 4, "max_length": max_length}
    expected = model.generate(**arguments, parallel_sentences=False)
    outputs = model.generate(**arguments, parallel_sentences=True, return_dict_in_generate=True)
    assert outputs.sequences.equal(expected)
    with (
        mock.patch("modeling_gtransformer.generation_gtransformer.PARALLEL_SENTENCES", 0),
        mock.patch("modeling_gtransformer.parallel_generation.PATIENCE", patience),
        mock.patch("modeling_gtransformer.parallel_generation.MAX_TO_REPAIR", most_to_repair),
    ):
        assert model.generate(**arguments).equal(expected)
    # Every round makes a token final, at least.
    assert all(1 <= rounds < outputs.sequences.shape[1] for rounds in outputs.rounds.tolist())
    prefix = expected[:, :prefix_length]
    if not (prefix == END_OF_DOCUMENT).any() and prefix.shape[1] < expected.shape[1]:
        arguments["decoder_input_ids"] = prefix
        assert model.generate(**arguments, parallel_sentences=True).equal(
            model.generate(**arguments, parallel_sentences=False)
        )


def test_the_bias_of_the_logits_counts(tiny_model):
    model, documents = tiny_model(), random_documents([[3, 1], [5]])
    unbiased = model.generate(**documents, parallel_sentences=False)
    torch.nn.init.normal_(model.final_logits_bias, std=5.0)
    outputs = model.generate(**documents, parallel_sentences=True)
    assert outputs.equal(model.generate(**documents, parallel_sentences=False)) and not outputs.equal(unbiased)


def test_source_without_mask_encoded_or_embedded(tiny_model):
    model, documents = tiny_model(), random_documents([[3, 1], [5]])
    embedded = {"inputs_embeds": model.get_input_embeddings()(documents["input_ids"])}
    tags = model.get_encoder()(**documents)
    for source in (
        {"input_ids": documents["input_ids"]},
        {"encoder_outputs": tags, "attention_mask": documents["attention_mask"]},
        {**embedded, "attention_mask": documents["attention_mask"], "group_tags": tags.group_tags},
    ):
        assert model.generate(**source, parallel_sentences=True).equal(
            model.generate(**source, parallel_sentences=False)
        )


def test_beams_keep_the_alignment_and_find_likelier_sentences(tiny_model):
    model, documents = tiny_model(), random_documents([[3, 1, 4, 2], [5, 2]])
    greedy, beams = (model.generate(**documents, parallel_sentences=True, num_beams=number) for number in (1, 4))
    assert not greedy.equal(beams)
    assert (beams == 0).sum(dim=1).tolist() == [4, 2] and (beams == END_OF_DOCUMENT).sum(dim=1).tolist() == [1, 1]
    # Only the first sentence has the same context in both, none: its beam search must not lose to the greedy one.
    probabilities = []
    for sequences in (greedy, beams):
        with torch.no_grad():
            logits = model(**documents, decoder_input_ids=sequences).logits.log_softmax(dim=-1)
        scores = logits[:, :-1].gather(2, sequences[:, 1:, None])[..., 0]
        ends = [row.index(2) for row in sequences.tolist()]
        probabilities.append([float(row[:end].sum()) / (end + 1) for row, end in zip(scores, ends, strict=True)])
    assert all(beam >= alone - 1e-5 for alone, beam in zip(*probabilities, strict=True))


def test_beams_in_parts(tiny_model, monkeypatch):
    """Sentences do not see each other's beams, so it does not matter how many are searched at a time."""
    model, arguments = (
        tiny_model(),
        {**random_documents([[3, 1, 4, 2], [5, 2]]), "num_beams": 3, "parallel_sentences": True},
    )
    arguments["decoder_input_ids"] = torch.tensor([[0, 5, 2, 0, 6]] * 2)
    expected = model.generate(**arguments)
    monkeypatch.setattr("modeling_gtransformer.parallel_generation.BEAM_LOGITS", 1)
    outputs = model.generate(**arguments, return_dict_in_generate=True)
    assert outputs.sequences.equal(expected) and outputs.sequences[:, :5].equal(arguments["decoder_input_ids"])


def test_sentences_that_do_not_depend_on_each_other_take_one_round(tiny_model):
    model = tiny_model(decoder_global_layers=0)
    with torch.no_grad():
        model.model.decoder.embed_positions.weight.zero_()
    documents = random_documents([[3] * 8, [5, 2]])
    outputs = model.generate(**documents, parallel_sentences=True, return_dict_in_generate=True, max_length_b=3)
    assert outputs.rounds.tolist() == [1, 1]
    assert outputs.steps <= int(5 * 1.2 + 3) + 1 < outputs.sequences.shape[1]


@pytest.mark.parametrize("limit", ["PATIENCE", "MAX_TO_REPAIR"])
def test_what_does_not_settle_goes_on_token_by_token(tiny_model, monkeypatch, limit):
    go_on, calls = ParallelDecoder.go_on, []
    monkeypatch.setattr(ParallelDecoder, "go_on", lambda *each: calls.append(each[2]) or go_on(*each))
    model, documents = tiny_model(init_std=0.5).double(), random_documents([[5, 3, 4, 2], [1, 2]])
    expected = model.generate(**documents, parallel_sentences=False)
    for name in ("PATIENCE", "MAX_TO_REPAIR"):
        monkeypatch.setattr(f"modeling_gtransformer.parallel_generation.{name}", math.inf)
    assert model.generate(**documents).equal(expected) and not calls
    monkeypatch.setattr(f"modeling_gtransformer.parallel_generation.{limit}", 0)
    assert model.generate(**documents).equal(expected)
    # What is final by then is not decoded again.
    [final] = calls
    assert 1 < min(final.values()) < expected.shape[1] - 1
    assert model.generate(**documents, parallel_sentences=True).equal(expected) and len(calls) == 1


def test_sources_in_pieces_are_never_decoded_token_by_token(tiny_model, monkeypatch):
    monkeypatch.setattr("modeling_gtransformer.parallel_generation.MAX_TO_REPAIR", 0)
    model = tiny_model(init_std=0.5).double()
    documents = {
        "input_ids": torch.randint(4, 40, (1, 16), generator=torch.Generator().manual_seed(0)),
        "group_tags": torch.tensor([[1, 1, 1, 2, 2, 2, 1, 1, 3, 3, 3, 2, 2, 1, 3, 3]]),
    }
    expected = model.generate(**documents, parallel_sentences=False)
    assert all(model.generate(**documents, parallel_sentences=asked).equal(expected) for asked in (True, None))


def test_drafts_that_stand_are_all_that_is_decoded(tiny_model):
    """Also where they took as many steps as most of the document."""
    model = tiny_model(decoder_global_layers=0)
    with torch.no_grad():
        model.model.decoder.embed_positions.weight.zero_()
    documents = {**random_documents([[9, 2, 2]]), "max_length_a": 1.0, "max_length_b": 0, "min_length": 2}
    outputs = model.generate(**documents, parallel_sentences=True, return_dict_in_generate=True)
    assert outputs.rounds.tolist() == [1] and outputs.steps <= 10
    assert outputs.sequences.equal(model.generate(**documents, parallel_sentences=False))


@pytest.mark.parametrize(
    "arguments, sentences, side_by_side",
    [
        ({}, [[2, 2, 2]], True),
        ({}, [[2, 2, 2]] * 4, True),
        ({}, [[2, 2, 2]] * 5, False),
        ({}, [[4]], False),
        ({}, [[8, 2, 2]], False),
        ({"num_beams": 2}, [[2, 2, 2]], False),
        ({"max_length": 12}, [[2, 2, 2]], False),
        ({"parallel_sentences": False}, [[2, 2, 2]], False),
        ({"parallel_sentences": True}, [[2, 1]] * 5, True),
        ({"decoder_input_ids": torch.tensor([[0, 5]])}, [[2, 2, 2]], False),
    ],
    ids=str,
)
def test_few_documents_are_decoded_side_by_side_by_themselves(
    tiny_model, monkeypatch, arguments, sentences, side_by_side
):
    decode, calls = ParallelDecoder.decode, []
    monkeypatch.setattr(ParallelDecoder, "decode", lambda *each: calls.append(each) or decode(*each))
    tiny_model().generate(**random_documents(sentences), **arguments)
    assert bool(calls) == side_by_side


def test_a_sentence_that_goes_on_as_before_keeps_the_rest(tiny_model, monkeypatch):
    decode, steps = ParallelDecoder.decode, []

    def decode_and_mend(decoder, prompts):
        documents, rounds = decode(decoder, prompts)
        templated = decoder.decoder
        cache, _ = decoder.check(documents, [0], [len(documents[0])])
        sentence = documents[0][: documents[0].index(decoder.template.eos_id) + 1]
        for old_rest in (sentence[2:], [END_OF_DOCUMENT, *sentence[3:]], [END_OF_DOCUMENT] * len(sentence[2:])):
            before, opened = templated.steps, OpenSentence(1, 0, sentence[:2], 1, old_rest)
            decoder.extend(cache, [0], [[opened]], drafting=False)
            steps.append(templated.steps - before)
            assert opened.tokens == sentence
        assert steps == [1, 2, len(sentence) - 2]
        return documents, rounds

    monkeypatch.setattr(ParallelDecoder, "decode", decode_and_mend)
    tiny_model().generate(**random_documents([[5, 3]]), parallel_sentences=True)
    assert len(steps) == 3 and steps[2] > 2


def test_suppressed_tokens_stay_suppressed(tiny_model, documents):
    model = tiny_model()
    unwanted = model.generate(**documents, parallel_sentences=True)[0, 1].item()
    unknown = [-1, model.config.decoder_vocab_size]  # as Transformers, which looks for them in vain
    outputs = model.generate(**documents, parallel_sentences=True, suppress_tokens=[unwanted, *unknown])
    assert not (outputs == unwanted).any()
    assert outputs.equal(model.generate(**documents, parallel_sentences=False, suppress_tokens=[unwanted]))


@pytest.mark.parametrize(
    "argument",
    [
        {"do_sample": True},
        {"num_return_sequences": 2, "num_beams": 2},
        {"dola_layers": "low"},
        {"repetition_penalty": 1.2},
        {"no_repeat_ngram_size": 2},
        {"logits_processor": LogitsProcessorList([SuppressTokensLogitsProcessor([5])])},
        {"prefix_allowed_tokens_fn": lambda batch, ids: [5]},
        {"early_stopping": "never", "num_beams": 2},
        {"synced_gpus": True},
    ],
    ids=lambda argument: next(iter(argument)),
)
def test_what_depends_on_more_than_the_document_before_is_refused(tiny_model, documents, argument):
    with pytest.raises(ValueError, match=f"cannot be combined with .*{next(iter(argument))}"):
        tiny_model().generate(**documents, parallel_sentences=True, **argument)


@pytest.mark.parametrize(
    "prompt, max_length, message",
    [
        ([[0, 5, 6, 7], [0, 5, 2, END_OF_DOCUMENT]], None, "decoder_input_ids of sentences"),
        ([[1, 0, 5]] * 2, None, "no more sentences than the source has"),  # behind the start that it lacks
        ([[0, 5, 2] * 6] * 2, None, "no more sentences than the source has"),
        ([[0, 5, 6]] * 2, 3, "have 3 tokens, max_length is 3"),
    ],
)
def test_prompts_that_cannot_be_continued_are_refused(tiny_model, documents, prompt, max_length, message):
    arguments = {"decoder_input_ids": torch.tensor(prompt), "max_length": max_length}
    with pytest.raises(ValueError, match=message):
        tiny_model().generate(**documents, parallel_sentences=True, **arguments)


def test_source_without_sentences_is_refused(tiny_model):
    for source in ([[5, 6, 7]], [[0, 5, 2], [5, 6, 7]]):
        with pytest.raises(ValueError, match="in every source document"):
            tiny_model().generate(torch.tensor(source), parallel_sentences=True)
