import functools

import pytest
import torch
from accelerate import cpu_offload
from tiny import BOS, END_OF_DOCUMENT, EOS, PAD, random_documents, seeded_model, words_per_sentence
from transformers import GenerationConfig, Seq2SeqTrainer, Seq2SeqTrainingArguments
from transformers.generation import CompileConfig
from transformers.modeling_outputs import BaseModelOutput
from transformers.utils import logging

from modeling_gtransformer import GTransformerForConditionalGeneration
from modeling_gtransformer.cache_gtransformer import CACHE_NAME, DocumentCache
from modeling_gtransformer.runtime.int8_linear import quantize_linear_layers


MARIAN = {"sentence_template": "marian", "decoder_start_token_id": PAD}
SEARCHES = [
    {},
    {"use_cache": False},
    {"num_beams": 4},
    {"num_beams": 4, "num_return_sequences": 3, "early_stopping": True},
    {"do_sample": True, "num_return_sequences": 5},
    {"do_sample": True, "top_k": 2, "temperature": 0.3},
    {"num_beams": 2, "do_sample": True, "top_p": 0.2},
    {"cache_implementation": "static"},
    {"prompt_lookup_num_tokens": 2},
    {"no_repeat_ngram_size": 2, "repetition_penalty": 1.5},
]


def sequences(outputs):
    """The documents that `generate` returns, alone or in a dictionary."""
    return outputs if isinstance(outputs, torch.Tensor) else outputs.sequences


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: "-".join(search) or "greedy")
def test_one_target_sentence_per_source_sentence(tiny_model, documents, search):
    if "prompt_lookup_num_tokens" in search:
        documents = {name: tensor[:1] for name, tensor in documents.items()}
    outputs = tiny_model().generate(**documents, **search)
    returned = search.get("num_return_sequences", 1)
    sentences = [3] * returned + [1] * returned
    for row, expected in zip(outputs, sentences[: len(outputs)], strict=True):
        counts = words_per_sentence(row)
        assert len(counts) == expected
        limits = [int(1.2 * n + 10) for n in ([2, 1, 3] if expected == 3 else [2])]
        assert all(1 <= count <= limit for count, limit in zip(counts, limits, strict=True))


def test_an_assistant_drafts_within_the_frame(tiny_model, documents):
    model, assistant = tiny_model(), tiny_model(d_model=8)
    document = {name: tensor[:1] for name, tensor in documents.items()}
    expected = model.generate(**document)
    assert model.generate(**document, assistant_model=assistant).equal(expected)


@pytest.mark.parametrize("search", [{}, {"num_beams": 3}], ids=["greedy", "beams"])
def test_caches_and_batches_do_not_change_the_output(tiny_model, documents, search):
    model = tiny_model()
    expected = model.generate(**documents, use_cache=False, **search)
    for change in ({}, {"cache_implementation": "static"}):
        assert model.generate(**documents, **search, **change).equal(expected)
    for row in range(2):
        real = documents["attention_mask"][row].bool()
        alone = model.generate(documents["input_ids"][row, real][None], **search)[0]
        assert alone.equal(expected[row, : len(alone)]) and (expected[row, len(alone) :] == PAD).all()


def test_limits_per_sentence(tiny_model, documents):
    model = tiny_model()
    limits = {"max_length_a": 2.0, "max_length_b": 1, "min_length": 3}
    for row in model.generate(**documents, do_sample=True, **limits):
        assert all(3 <= count <= 7 for count in words_per_sentence(row))
    assert words_per_sentence(model.generate(**documents, max_length_a=0, max_length_b=1)[0]) == [1, 1, 1]
    # A config without the document's fields takes them from the model's.
    model.generation_config.max_length_a, model.generation_config.max_length_b = 0, 2
    for row in model.generate(**documents, generation_config=GenerationConfig(do_sample=True)):
        assert max(words_per_sentence(row)) <= 2
    # Its own fields come first.
    config = GenerationConfig()
    config.max_length_b = 1
    assert words_per_sentence(model.generate(**documents, generation_config=config)[0]) == [1, 1, 1]


