"""The engine against the loops of Transformers, which a returned dictionary asks for; sentences as a batch against the
same sentences alone."""

import math
from itertools import chain
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ATTENTION_KINDS, BOS, END_OF_DOCUMENT, EOS, PAD, random_documents, seeded_model, sentences_of

from modeling_gtransformer import GTransformerConfig, decoding
from modeling_gtransformer.decoding import (
    DocumentRows,
    Ranking,
    Rows,
    Search,
    TemplateDecoder,
    best_tokens,
    logsumexp,
    sentence_places,
)
from modeling_gtransformer.document_loss import sentence_log_probabilities
from modeling_gtransformer.jacobi_decoding import SentenceRows
from modeling_gtransformer.target_sentences import SentenceScoreRecorder


INDEPENDENT = {"decoder_global_layers": 0, "cross_global_layers": 0, "position_scope": "sentence"}
# Families without a special token for the end of a document.
OTHER_TEMPLATES = [{"sentence_template": "bart"}, {"sentence_template": "marian", "decoder_start_token_id": PAD}]
DOCUMENTS = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=5), min_size=1, max_size=4)


def of_transformers(model, **arguments):
    return model.generate(**arguments, return_dict_in_generate=True).sequences


@settings(max_examples=40)
@given(
    documents=DOCUMENTS,
    kind=st.sampled_from([*ATTENTION_KINDS, *OTHER_TEMPLATES]),
    implementation=st.sampled_from(["sdpa", "eager"]),
    num_beams=st.integers(1, 8),
    length_penalty=st.sampled_from([0.0, 1.0, 2.0]),
    early_stopping=st.booleans(),
    end_bias=st.sampled_from([0.0, 3.0]),
    budget=st.integers(0, 20),
    prefix_length=st.integers(1, 12),
)
def test_documents_are_those_of_transformers(
    documents, kind, implementation, num_beams, length_penalty, early_stopping, end_bias, budget, prefix_length
):
    model = seeded_model(**kind, init_std=0.25).double()  # no near ties
    model.set_attn_implementation(implementation)
    model.final_logits_bias[0, EOS] = end_bias  # without it hardly a hypothesis ends before its limit
    arguments = {**random_documents(documents), "num_beams": num_beams, "max_length_b": 4, "parallel_sentences": False}
    if num_beams > 1:
        arguments |= {"length_penalty": length_penalty, "early_stopping": early_stopping}
    if budget > 10:
        arguments["max_length"] = 3 * max(map(len, documents)) + budget
    expected = of_transformers(model, **arguments)
    assert model.generate(**arguments).equal(expected)
    prefix = expected[:, :prefix_length]
    if not (prefix == END_OF_DOCUMENT).any() and prefix.shape[1] < expected.shape[1] and budget <= 10:
        arguments["decoder_input_ids"] = prefix
        assert model.generate(**arguments).equal(of_transformers(model, **arguments))


@pytest.mark.parametrize("template", OTHER_TEMPLATES, ids=lambda config: config["sentence_template"])
@pytest.mark.parametrize(
    ("lengths", "limits"),
    [([[3, 2, 1], [1, 4]], {"max_length_b": 4}), ([[1, 1, 1], [2, 1]], {"max_length_a": 1.0, "max_length_b": 0})],
)
def test_documents_end_after_their_last_sentence(template, lengths, limits):
    """Without a special token for their end: beams may be at different sentences, and documents have other numbers of
    them. A sentence may be limited to a single word."""
    model = seeded_model(**template, init_std=0.5).double()
    model.final_logits_bias[0, EOS] = 2.0
    for seed in range(4):
        torch.manual_seed(seed)
        arguments = {**random_documents(lengths), **limits, "num_beams": 4, "parallel_sentences": False}
        assert model.generate(**arguments).equal(of_transformers(model, **arguments))


def test_beams_stop_early_as_those_of_transformers():
    model = seeded_model(init_std=0.25).double()
    model.final_logits_bias[0, EOS] = 3.0
    torch.manual_seed(0)
    arguments = {**random_documents([[3, 1], [5], [2]]), "num_beams": 3, "max_length_b": 4, "length_penalty": 3.0}
    early, late = (model.generate(**arguments, early_stopping=early_stopping) for early_stopping in (True, False))
    assert early.equal(of_transformers(model, **arguments, early_stopping=True)) and not early.equal(late)


