"""Sentences decoded in parallel against the same document decoded token by token, and by the beams of Transformers."""

import math
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import ATTENTION_KINDS, BOS, END_OF_DOCUMENT, EOS, PAD, random_documents, seeded_model, sentences_of

from modeling_gtransformer import DocumentsOutput
from modeling_gtransformer.decoding import Sources, TemplateDecoder
from modeling_gtransformer.jacobi_decoding import JacobiDecoder, OpenSentence, SentenceRows
from modeling_gtransformer.target_sentences import GroupTagLogitsProcessor


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
    left_open=st.sampled_from([0.0, 0.4, 1.0]),
    long=st.sampled_from([0, 16, 1024]),
    seed=st.integers(0, 99),
)
def test_greedy_documents_are_those_of_sequential_decoding(
    documents,
    kind,
    init_std,
    implementation,
    max_length,
    prefix_length,
    patience,
    most_to_repair,
    left_open,
    long,
    seed,
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
        mock.patch("modeling_gtransformer.jacobi_decoding.PATIENCE", patience),
        mock.patch("modeling_gtransformer.jacobi_decoding.MAX_TO_REPAIR", most_to_repair),
        mock.patch("modeling_gtransformer.jacobi_decoding.LEFT_OPEN", left_open),
        mock.patch("modeling_gtransformer.jacobi_decoding.LONG", long),
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


def test_drafts_may_run_past_the_last_position():
    """The document itself ends before it."""
    model = seeded_model(init_std=0.5, max_position_embeddings=20).double()
    for seed in range(2):
        torch.manual_seed(seed)
        arguments = {**random_documents([[1, 2, 1, 2], [1, 5]]), "max_length_b": 4, "max_length_a": 2.0}
        expected = model.generate(**arguments, parallel_sentences=False)
        assert model.generate(**arguments, parallel_sentences=True).equal(expected)


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
    monkeypatch.setattr("modeling_gtransformer.decoding.STEP_LOGITS", 1)
    outputs = model.generate(**arguments, return_dict_in_generate=True)
    assert outputs.sequences.equal(expected) and outputs.sequences[:, :5].equal(arguments["decoder_input_ids"])


@pytest.mark.parametrize("template", ["paper", "bart"])
@pytest.mark.parametrize("limit", ["PATIENCE", "MAX_TO_REPAIR"])
def test_what_does_not_settle_goes_on_token_by_token(monkeypatch, limit, template):
    go_on, calls = JacobiDecoder.go_on, []
    monkeypatch.setattr(JacobiDecoder, "go_on", lambda *each: calls.append(each[2]) or go_on(*each))
    model = seeded_model(sentence_template=template, init_std=0.8, decoder_start_token_id=BOS).double()
    documents = random_documents([[5, 3, 4, 2], [1, 2]])
    expected = model.generate(**documents, parallel_sentences=False)
    for name in ("PATIENCE", "MAX_TO_REPAIR"):
        monkeypatch.setattr(f"modeling_gtransformer.jacobi_decoding.{name}", math.inf)
    assert model.generate(**documents).equal(expected) and not calls
    monkeypatch.setattr(f"modeling_gtransformer.jacobi_decoding.{limit}", 0)
    assert model.generate(**documents).equal(expected)
    # What is final by then is not decoded again.
    [final] = calls
    assert 1 < min(final.values()) < expected.shape[1] - 1
    assert model.generate(**documents, parallel_sentences=True).equal(expected) and len(calls) == 1


@pytest.mark.parametrize("template", ["paper", "bart", "marian"])
def test_long_sentences_are_verified_before_they_are_finished(monkeypatch, template):
    """And continued beside those that the verification changes, also where their end opens the next sentence."""
    model = seeded_model(sentence_template=template, init_std=0.5, decoder_start_token_id=BOS).double()
    documents = random_documents([[9, 1, 2, 1, 1, 2], [1, 1, 7]])
    expected = model.generate(**documents, parallel_sentences=False)
    steps = []
    for left_open in (0, 0.25, 1):
        monkeypatch.setattr("modeling_gtransformer.jacobi_decoding.LEFT_OPEN", left_open)
        outputs = model.generate(**documents, parallel_sentences=True, return_dict_in_generate=True)
        assert outputs.sequences.equal(expected)
        steps.append(outputs.rounds.tolist())
    assert steps[2] > steps[0]


def test_sources_in_pieces_are_never_decoded_token_by_token(tiny_model, monkeypatch):
    monkeypatch.setattr("modeling_gtransformer.jacobi_decoding.MAX_TO_REPAIR", 0)
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
    documents = {**random_documents([[9, 2, 2], [5, 2]]), "max_length_a": 1.0, "max_length_b": 0, "min_length": 2}
    outputs = model.generate(**documents, parallel_sentences=True, return_dict_in_generate=True)
    assert outputs.rounds.tolist() == [1, 1] and outputs.steps == 9  # the words of the longest sentence
    assert outputs.sequences.equal(model.generate(**documents, parallel_sentences=False))


@pytest.mark.parametrize(
    "arguments, sentences, side_by_side",
    [
        ({}, [[2, 2, 2]], True),
        ({}, [[2, 2, 2]] * 12, True),
        ({}, [[2, 2, 2]] * 13, False),
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
    decode, calls = JacobiDecoder.decode, []
    monkeypatch.setattr(JacobiDecoder, "decode", lambda *each: calls.append(each) or decode(*each))
    tiny_model().generate(**random_documents(sentences), **arguments)
    assert bool(calls) == side_by_side


def test_a_sentence_that_rejoins_its_old_rest_keeps_it(tiny_model, monkeypatch):
    decode, steps = JacobiDecoder.decode, []

    def decode_and_mend(jacobi, prompts):
        documents, rounds = decode(jacobi, prompts)
        sentence = documents[0][: documents[0].index(EOS) + 1]
        for old_rest in (sentence[2:], [END_OF_DOCUMENT, *sentence[3:]], [END_OF_DOCUMENT] * len(sentence[2:])):
            before, opened = jacobi.decoder.steps, OpenSentence(1, 0, sentence[:2], old_rest)
            jacobi.extend({0: [opened]})
            steps.append(jacobi.decoder.steps - before)
            assert opened.tokens == sentence
        assert steps == [1, 2, len(sentence) - 2]
        return documents, rounds

    monkeypatch.setattr(JacobiDecoder, "decode", decode_and_mend)
    tiny_model().generate(**random_documents([[5, 3]]), parallel_sentences=True)


def test_suppressed_tokens_stay_suppressed(tiny_model, documents):
    model = tiny_model()
    unwanted = model.generate(**documents, parallel_sentences=True)[0, 1].item()
    unknown = [-1, model.config.decoder_vocab_size]  # as Transformers, which looks for them in vain
    outputs = model.generate(**documents, parallel_sentences=True, suppress_tokens=[unwanted, *unknown])
    assert not (outputs == unwanted).any()
    assert outputs.equal(model.generate(**documents, parallel_sentences=False, suppress_tokens=[unwanted]))


def never_stops(input_ids, scores):
    return torch.zeros(len(input_ids), dtype=torch.bool)


@pytest.mark.parametrize(
    "argument, name",
    [
        ({"do_sample": True}, "sample"),
        ({"num_return_sequences": 2, "num_beams": 2}, "num_return_sequences"),
        ({"dola_layers": "low"}, "dola_generation"),
        ({"repetition_penalty": 1.2}, "RepetitionPenaltyLogitsProcessor"),
        ({"no_repeat_ngram_size": 2}, "NoRepeatNGramLogitsProcessor"),
        ({"encoder_no_repeat_ngram_size": 2}, "EncoderNoRepeatNGramLogitsProcessor"),
        ({"sequence_bias": {(5,): 1.0}}, "SequenceBiasLogitsProcessor"),
        ({"prefix_allowed_tokens_fn": lambda batch, ids: [5]}, "PrefixConstrainedLogitsProcessor"),
        ({"max_time": 1.0}, "MaxTimeCriteria"),
        ({"stopping_criteria": [never_stops], "no_repeat_ngram_size": 2}, "never_stops, NoRepeatNGramLogitsProcessor"),
        ({"early_stopping": "never", "num_beams": 2}, "early_stopping"),
        ({"synced_gpus": True}, "synced_gpus"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_depends_on_more_than_the_document_before_is_refused(tiny_model, documents, argument, name):
    with pytest.raises(ValueError, match=f"cannot be combined with {name}\\."):
        tiny_model().generate(**documents, parallel_sentences=True, **argument)


def test_another_implementation_of_attention_is_refused(tiny_model, documents):
    model = tiny_model()
    model.set_attn_implementation("flex_attention")
    with pytest.raises(ValueError, match="needs the attn_implementation 'sdpa' or 'eager'"):
        model.generate(**documents, parallel_sentences=True)


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
    assert isinstance(outputs, DocumentsOutput)
    assert outputs.sequences.equal(model.generate(**arguments))


def test_fewer_hypotheses_than_beams(tiny_model):
    arguments = {"num_beams": 5, "length_penalty": 2.0, "max_length_b": 0, "suppress_tokens": [*range(5, 49)]}
    arguments |= {**random_documents([[2]]), "decoder_input_ids": torch.tensor([[0, 5]])}
    model = tiny_model()
    assert model.generate(**arguments, parallel_sentences=True).equal(model.generate(**arguments))


@settings(max_examples=40)
@given(
    documents=st.lists(st.lists(st.integers(1, 5), min_size=2, max_size=5), min_size=1, max_size=3),
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


def jacobi_decoder(model):
    """Of two documents, of two sentences and of one."""
    ids = {"bos": BOS, "eos": EOS, "pad": PAD, "tgt_lang": END_OF_DOCUMENT}
    template = model.config.template.in_ids(ids.__getitem__)
    tags = torch.tensor([[1, 1, 2, 2, 0], [1, 1, 1, 1, 0]])
    limits = GroupTagLogitsProcessor(torch.tensor([[8, 8], [8, 0]]), min_length=1, max_length=40, template=template)
    torch.manual_seed(0)
    states = torch.randn(2, 5, model.config.d_model, dtype=model.dtype)
    decoder = TemplateDecoder(model, limits, [limits], Sources(states, (tags > 0).long(), tags))
    return JacobiDecoder(decoder)


@pytest.mark.parametrize("kind", ATTENTION_KINDS, ids=str)
def test_a_pass_reads_what_has_changed(kind):
    """And leaves the states and the choices of a pass over everything. One document gets longer, the other stays."""
    model = seeded_model(**kind, init_std=0.5).double()
    first, second, stays = [BOS, 5, 6, EOS], [BOS, 9, 8, 7, EOS], [BOS, 8, EOS]
    jacobi, afresh = jacobi_decoder(model), jacobi_decoder(model)
    jacobi.verify([[*first, BOS, 9], stays], {0: 0, 1: 0}, [1, 1])
    with mock.patch.object(jacobi.decoder, "states", wraps=jacobi.decoder.states) as read:
        choices = jacobi.verify([[*first, *second], stays], {0: len(first)}, [5, 3])
    assert read.call_args.args[1].tolist() == [second]
    expected = afresh.verify([[*first, *second], stays], {0: 0, 1: 0}, [5, 3])
    assert choices == expected and max(expected[0]) > 0
    for key, states in afresh.states.targets.items():
        for ours, theirs in zip(jacobi.states.targets[key], states, strict=True):
            torch.testing.assert_close(ours[0], theirs[0])
            torch.testing.assert_close(ours[1, :, : len(stays)], theirs[1, :, : len(stays)])


def places(mask):
    return [row.nonzero()[:, 0].tolist() for row in mask]


def test_what_sentences_see(tiny_model, monkeypatch):
    """Their document as it stands, what they write and their own source, for two steps of both sentences of the
    document `<s> 5 </s> <s> 6`, and of the only one of another from its `<s>`."""
    jacobi, calls, states = jacobi_decoder(tiny_model()), [], TemplateDecoder.states
    jacobi.verify([[BOS, 5, EOS, BOS, 6], [BOS]], {0: 0, 1: 0}, [5, 1])
    sentences = [(0, OpenSentence(1, 0, [BOS, 5])), (0, OpenSentence(2, 3, [BOS, 6, 7]))]
    rows = SentenceRows(jacobi.decoder, jacobi.states, [0, 1], [*sentences, (1, OpenSentence(1, 0, [BOS]))])
    # Else products with their keys would copy them at every step.
    assert all(each.is_contiguous() for pair in rows.cache.documents.values() for each in pair)

    def record(decoder, sources, ids, mask, positions, *arguments, **keywords):
        calls.append((mask, positions[:, 0].tolist(), keywords))
        return states(decoder, sources, ids, mask, positions, *arguments, **keywords)

    monkeypatch.setattr(TemplateDecoder, "states", record)
    with torch.no_grad():
        for _ in range(2):
            rows.step(rows.tokens, 1)
    (first, first_positions, arguments), (second, second_positions, _) = calls
    assert places(first["group"][:, 0, 0]) == [[0, 1], [0, 1, 2], [0]]
    assert places(second["group"][:, 0, 0]) == [[0, 1, 2], [0, 1, 2, 3], [0, 1]]
    for step in (first, second):
        assert places(step["global"].document) == [[], [0, 1, 2], []]
        assert places(step["global"].own) == places(step["group"][:, 0, 0])
    assert (first_positions, second_positions) == ([1, 5, 0], [2, 6, 1])
    assert arguments["group_tags"].tolist() == [[1], [2], [1]]
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
    model, kept, keep = tiny_model().double(), [], SentenceRows.keep
    monkeypatch.setattr(
        SentenceRows, "keep", lambda rows, rest: (kept.append((len(rows.number), len(rest))), keep(rows, rest))
    )
    arguments = {
        **random_documents([[1, 9, 3], [2]]),
        "num_beams": num_beams,
        "parallel_sentences": True,
        "max_length_b": 0,
    }
    outputs = model.generate(**arguments)
    assert kept and all(after < before for before, after in kept)
    monkeypatch.setattr("modeling_gtransformer.decoding.SHRINKS_AT", 1.1)
    kept.clear()
    assert model.generate(**arguments).equal(outputs) and not kept