@pytest.fixture
def warnings(caplog):
    """The warnings of the package."""
    logging.get_logger().addHandler(caplog.handler)
    with caplog.at_level("WARNING"):
        yield caplog
    logging.get_logger().removeHandler(caplog.handler)


def test_short_maximum_still_gives_every_sentence(tiny_model, documents, warnings):
    model = tiny_model()
    for new_tokens in (9, 12, 15):
        outputs = model.generate(**documents, max_new_tokens=new_tokens)
        assert outputs.shape[1] <= new_tokens + 1
        assert len(words_per_sentence(outputs[0])) == 3
    # Asked for less than all sentences need, it says so and stops there.
    assert "will be cut off" not in warnings.text
    assert model.generate(**documents, max_new_tokens=5).equal(model.generate(**documents)[:, :6])
    assert "too few for 3 sentences, which take at least" in warnings.text


@pytest.mark.parametrize("settings", [{"min_new_tokens": 4}, {"exponential_decay_length_penalty": (2, 1.5)}])
def test_settings_without_effect_are_named(tiny_model, documents, settings, monkeypatch):
    model, warned = tiny_model(), list[str]()
    monkeypatch.setattr("modeling_gtransformer.generation_gtransformer.logger.warning_once", warned.append)
    expected = model.generate(**documents)
    assert warned == [] and model.generate(**documents, **settings).equal(expected)
    assert [message.partition(" has no effect")[:2] for message in warned] == [
        (name, " has no effect") for name in settings
    ]


def test_without_beams_nothing_warns_of_their_settings(tiny_model, documents, warnings):
    model = tiny_model()
    own = model.generation_config
    own.num_beams, own.early_stopping, own.length_penalty = 4, True, 1.2
    model.generate(**documents, num_beams=1, do_sample=True)
    assert "flags are not valid" not in warnings.text


def test_the_end_of_the_document_needs_a_position(tiny_model):
    """Three sentences of a word each take nine tokens, and their end the tenth."""
    source = torch.tensor([[0, 5, 2] * 3])
    [output] = tiny_model(max_position_embeddings=10).generate(source).tolist()
    assert len(output) == 10 and output[-1] == END_OF_DOCUMENT and output.count(EOS) == 3
    with pytest.raises(ValueError, match="needs at least 10 tokens, but the model has only 9 positions"):
        tiny_model(max_position_embeddings=9).generate(source)


def test_documents_that_ran_out_of_room_are_named(tiny_model, documents, warnings):
    model = tiny_model(max_position_embeddings=16)
    model.final_logits_bias[0, EOS] = -100.0
    outputs = model.generate(**documents)
    assert len(words_per_sentence(outputs[0])) == 3 and (outputs != PAD).sum(dim=1).tolist() == [16, 15]
    limits = "(max_length, max_new_tokens or the model's positions)"
    assert f"Documents [0] of the batch reached 16 tokens {limits}" in warnings.text


def test_a_document_as_long_as_its_sentences_may_be_is_not_cut_off(tiny_model, documents, warnings):
    model = tiny_model()
    model.final_logits_bias[0, EOS] = -100.0
    assert [words_per_sentence(row) for row in model.generate(**documents)] == [[12, 11, 13], [12]]
    assert warnings.text == ""


@pytest.mark.parametrize("config", [{}, MARIAN], ids=str)
def test_documents_without_room_are_named_by_their_numbers(tiny_model, documents, warnings, config):
    """However many rows there are of each, and whatever a document starts with."""
    model = tiny_model(**config)
    model.final_logits_bias[0, EOS] = -100.0
    model.generate(**documents, max_new_tokens=12, num_return_sequences=2, do_sample=True)
    assert "Documents [0, 1] of the batch" in warnings.text