def test_greedy_documents_in_bfloat16_are_those_of_transformers():
    """Its loop takes the first of equal scores, which are frequent in eight bits."""
    # In a vocabulary this small, `topk` returns others.
    scores = torch.randint(3, (300, 50), generator=torch.Generator().manual_seed(0)).float()
    assert best_tokens(scores, 1)[1][:, 0].equal(scores.argmax(dim=1))
    model = seeded_model(vocab_size=3000, init_std=0.25).to(torch.bfloat16)
    for seed in range(5):
        torch.manual_seed(seed)
        arguments = {**random_documents([[3, 2], [4, 1, 2], [2]]), "max_length_b": 4, "parallel_sentences": False}
        assert model.generate(**arguments).equal(of_transformers(model, **arguments))


def test_log_probabilities_of_a_bfloat16_model_are_not_rounded(monkeypatch):
    """Beams add them in float32, as in Transformers."""
    best, scores = TemplateDecoder.best, []

    def record(*arguments, **options):
        found = best(*arguments, **options)
        scores.append(found[0][:, 0])
        return found

    monkeypatch.setattr(TemplateDecoder, "best", record)
    seeded_model(init_std=0.25).to(torch.bfloat16).generate(**random_documents([[3]]), num_beams=3)
    assert not torch.cat(scores).equal(torch.cat(scores).bfloat16().float())


def test_a_search_with_fewer_hypotheses_than_beams_ends_at_the_last_position():
    model = seeded_model(max_position_embeddings=6)
    arguments = {**random_documents([[2]]), "decoder_input_ids": torch.tensor([[BOS, 5]]), "max_length_b": 0}
    arguments |= {"num_beams": 5, "suppress_tokens": [*range(5, 49)], "parallel_sentences": False}
    assert model.generate(**arguments).equal(of_transformers(model, **arguments))


def test_suppressed_tokens(tiny_model):
    model = tiny_model().double()
    arguments = {**random_documents([[2, 3]]), "suppress_tokens": [*range(5, 49)], "max_length_b": 2}
    for num_beams in (1, 4):
        outputs = model.generate(**arguments, num_beams=num_beams)
        assert outputs.equal(of_transformers(model, **arguments, num_beams=num_beams)) and outputs[0, 1] == 4


IRREGULAR = {
    "no sentence is open": ({}, [[BOS, 5], [7, 8]]),
    "a word between sentences": ({}, [[BOS, 5, EOS, 6], [BOS, 7, 8, 9]]),
    "padding on the left": ({"sentence_template": "bart"}, [[EOS, BOS, 5, 6], [PAD, EOS, BOS, 9]]),
    "words after the end": ({"sentence_template": "mbart"}, [[48, 5, EOS, 6], [48, 7, 8, 9]]),
    "a sentence without a source": ({"sentence_template": "bart"}, [[EOS, BOS, 5, EOS, BOS, 6]] * 2),
}


@pytest.mark.parametrize("num_beams", [1, 3])
@pytest.mark.parametrize(("template", "prompts"), IRREGULAR.values(), ids=IRREGULAR)
def test_prompts_that_are_no_beginning_of_a_document(tiny_model, template, prompts, num_beams):
    model = tiny_model(init_std=0.25, position_scope="sentence", **template).double()
    model.generation_config.decoder_start_token_id = 48 if template.get("sentence_template") == "mbart" else None
    arguments = {**random_documents([[3], [2]]), "decoder_input_ids": torch.tensor(prompts), "num_beams": num_beams}
    expected = model.generate(**arguments, use_cache=False)
    assert model.generate(**arguments).equal(expected)
    assert model.generate(**arguments, max_time=600.0).equal(expected)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_finished_documents_leave_the_batch(tiny_model, monkeypatch, num_beams):
    rows, states = [], TemplateDecoder.states

    def count(decoder, sources, ids, *arguments, **others):
        rows.append(len(ids))
        return states(decoder, sources, ids, *arguments, **others)

    monkeypatch.setattr(TemplateDecoder, "states", count)
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
        {"return_dict_in_generate": True},
        {"max_time": 10.0},
        {"use_cache": False},
        {"stopping_criteria": [lambda ids, scores: torch.zeros(len(ids), dtype=torch.bool)]},
        {"max_new_tokens": 3},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_what_the_engine_does_not_do_is_left_to_transformers(tiny_model, documents, monkeypatch, asked):
    model = tiny_model()
    for rows in (DocumentRows, SentenceRows):
        monkeypatch.setattr(rows, "__init__", None)
    just_enough = {"max_length": 10}  # a word per sentence
    for implementation in ("eager", "sdpa"):
        model.set_attn_implementation(implementation)
        for done in ({}, {"parallel_sentences": False}, just_enough):
            with pytest.raises(TypeError):
                model.generate(**documents, **done)
        assert model.generate(**documents, **asked) is not None


@pytest.mark.parametrize(
    "asked",
    [
        {"repetition_penalty": 2.0},
        {"no_repeat_ngram_size": 1},
        {"encoder_repetition_penalty": 3.0},
        {"exponential_decay_length_penalty": (2, 1.5)},
        {"sequence_bias": {(5,): 4.0, (6, 7): 4.0}},
        {"prefix_allowed_tokens_fn": lambda batch, ids: [BOS, EOS, END_OF_DOCUMENT, *range(4 + 5 * batch, 30)]},
        {"logits_processor": [lambda ids, scores: scores + (ids.sum(dim=1, keepdim=True) + torch.arange(50)) % 7]},
    ],
    ids=lambda asked: next(iter(asked)),
)
@pytest.mark.parametrize("num_beams", [1, 3])
@pytest.mark.parametrize("config", [{}, INDEPENDENT], ids=["paper", "independent"])
def test_any_processor_sees_all_documents_at_every_step(tiny_model, monkeypatch, asked, num_beams, config):
    """Documents that are finished included, as processors may count rows."""
    model = tiny_model(init_std=0.25, **config).double()
    model.final_logits_bias[0, EOS] = 2.0
    arguments = {**random_documents([[3, 1, 4], [2], [5, 2]]), **asked, "num_beams": num_beams, "max_length_b": 2}
    expected = of_transformers(model, **arguments)
    assert not expected.equal(of_transformers(model, **arguments | dict.fromkeys(asked))) or "exponential" in str(
        asked
    )
    decoders, make = [], DocumentRows.__init__
    monkeypatch.setattr(DocumentRows, "__init__", lambda rows, *args: (decoders.append(args), make(rows, *args))[1])
    assert model.generate(**arguments).equal(expected) and len(decoders) == 1


@pytest.mark.parametrize("parallel_sentences", [None, False, True])
def test_prompts_in_frames_where_the_end_of_a_sentence_opens_the_next(parallel_sentences):
    """The prompt may lack what opens a sentence, which takes budget; or a document may be complete from the start."""
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
    translations, sources = ([sentences_of(row) for row in ids.tolist()] for ids in (outputs, inputs["input_ids"]))
    assert [*map(len, translations)] == [*map(len, documents)]
    if num_beams == 1:
        assert outputs.equal(model.generate(**inputs, **arguments, parallel_sentences=False))
    if encoder_global_layers == 0:
        for translation, source in zip(chain(*translations), chain(*sources), strict=True):
            [alone] = model.generate(torch.tensor([source]), **arguments)
            assert alone.tolist() == [*translation, END_OF_DOCUMENT]


@pytest.mark.parametrize("num_beams, length_penalty", [(2, 0.0), (3, 3.0)])
def test_a_document_of_one_independent_sentence_is_that_of_transformers(num_beams, length_penalty):
    model = seeded_model(**INDEPENDENT, init_std=0.25).double()
    model.final_logits_bias[0, EOS] = 3.0
    arguments = {**random_documents([[5], [3], [2]]), "max_length_b": 4}
    arguments |= {"num_beams": num_beams, "length_penalty": length_penalty}
    assert model.generate(**arguments).equal(of_transformers(model, **arguments))


@pytest.mark.parametrize("source", [[EOS], [EOS, 5, 6, EOS], [5, 6, EOS, EOS]])
def test_empty_source_sentences_have_their_own_limits(source):
    model = seeded_model(**INDEPENDENT, **OTHER_TEMPLATES[1], init_std=0.25).double()
    model.final_logits_bias[0, EOS] = -20.0
    arguments = {"inputs": torch.tensor([source]), "max_length_a": 2.0, "max_length_b": 1}
    assert model.generate(**arguments).equal(model.generate(**arguments, parallel_sentences=False))