def test_another_target_language_takes_the_place_of_that_of_the_model(tiny_model, documents):
    """Its code ends the documents, and that of the model, which is no word, never comes."""
    model, other = tiny_model(), 48
    model.generation_config.suppress_tokens = [other]
    model.final_logits_bias[0, END_OF_DOCUMENT] = 50.0
    config = GenerationConfig(eos_token_id=other, suppress_tokens=[other])
    for language in ({"eos_token_id": other}, {"generation_config": config}):
        outputs = model.generate(**documents, **language)
        assert (outputs == other).sum(dim=1).tolist() == [1, 1] and not (outputs == END_OF_DOCUMENT).any()
    # The code of the model is unknown where several tokens end a document.
    model.generation_config.eos_token_id = [EOS, END_OF_DOCUMENT]
    assert (model.generate(**documents, eos_token_id=other) == other).sum(dim=1).tolist() == [1, 1]


@pytest.mark.parametrize("language", [{}, {"eos_token_id": 48}], ids=str)
def test_suppressed_tokens_of_a_call_replace_those_of_the_model(tiny_model, documents, language):
    model = tiny_model()
    model.generation_config.suppress_tokens = [5]
    model.final_logits_bias[0, 5:7] = torch.tensor([50.0, 60.0])
    outputs = model.generate(**documents, **language, suppress_tokens=[6])
    assert (outputs == 5).any() and not (outputs == 6).any()


def test_another_target_language_starts_the_sentences(tiny_model, documents):
    model = tiny_model(sentence_template="mbart")
    model.generation_config.decoder_start_token_id = 47
    outputs = model.generate(**documents, decoder_start_token_id=48)
    assert (outputs == 48).sum(dim=1).tolist() == [3, 1] and outputs[:, 0].tolist() == [48, 48]
    model.generation_config.decoder_start_token_id = None
    with pytest.raises(
        ValueError, match=r"has no decoder_start_token_id, .*: processor.* sets it, and generate.* takes it"
    ):
        model.generate(**documents)


def test_forced_prefix_is_continued(tiny_model, documents):
    """A prefix of finished and open sentences, as a long document's next window has it."""
    model = tiny_model()
    whole = model.generate(**documents)
    for length in (3, whole[0].tolist().index(EOS) + 1, whole.shape[1] - 2):
        prefix = whole[:1, :length]
        ids = {name: tensor[:1] for name, tensor in documents.items()}
        assert model.generate(**ids, decoder_input_ids=prefix).equal(whole[:1])
    # The second document is complete: padding follows its end.
    outputs = model.generate(**documents, decoder_input_ids=whole[:, :-2])
    assert outputs[:, : whole.shape[1]].equal(whole) and (outputs[:, whole.shape[1] :] == PAD).all()


def test_rows_without_sentences_are_generated_freely(tiny_model):
    """Plain mBART input gives no alignment to keep; nor does align_sentences=False (the paper's plain Transformer)."""
    model = tiny_model()
    plain = torch.tensor([[5, 6, 7, 2, 48]])
    assert model.generate(plain, max_new_tokens=7).shape == (1, 8)
    document = torch.tensor([[0, 5, 2, 0, 6, 2]])
    free = model.generate(document, align_sentences=False, max_new_tokens=40, do_sample=True, num_return_sequences=8)
    assert any((row == BOS).sum() != 2 for row in free)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_free_documents_have_the_room_of_aligned_ones(tiny_model, documents, num_beams):
    """Each its own, whatever it is batched with."""
    model = tiny_model()
    model.final_logits_bias[0, END_OF_DOCUMENT] = -100.0
    outputs = model.generate(**documents, align_sentences=False, num_beams=num_beams)
    # `<s>`, and for sentences of n words int(1.2 n + 10) words with `<s>` and `</s>`.
    assert (outputs != PAD).sum(dim=1).tolist() == [1 + 14 + 13 + 15, 1 + 14]
    alone = model.generate(documents["input_ids"][1:, :4], align_sentences=False, num_beams=num_beams)
    assert alone[0].equal(outputs[1, :15])
    prefix = {"decoder_input_ids": outputs[:, :3]}  # does not count
    continued = model.generate(**documents, align_sentences=False, num_beams=num_beams, **prefix)
    assert continued.shape[1] == outputs.shape[1] + 2
    assert model.generate(**documents, align_sentences=False, max_new_tokens=4).shape == (2, 5)
    stop = {"stopping_criteria": [lambda ids, scores: torch.full((len(ids),), ids.shape[1] == 6)]}
    assert model.generate(**documents, align_sentences=False, num_beams=num_beams, **stop).shape == (2, 6)


@pytest.mark.parametrize("template", [{}, MARIAN, {"sentence_template": "bart"}], ids=["paper", "marian", "bart"])
def test_a_stopping_criterion_cuts_documents_off(tiny_model, documents, template):
    """And the source is encoded once, though the loop of Transformers takes the call over."""
    model, encoded = tiny_model(**template), []
    model.get_encoder().register_forward_hook(lambda *_: encoded.append(True))
    stop = {"stopping_criteria": [lambda ids, scores: torch.full((len(ids),), ids.shape[1] == 6)]}
    assert model.generate(**documents, **stop).shape == (2, 6) and len(encoded) == 1


@pytest.mark.parametrize("template", [MARIAN, {"sentence_template": "bart"}], ids=["marian", "bart"])
@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"return_dict_in_generate": True}], ids=str)
def test_bad_words_are_banned_but_not_what_ends_a_sentence(tiny_model, documents, template, search):
    """Also where no other token ends a document."""
    model = tiny_model(**template)
    model.final_logits_bias[0, 7] = 50.0
    expected = sequences(model.generate(**documents, suppress_tokens=[7], **search))
    outputs = sequences(model.generate(**documents, bad_words_ids=[[EOS], [7]], **search))
    assert outputs.equal(expected) and (outputs == EOS).sum(dim=1).tolist()[0] >= 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"forced_eos_token_id": EOS}, "forced_eos_token_id contradicts"),
        ({"forced_bos_token_id": BOS}, "forced_bos_token_id contradicts"),
        ({"suppress_tokens": [EOS]}, "no sentence can end"),
        ({"decoder_group_tags": torch.ones(2, 1)}, "takes none"),
        ({"decoder_input_ids": torch.tensor([[0, 5], [0, 1]])}, "end with padding"),
        ({"decoder_input_ids": torch.tensor([[0, 5, 2, 0], [0, 5, 1, 1]])}, "end with padding"),
        ({"decoder_input_ids": torch.tensor([[BOS]])}, "have 1 rows, but there are 2 documents"),
        ({"decoder_input_ids": torch.tensor([[BOS]] * 3)}, "have 3 rows, but there are 2 documents"),
        ({"group_tags": torch.tensor([[1] * 4 + [3] * 3 + [4] * 5, [1] * 12])}, "without gaps"),
    ],
)
def test_what_cannot_work_is_refused(tiny_model, documents, arguments, message):
    with pytest.raises(ValueError, match=message):
        tiny_model().generate(**documents, **arguments)


def test_padding_after_a_start_token_that_also_ends_sentences_is_refused(tiny_model):
    prompts = torch.tensor([[EOS, BOS, 5, EOS, PAD], [EOS, BOS, 5, 6, 7]])
    with pytest.raises(ValueError, match="end with padding"):
        tiny_model(sentence_template="bart").generate(**random_documents([[2, 2]] * 2), decoder_input_ids=prompts)


@pytest.mark.parametrize("end", [None, EOS, [EOS], -1, END_OF_DOCUMENT + 1])
def test_documents_without_a_known_end_end_with_padding(tiny_model, documents, end, warnings):
    """As of a checkpoint that was never configured, or that Transformers' own trainer has "aligned"."""
    logging.get_logger("modeling_gtransformer").warning_once.cache_clear()
    model = tiny_model()
    expected = model.generate(**documents, suppress_tokens=[END_OF_DOCUMENT])
    model.generation_config.eos_token_id = end
    model.generation_config.suppress_tokens = [END_OF_DOCUMENT]
    for search in ({}, {"num_beams": 2}):
        outputs = model.generate(**documents, **search)
        assert ((outputs == BOS).sum(1) == torch.tensor([3, 1])).all()
        if not search:
            assert outputs.equal(expected.masked_fill(expected == END_OF_DOCUMENT, PAD))
    unknown = end in (None, EOS, [EOS])
    assert ("documents will end with padding. processor.configure(model) sets it" in warnings.text) == unknown