@settings(max_examples=40)
@given(
    documents=DOCUMENTS,
    kind=st.sampled_from([*ATTENTION_KINDS, *OTHER_TEMPLATES, *({**INDEPENDENT, **each} for each in OTHER_TEMPLATES)]),
    num_beams=st.integers(1, 4),
    asked=st.sampled_from([{}, {"parallel_sentences": False}, {"repetition_penalty": 2.0}, {"suppress_tokens": [5]}]),
    others=st.sampled_from([[], [lambda ids, scores: scores]]),
    init_std=st.sampled_from([0.1, 0.25, 0.5]),
    limit=st.integers(0, 4),
    patience=st.sampled_from([0.0, 0.25, math.inf]),
)
def test_a_search_scores_sentences_as_a_pass_over_its_documents(
    documents, kind, num_beams, asked, others, init_std, limit, patience
):
    """Without processors, and also where `</s>` had to come. Drafts that were replaced leave nothing behind."""
    model = seeded_model(**kind, init_std=init_std).double()
    model.final_logits_bias[0, EOS] = 1.0
    source, recorder = random_documents(documents), SentenceScoreRecorder()
    arguments = {
        **source,
        **asked,
        "num_beams": num_beams,
        "max_length_b": limit,
        "logits_processor": [*others, recorder],
    }
    with (
        mock.patch("modeling_gtransformer.generation_gtransformer.PARALLEL_SENTENCES", 0),
        mock.patch("modeling_gtransformer.jacobi_decoding.PATIENCE", patience),
    ):
        sequences = model.generate(**arguments)
    end = END_OF_DOCUMENT if model.config.template.end else None
    template = model.config.template.in_ids({"bos": BOS, "eos": EOS, "pad": PAD, "tgt_lang": end}.__getitem__)
    encoded, mask = model.get_encoder()(**source), source["attention_mask"]
    outputs = (encoded[0], encoded.group_tags * mask)
    expected = sentence_log_probabilities(model, sequences, template, encoder_outputs=outputs, attention_mask=mask)
    for sums, totals, numbers in zip(recorder.sums, *(each.tolist() for each in expected), strict=True):
        padded = [*sums, *[(0.0, 0)] * (len(totals) - len(sums))]
        assert [number for _, number in padded] == numbers
        assert [total for total, _ in padded] == pytest.approx(totals, abs=1e-4)