OTHER_LANGUAGE = 48
LANGUAGE_SETTINGS = {
    "paper": ({"decoder_start_token_id": OTHER_LANGUAGE}, (OTHER_LANGUAGE, BOS, None)),
    "paper-without": ({"decoder_start_token_id": EOS}, (None, BOS, None)),
    "mbart": ({"decoder_start_token_id": OTHER_LANGUAGE}, (EOS, OTHER_LANGUAGE, None)),
    "mbart50": ({"forced_bos_token_id": OTHER_LANGUAGE}, (EOS, EOS, OTHER_LANGUAGE)),
    "marian": ({"forced_bos_token_id": 7, "decoder_start_token_id": 7}, (EOS, PAD, None)),
}


@pytest.mark.parametrize(("template", "settings", "expected"), [(k, *v) for k, v in LANGUAGE_SETTINGS.items()])
def test_a_sentence_level_config_keeps_its_target_language(tiny_model, template, settings, expected):
    """What ends a document, what starts it and what is forced at its start; the limits of a sentence are dropped."""
    model = tiny_model(sentence_template=template.partition("-")[0])
    limits = {"max_length": 30, "min_length": 5, "bad_words_ids": [[PAD]], "forced_eos_token_id": EOS}
    config = model.document_generation_config(GenerationConfig(eos_token_id=7, **limits, **settings))
    assert (config.eos_token_id, config.decoder_start_token_id, config.forced_bos_token_id) == expected
    assert {name: getattr(config, name) for name in limits} == dict.fromkeys(limits) | {"min_length": 1}


def test_a_config_made_for_documents_is_not_changed(tiny_model):
    """Also if it was derived from the configuration of the model."""
    model = tiny_model()
    config = GenerationConfig.from_model_config(model.config)
    changes = {"align_sentences": False, "max_length_a": 3.0, "max_length": 30, "min_length": 3}
    changes |= {"bad_words_ids": [[PAD]], "eos_token_id": END_OF_DOCUMENT}
    config.update(**changes, allow_custom_entries=True)
    adapted = model.document_generation_config(config)
    assert {name: getattr(adapted, name) for name in changes} == changes
    assert model.document_generation_config(adapted).to_dict() == adapted.to_dict()


def test_the_first_token_of_the_vocabulary_may_end_documents(tiny_model):
    model = tiny_model(bos_token_id=3, decoder_start_token_id=3)
    model.generation_config.eos_token_id = 0
    [output] = model.generate(torch.tensor([[3, 5, 2, 3, 6, 2]])).tolist()
    assert output[-2:] == [EOS, 0] and output.count(3) == 2


@pytest.mark.parametrize(
    ("config", "unknown", "is_aligned"),
    [
        ({}, "bos_token_id", False),
        ({}, "eos_token_id", False),
        (MARIAN, "bos_token_id", True),
    ],
    ids=str,
)
def test_sentences_are_aligned_if_the_tokens_around_them_are_known(tiny_model, documents, config, unknown, is_aligned):
    model = tiny_model(**config)
    model.final_logits_bias[0, EOS] = -100.0
    tags = torch.tensor([[1] * 4 + [2] * 3 + [3] * 5, [1] * 4 + [0] * 8])
    expected = model.generate(**documents, group_tags=tags, align_sentences=is_aligned, max_length=60)
    setattr(model.config, unknown, None)
    assert model.generate(**documents, group_tags=tags, max_length=60).equal(expected)


def test_what_changes_the_model_does_not_become_a_setting_of_the_generation(checkpoint):
    changes = {"dropout": 0.3, "position_scope": "sentence"}
    model = GTransformerForConditionalGeneration.from_pretrained(checkpoint, **changes)
    assert (model.config.dropout, model.config.position_scope) == (0.3, "sentence")
    assert not set(changes) & set(model.generation_config.to_dict())


def test_plain_generation_config_and_masked_tags(tiny_model, documents):
    model = tiny_model()
    expected = model.generate(**documents)
    model.generation_config = GenerationConfig(eos_token_id=END_OF_DOCUMENT, pad_token_id=PAD, bos_token_id=BOS)
    tags = torch.tensor([[1] * 4 + [2] * 3 + [3] * 5, [1] * 12])
    assert model.generate(**documents, group_tags=tags, decoder_start_token_id=BOS).equal(expected)


def test_masked_tokens_open_no_sentence(tiny_model):
    model, ids = tiny_model(), torch.tensor([[1, 1, 1, 0, 5, 6, 2]])
    expected = model.generate(ids, attention_mask=ids.ne(PAD).long())
    ids = torch.where(ids == PAD, torch.tensor([0, 9, 2] + [0] * 4), ids)
    assert model.generate(ids, attention_mask=torch.tensor([[0] * 3 + [1] * 4])).equal(expected)


@pytest.mark.parametrize("source", ["input_ids", "group_tags"])
def test_an_encoder_that_returns_no_tags(tiny_model, documents, source):
    model = tiny_model()
    encoded, expected = model.get_encoder()(**documents), model.generate(**documents)
    given = {"input_ids": documents["input_ids"], "group_tags": encoded.group_tags}
    arguments = {"encoder_outputs": BaseModelOutput(encoded[0]), "attention_mask": documents["attention_mask"]}
    for settings in ({}, {"max_time": 600.0}, {"use_cache": False}):
        assert model.generate(**arguments, **{source: given[source]}, **settings).equal(expected)
    # Without tags, the length of a free document is that of Transformers.
    assert model.generate(**arguments, align_sentences=False).shape[1] <= 21


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"parallel_sentences": True}], ids=str)
def test_models_ready_to_serve_keep_the_alignment(tiny_model, documents, precision, search):
    model = tiny_model()
    if precision == "bfloat16":
        model = model.to(torch.bfloat16)
    else:
        quantize_linear_layers(model)
    outputs = model.generate(**documents, **search)
    assert [len(words_per_sentence(row)) for row in outputs] == [3, 1]


@pytest.mark.parametrize(
    "search", [{}, {"num_beams": 3}, {"use_cache": False}, {"return_dict_in_generate": True}], ids=str
)
def test_a_prefix_without_the_start_token_gets_it(tiny_model, documents, search):
    """As that of Transformers does; it is not lost in front of the first sentence."""
    model, prefix = tiny_model(), torch.tensor([[5, 7], [6, 8]])
    whole, started = (
        sequences(model.generate(**documents, decoder_input_ids=ids, **search))
        for ids in (prefix, torch.cat([torch.full((2, 1), BOS), prefix], dim=1))
    )
    assert whole.equal(started) and whole[:, :3].tolist() == [[BOS, 5, 7], [BOS, 6, 8]]


def test_the_start_token_is_no_padding(tiny_model, documents):
    """In front of prefixes of unequal lengths."""
    model, ids, mask = tiny_model(), torch.tensor([[5, 7], [PAD, 8]]), torch.tensor([[1, 1], [0, 1]])
    started = torch.cat([torch.full((2, 1), BOS), ids], dim=1), torch.cat([torch.ones_like(mask[:, :1]), mask], dim=1)
    details = {"return_dict_in_generate": True, "output_logits": True, "max_new_tokens": 9}
    whole, expected = (
        model.generate(**documents, decoder_input_ids=prefix, decoder_attention_mask=real, **details)
        for prefix, real in ((ids, mask), started)
    )
    assert whole.sequences.equal(expected.sequences) and whole.logits[0].equal(expected.logits[0])