@pytest.mark.parametrize(
    "asked",
    [
        {"do_sample": True},
        {"num_beams": 2, "parallel_sentences": True},
        {"decoder_input_ids": torch.tensor([[BOS, 5, EOS]])},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_other_searches_record_no_scores(tiny_model, asked):
    recorder = SentenceScoreRecorder()
    tiny_model().generate(**random_documents([[2, 3]]), **asked, logits_processor=[recorder])
    assert recorder.sums is None


def test_small_batches_of_sentences_are_joined(tiny_model, monkeypatch):
    model, inputs = tiny_model(**INDEPENDENT).double(), random_documents([[2, 5, 1], [3]])
    expected = model.generate(**inputs, num_beams=2)
    monkeypatch.setattr(decoding, "STEP_LOGITS", 1)
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
        assert len(sentences_of(model.generate(**inputs, **asked)[0].tolist())) == 2


def test_places_of_sentences():
    """Also of sentences in pieces."""
    tags = torch.tensor([[0, 1, 1, 2, 0], [1, 2, 2, 2, 3], [2, 1, 2, 1, 0]])[[0, 0, 1, 1, 2]]
    places, is_real = sentence_places(tags, torch.tensor([1, 2, 2, 3, 2]))
    found = [row[real].tolist() for row, real in zip(places, is_real, strict=True)]
    assert found == [[1, 2], [3], [1, 2, 3], [4], [0, 2]] and places.shape == (5, 3)


WORDS = range(4, 8)


class ScriptedRows(Rows):
    """Rows of sentences, with two beams, whose next words have given log-probabilities, by what has been written.

    Args:
        scripts: for each sentence, by the words so far, log-probabilities of the tokens that follow; others get -50.

    Attributes:
        steps: how many tokens of each beam were read.
    """

    def __init__(self, *scripts, shrinks=True):
        self.budget, self.beams, self.shrinks = 10, 2, shrinks
        self.tokens = torch.zeros(len(scripts), self.beams).long()
        self.scripts, self.written, self.steps = scripts, [""] * self.tokens.numel(), 0

    def step(self, tokens, count):
        self.steps += 1
        self.written = [
            before + ("" if token == 0 else chr(ord("a") + token - WORDS.start) if token in WORDS else ".")
            for before, token in zip(self.written, tokens.flatten().tolist(), strict=True)
        ]
        scores = torch.full((len(self.written), WORDS.stop), -50.0)
        for row, words in enumerate(self.written):
            for token, score in self.scripts[row // self.beams].get(words or "start", {}).items():
                scores[row, EOS if token == "end" else WORDS.start + ord(token) - ord("a")] = score
        return scores.view(*tokens.shape, -1).topk(min(count, WORDS.stop))

    def ends(self, chosen, parents):
        return chosen == EOS

    def follow(self, rows):
        self.written = [self.written[parent] for parent in rows.tolist()]

    def keep(self, items):
        self.scripts = [self.scripts[item] for item in items.tolist()]
        self.follow((items[:, None] * self.beams + torch.arange(self.beams)).flatten())


# Two words are best. Without early stopping, a search finds them, or has ended before.
NEVER_FOUND = {"start": {"end": -1.0, "a": -1.1}, "a": {"end": -1.2, "a": -1.3}, "aa": {"end": -0.01}}
FOUND_LATE = {"start": {"end": -1.0, "a": -1.1}, "a": {"end": -0.1, "a": -0.2}, "aa": {"end": -0.01}}


def search(*scripts, length_penalty=1.0, early_stopping=False, shrinks=True):
    """The words of the best hypotheses under scripts, and the steps that it took to find them."""
    rows = ScriptedRows(*scripts, shrinks=shrinks)
    found = Search(rows, Ranking(length_penalty, early_stopping)).run()
    assert all(written.ids[-1] == EOS for written in found)
    words = ["".join(chr(ord("a") + token - WORDS.start) for token in written.ids[:-1]) for written in found]
    return words, rows.steps


def best(**script):
    """The words of the best hypothesis under a script."""
    [words], _ = search(script)
    return words


def test_the_length_counts_the_tokens_that_are_written():
    """-1.0 over one token against -1.9 over two; over two and three tokens it would be the other way round."""
    assert best(start={"end": -1.0, "a": -1.1}, a={"end": -0.8}) == "a"
    assert best(start={"end": -1.0, "a": -1.1}, a={"end": -1.0}) == ""


def test_a_search_ends_when_no_running_hypothesis_is_better():
    """As in Transformers the length so far decides that, even though longer ones would have become better."""
    assert best(**NEVER_FOUND) == ""
    assert best(**NEVER_FOUND | {"a": {"end": -1.2, "a": -1.1}}) == "aa"


def test_only_hypotheses_among_the_best_are_finished():
    """An end that comes after as many better words as there are beams is none."""
    assert best(start={"a": -1.0, "b": -1.1, "end": -1.2}, a={"end": -3.0}, b={"end": -3.1}) == "a"
    assert best(start={"a": -1.0, "end": -1.1, "b": -1.2}, a={"end": -3.0}, b={"end": -3.1}) == ""


def test_early_stopping_ends_with_as_many_hypotheses_as_beams():
    """Though the one that is still running would have become the best."""
    assert best(**FOUND_LATE) == "aa"
    assert search(FOUND_LATE, early_stopping=True) == (["a"], 2)


def test_beams_continue_from_their_parents():
    """The second beam becomes the first one."""
    script = {"start": {"a": -1.0, "b": -1.1}, "a": {"c": -2.0}, "b": {"c": -0.1}, "ac": {"d": -0.1, "end": -3.0}}
    assert best(**script, bc={"end": -0.1}) == "bc"


def test_a_running_hypothesis_that_equals_the_worst_finished_one_is_not_better():
    script = {"start": {"end": -0.75, "a": -0.5}, "a": {"end": -0.5, "a": -0.5}, "aa": {"end": -0.0}}
    assert search(script, length_penalty=0.0) == ([""], 2)


@pytest.mark.parametrize("shrinks", [True, False])
@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_search_that_has_ended_finds_nothing_more_beside_a_longer_one(early_stopping, shrinks):
    """Its running hypothesis would become the best."""
    short, words = (FOUND_LATE, "a") if early_stopping else (NEVER_FOUND, "")
    long = {"start": {"b": -0.1}, "b": {"b": -0.1}, "bb": {"b": -0.1}, "bbb": {"b": -0.1}, "bbbb": {"end": -0.1}}
    for scripts, expected in (((short, long), [words, "bbbb"]), ((long, short), ["bbbb", words])):
        assert search(*scripts, early_stopping=early_stopping, shrinks=shrinks)[0] == expected


@pytest.mark.parametrize("size", [decoding.LARGE_VOCABULARY, decoding.LARGE_VOCABULARY + 37])
def test_the_best_tokens_of_a_large_vocabulary(size):
    scores = torch.rand(50, size, generator=torch.Generator().manual_seed(0))
    scores[:, :-8] -= 1.0 * (torch.arange(50) % 2 == 0)[:, None]  # in half of the rows, the last ones are the best
    scores[0, 8:] = -torch.inf  # fewer than asked for
    for found, expected in zip(best_tokens(scores[1:], 10), scores[1:].topk(10), strict=True):
        assert torch.equal(found, expected)
    for count in (10, size // 2):
        assert torch.equal(best_tokens(scores[:1], count)[0], scores[:1].topk(count).values)


def test_logits_are_normalized_in_blocks():
    logits = torch.randn(5, decoding.BLOCK_LOGITS // 2, generator=torch.Generator().manual_seed(0))
    logits[:, 0] = -torch.inf
    torch.testing.assert_close(logsumexp(logits), logits.logsumexp(dim=-1, keepdim=True))