def test_masked_tokens_of_a_prefix_are_in_no_sentence(documents):
    """As in `forward`, with any cache."""
    model = seeded_model(init_std=0.5)
    prefix = {
        "decoder_input_ids": torch.tensor([[BOS, BOS, 5, 8], [BOS, 7, 9, 8]]),
        "decoder_attention_mask": torch.tensor([[0, 1, 1, 1], [1, 1, 0, 1]]),
    }
    expected = model.generate(**documents, **prefix, return_dict_in_generate=True, output_logits=True)
    torch.testing.assert_close(expected.logits[0], model(**documents, **prefix).logits[:, -1])
    for caches in ({}, {"use_cache": False}, {"cache_implementation": "static"}):
        assert model.generate(**documents, **prefix, **caches).equal(expected.sequences)


def test_a_mask_of_pairs_of_tokens_leaves_the_tags_of_a_prefix(tiny_model):
    ids, mask = torch.tensor([[0, 5, 2, 0]]), torch.ones(1, 1, 4, 4, dtype=torch.bool).tril()
    inputs = tiny_model().prepare_inputs_for_generation(ids, decoder_attention_mask=mask)
    assert inputs["decoder_group_tags"].tolist() == [[1, 1, 1, 2]]


@pytest.mark.parametrize("opened", [1, 2])
def test_more_sentences_than_the_source_has_are_reported(tiny_model, warnings, opened):
    prefix = torch.tensor([[0, 5, 2] * opened])
    tiny_model().generate(torch.tensor([[0, 5, 2]]), decoder_input_ids=prefix)
    assert ("open more sentences than the source has" in warnings.text) == (opened == 2)


@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"return_dict_in_generate": True}], ids=str)
def test_words_of_the_source_are_banned_but_not_what_ends_its_sentences(tiny_model, documents, search):
    model = tiny_model()
    model.final_logits_bias[0, EOS] = 50.0
    ids, mask = documents["input_ids"], {"attention_mask": documents["attention_mask"]}
    first = model.generate(ids, **mask)[0, 1].item()
    ids[:, 1] = first
    for source in ({"input_ids": ids}, {"inputs": ids}):
        outputs = sequences(model.generate(**source, **mask, encoder_no_repeat_ngram_size=1, **search))
        assert [words_per_sentence(row) for row in outputs] == [[1, 1, 1], [1]]
        assert not torch.isin(ids[ids > EOS], outputs).any()


def test_padding_that_starts_a_document_is_a_prefix(tiny_model, documents):
    model = tiny_model(**MARIAN)
    prefix = torch.tensor([[PAD], [PAD]])
    assert model.generate(**documents, decoder_input_ids=prefix).equal(model.generate(**documents))


def test_a_loop_of_the_caller_gets_the_cache_of_transformers(tiny_model, documents):
    caches = []

    def loop(model, input_ids, **arguments):
        caches.append(arguments.get(CACHE_NAME))
        return input_ids

    tiny_model().generate(**documents, custom_generate=loop)
    assert len(caches) == 1 and not isinstance(caches[0], DocumentCache)


@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"do_sample": True}, {"return_dict_in_generate": True}])
def test_what_ends_a_sentence_does_not_end_a_document(tiny_model, documents, search):
    """Also where Transformers' trainer has added it to the token that does."""
    model = tiny_model()
    for ends in ([EOS, END_OF_DOCUMENT], [END_OF_DOCUMENT, EOS]):
        model.generation_config.eos_token_id = ends
        outputs = sequences(model.generate(**documents, **search))
        assert [len(words_per_sentence(row)) for row in outputs] == [3, 1]


def test_the_trainer_of_transformers_leaves_no_limit_behind(tiny_model, documents, tmp_path):
    model = tiny_model()
    expected = model.generate(**documents, min_length=9)
    arguments = Seq2SeqTrainingArguments(
        str(tmp_path), predict_with_generate=True, per_device_eval_batch_size=1, use_cpu=True, report_to=[]
    )
    labels = torch.tensor(
        [[5, EOS, BOS, 6, EOS, BOS, 7, EOS, END_OF_DOCUMENT], [5, EOS, END_OF_DOCUMENT] + [-100] * 6]
    )
    rows = [{**{name: ids[n] for name, ids in documents.items()}, "labels": labels[n]} for n in (0, 0, 1)]
    predictions = Seq2SeqTrainer(model, arguments).predict(rows, min_length=9).predictions
    assert predictions.shape[1] > 20 and (predictions[0] == predictions[1]).all()
    model.save_pretrained(tmp_path / "saved")
    loaded = GTransformerForConditionalGeneration.from_pretrained(tmp_path / "saved").eval()
    assert loaded.generate(**documents, min_length=9).equal(expected)


@pytest.mark.parametrize("search", [{}, {"parallel_sentences": True}, {"return_dict_in_generate": True}], ids=str)
def test_a_model_that_returns_tuples_generates(tiny_model, documents, search):
    model = tiny_model()
    outputs = []
    for model.config.return_dict in (True, False):
        outputs.append(sequences(model.generate(**documents, **search)))
    assert outputs[0].equal(outputs[1])


@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"parallel_sentences": True}], ids=str)
def test_offloaded_weights(tiny_model, documents, search):
    model = tiny_model()
    expected = model.generate(**documents, **search)
    cpu_offload(model, execution_device=torch.device("cpu"))
    assert model.device.type == "meta" and model.generate(**documents, **search).equal(expected)


class Silent(GTransformerForConditionalGeneration):
    """Never writes one of the words."""

    @functools.wraps(GTransformerForConditionalGeneration.forward)
    def forward(self, *args, **kwargs):
        outputs = super().forward(*args, **kwargs)
        outputs.logits[..., 5] = -1e4
        return outputs


def without_a_word(module, args, outputs):
    outputs.logits[..., 5] = -1e4


@pytest.mark.parametrize("kind", ["hook", "subclass"])
def test_a_changed_forward_is_called(tiny_model, documents, kind):
    model = tiny_model()
    model.final_logits_bias[0, 5] = 50.0
    assert (model.generate(**documents) == 5).any()
    if kind == "hook":
        model.register_forward_hook(without_a_word)
    else:
        model.__class__ = Silent
    assert not (model.generate(**documents) == 5).any()
    with pytest.raises(ValueError, match="cannot be combined with hooks of the model"):
        model.generate(**documents, parallel_sentences=True)


@pytest.mark.parametrize("search", [{}, {"parallel_sentences": False}, {"num_beams": 2}, {"do_sample": True}], ids=str)
def test_a_sentence_takes_all_positions_that_it_may_have(tiny_model, search):
    """Where positions count in the sentence: six words, with `<s>` and `</s>`, of which the decoder reads both."""
    model = tiny_model(position_scope="sentence", max_position_embeddings=8)
    model.final_logits_bias[0, EOS] = -100.0
    [output] = model.generate(torch.tensor([[0, 5, 5, 5, 5, 5, 5, 2, 0, 5, 2]]), **search)
    assert words_per_sentence(output) == [6, 6]


@pytest.mark.parametrize("config", [{}, {"position_scope": "sentence"}], ids=str)
@pytest.mark.parametrize("documents", [1, 2])
def test_steps_of_a_static_cache_are_one_graph(tiny_model, config, documents):
    """Transformers compiles them on a GPU and captures their kernels. Here its settings ask for it on a CPU."""
    model, graphs = tiny_model(init_std=0.25, **config), []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    compiled = CompileConfig(backend=backend, mode=None)
    compiled._compile_all_devices = True
    for lengths in ([2, 3, 1], [3, 1, 2]):
        arguments = {**random_documents([lengths] * documents), "max_length": 30, "max_length_b": 3}
        outputs = model.generate(**arguments, cache_implementation="static", compile_config=compiled)
        assert outputs.equal(model.generate(**arguments))
    assert len(graphs) == 1
