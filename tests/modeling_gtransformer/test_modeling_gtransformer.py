import pytest
import torch
from safetensors.torch import load_file
from tiny import BOS, EOS, ONLY_GLOBAL, ONLY_GROUP, PAD, TINY
from transformers import (
    AutoModel,
    AutoModelForSeq2SeqLM,
    BitsAndBytesConfig,
    DynamicCache,
    EncoderDecoderCache,
    MBartConfig,
    MBartForConditionalGeneration,
    StaticCache,
    T5Config,
)

from modeling_gtransformer import (
    GTransformerConfig,
    GTransformerForConditionalGeneration,
    GTransformerModel,
)
from modeling_gtransformer.group_tags import group_tags
from modeling_gtransformer.layers_gtransformer import GTransformerGate


FRESH = ("_global.", "_gate.")


@pytest.fixture
def mbart(tmp_path):
    model = MBartForConditionalGeneration(MBartConfig(**TINY, decoder_start_token_id=48)).eval()
    with torch.no_grad():
        model.final_logits_bias.normal_()
    model.save_pretrained(tmp_path)
    return model


def test_mbart_checkpoint_is_used_whole(mbart, tmp_path):
    model, info = GTransformerForConditionalGeneration.from_pretrained(
        tmp_path, sentence_template="paper", output_loading_info=True
    )
    ours, theirs = model.state_dict(), mbart.state_dict()
    assert set(info["missing_keys"]) == {name for name in ours if any(part in name for part in FRESH)}
    assert not info["unexpected_keys"] and not info["mismatched_keys"]
    assert theirs.keys() == ours.keys() - set(info["missing_keys"])
    assert all(tensor.equal(ours[name]) for name, tensor in theirs.items())
    for name in info["missing_keys"]:
        assert (ours[name].std() - 0.02).abs() < 0.004 if name.endswith("weight") else (ours[name] == 0).all(), name
    # mBART's start token is the target language, which ends the documents here.
    assert model.generation_config.eos_token_id == 48
    assert model.generation_config.forced_eos_token_id is None


def test_other_checkpoints_are_refused(tmp_path):
    T5Config().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"unsupported type 't5'\. Supported types: gtransformer, .*marian"):
        GTransformerForConditionalGeneration.from_pretrained(tmp_path)


def test_checkpoint_round_trip(tiny_model, documents, tmp_path):
    model = tiny_model(encoder_attention_types=["combined", "global"])
    model.generation_config.max_length_a = 3.0
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert isinstance(loaded, GTransformerForConditionalGeneration)
    inputs = {**documents, "decoder_input_ids": documents["input_ids"]}
    torch.testing.assert_close(loaded(**inputs).logits, model(**inputs).logits)
    assert loaded.generation_config.to_dict() == model.generation_config.to_dict()
    base = AutoModel.from_pretrained(tmp_path)
    assert isinstance(base, GTransformerModel)
    torch.testing.assert_close(base(**inputs)[0], model.model(**inputs)[0])
    assert loaded.lm_head.weight is loaded.model.shared.weight is loaded.model.encoder.embed_tokens.weight


def test_copies_of_tied_weights_are_saved_once(tiny_model, tmp_path):
    """As FSDP gathers them."""
    model = tiny_model()
    copies = {name: value.clone() for name, value in model.state_dict().items()}
    model.save_pretrained(tmp_path, state_dict=copies)
    saved = load_file(tmp_path / "model.safetensors")
    assert copies.keys() - saved.keys() == set(model.all_tied_weights_keys) and len(copies) - len(saved) == 3
    assert saved["model.shared.weight"].equal(model.lm_head.weight)


def test_untied_embeddings_stay_apart(tiny_model, documents, tmp_path):
    """When they are resized, saved and loaded; no parameter is there that nothing uses."""
    model = tiny_model(tie_word_embeddings=False)
    inputs = {**documents, "decoder_input_ids": documents["input_ids"]}
    with torch.no_grad():
        expected = model(**inputs).logits
    model.resize_token_embeddings(60)
    torch.testing.assert_close(model(**inputs).logits[..., :50], expected)
    tables = (model.model.encoder.embed_tokens, model.model.decoder.embed_tokens, model.lm_head)
    assert {len(table.weight) for table in tables} == {model.config.vocab_size} == {60}
    model.save_pretrained(tmp_path)
    loaded = GTransformerForConditionalGeneration.from_pretrained(tmp_path)
    torch.testing.assert_close(loaded(**inputs).logits, model(**inputs).logits)
    base = GTransformerModel.from_pretrained(tmp_path)
    base.resize_token_embeddings(50)
    torch.testing.assert_close(base(**inputs)[0], model.model(**inputs)[0])
    model(**inputs, labels=documents["input_ids"]).loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_paper_initialisation_of_the_base_model():
    """Xavier as in the authors' base architecture (init_std=None), not mBART's normal distribution."""
    config = GTransformerConfig(**(TINY | {"d_model": 64, "init_std": None, "normalize_before": False}))
    layer = GTransformerForConditionalGeneration(config).model.decoder.layers[1]
    for attention in (layer.self_attn, layer.encoder_attn_global):
        bound = 0.5**0.5 * (6 / 128) ** 0.5
        assert 0.9 * bound < attention.q_proj.weight.abs().max() <= bound
        assert 0.5 < attention.k_proj.bias.abs().max() * 8 <= 1
        assert (attention.out_proj.bias == 0).all()
    assert (layer.self_attn_gate.bias == 0).all()
    embeddings = GTransformerForConditionalGeneration(config).model.shared.weight
    assert (embeddings[PAD] == 0).all() and 0.11 < embeddings.std() < 0.14


def test_labels_make_the_decoder_input(tiny_model, documents):
    model = tiny_model()
    labels = torch.tensor([[5, 2, 0, 6, 2, 49], [7, 2, 49, -100, -100, -100]])
    shifted = torch.tensor([[0, 5, 2, 0, 6, 2], [0, 7, 2, 1, 1, 1]])
    assert model.prepare_decoder_input_ids_from_labels(labels).equal(shifted)
    torch.testing.assert_close(
        model(**documents, labels=labels).logits[:, :3], model(**documents, decoder_input_ids=shifted).logits[:, :3]
    )
    with pytest.raises(ValueError, match="decoder has no input"):
        model(**documents)


def test_tuples_instead_of_dictionaries(tiny_model, documents):
    model, target = tiny_model(), {"decoder_input_ids": documents["input_ids"]}
    expected = model(**documents, **target).logits
    assert model(**documents, **target, return_dict=False)[0].equal(expected)
    model.config.return_dict = False
    assert model(**documents, **target)[0].equal(expected)


def test_encoder_outputs_carry_the_sentences(tiny_model, documents):
    """As the encoder returned them, as a tuple, or with the ids beside them."""
    model, target = tiny_model(), torch.tensor([[0, 5, 2, 0, 6, 2], [0, 5, 9, 9, 6, 2]])
    expected = model(**documents, decoder_input_ids=target)
    mask = documents["attention_mask"]
    options = ({}, {"return_dict": False}, {"return_dict": False, "output_hidden_states": True})
    for encoded in (model.get_encoder()(**documents, **each) for each in options):
        output = model(encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=target)
        torch.testing.assert_close(output.logits, expected.logits)
        assert output.encoder_hidden_states is None
    bare = [expected.encoder_last_hidden_state, (expected.encoder_last_hidden_state,)]
    torch.testing.assert_close(
        model(**documents, encoder_outputs=bare, decoder_input_ids=target).logits, expected.logits
    )


@pytest.mark.parametrize("global_positions", ["none", "sentence"])
def test_global_cross_attention_reads_the_numbers_of_source_sentences(tiny_model, documents, global_positions):
    model = tiny_model(**ONLY_GLOBAL, position_scope="sentence", global_positions=global_positions)
    target = {"attention_mask": documents["attention_mask"], "decoder_input_ids": documents["input_ids"]}
    encoded = model.get_encoder()(**documents)
    expected = model(encoder_outputs=encoded, **target).logits
    encoded.group_tags = encoded.group_tags + 1
    numbered = model(encoder_outputs=encoded, **target).logits
    assert numbered.isclose(expected, atol=1e-5).all() == (global_positions == "none")


CACHED = torch.tensor([[0, 5, 2, 0, 6, 7, 2, 0, 8], [0, 7, 9, 2, 49, 1, 1, 1, 1]])
CACHES = {
    "none": lambda: None,
    "dynamic": DynamicCache,
    "encoder-decoder": lambda: EncoderDecoderCache(DynamicCache(), DynamicCache()),
}


@pytest.mark.parametrize("make_cache", CACHES.values(), ids=CACHES.keys())
@pytest.mark.parametrize("chunks", [[1] * 9, [4, 5], [2, 1, 6]], ids=str)
def test_cache_equals_the_full_forward(tiny_model, documents, chunks, make_cache):
    """The model's own cache, or one that the caller brings; what comes back goes on."""
    model = tiny_model()
    full = model(**documents, decoder_input_ids=CACHED).logits
    cache, parts, encoder_outputs = make_cache(), [], model.model.encoder(**documents)
    given = getattr(cache, "self_attention_cache", cache)
    for part in CACHED.split(chunks, dim=1):
        output = model(
            attention_mask=documents["attention_mask"],
            encoder_outputs=encoder_outputs,
            decoder_input_ids=part,
            past_key_values=cache,
            use_cache=True,
        )
        cache = output.past_key_values
        parts.append(output.logits)
    torch.testing.assert_close(torch.cat(parts, dim=1), full, rtol=1e-4, atol=1e-5)
    assert given is None or given.get_seq_length() == CACHED.shape[1]


def test_a_static_cache_of_two_rows_equals_the_full_forward(tiny_model, documents):
    """Its keys are longer than what has been decoded."""
    model = tiny_model()
    full = model(**documents, decoder_input_ids=CACHED).logits
    cache = EncoderDecoderCache(StaticCache(config=model.config, max_cache_len=12), DynamicCache())
    parts, tags = [], group_tags(CACHED, BOS, EOS)
    for start, stop in ((0, 4), (4, 9)):
        inputs = {"decoder_input_ids": CACHED[:, start:stop], "decoder_group_tags": tags[:, :stop]}
        parts.append(model(**documents, **inputs, past_key_values=cache, use_cache=True).logits)
    torch.testing.assert_close(torch.cat(parts, dim=1), full, rtol=1e-4, atol=1e-5)


def test_a_cache_of_unknown_tokens_needs_their_tags(tiny_model, documents):
    """A cache of Transformers knows keys and values, and not in which sentence they are: the caller must say so."""
    model, cache = tiny_model(), CACHES["encoder-decoder"]()
    inputs = {
        "attention_mask": documents["attention_mask"],
        "encoder_outputs": model.model.encoder(**documents),
        "past_key_values": cache,
        "use_cache": True,
    }
    model(**inputs, decoder_input_ids=CACHED[:, :4])
    with pytest.raises(ValueError, match="pass decoder_group_tags for these and the new tokens"):
        model(**inputs, decoder_input_ids=CACHED[:, 4:])
    tags = group_tags(CACHED, BOS, EOS)
    rest = model(**inputs, decoder_input_ids=CACHED[:, 4:], decoder_group_tags=tags)
    full = model(**documents, decoder_input_ids=CACHED).logits
    torch.testing.assert_close(rest.logits, full[:, 4:], rtol=1e-4, atol=1e-5)
    assert rest.past_key_values is cache


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("global_positions", ["none", "sentence"])
def test_gradient_checkpointing_gives_the_same_gradients(tiny_model, documents, use_reentrant, global_positions):
    model = tiny_model(global_positions=global_positions, dropout=0.0).train()
    labels = documents["input_ids"].masked_fill(documents["input_ids"] == PAD, -100)
    gradients = []
    for enable in (False, True):
        if enable:
            model.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
        model.zero_grad()
        model(**documents, labels=labels).loss.backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    torch.testing.assert_close(*gradients)


def test_sinusoids_have_no_limit(tiny_model):
    """Each position differs from the others."""
    long = torch.randint(3, 48, (1, 129))
    short, other = (
        tiny_model(position_embedding_type="sinusoidal", max_position_embeddings=size) for size in (8, 200)
    )
    other.load_state_dict(short.state_dict())
    logits = short(input_ids=long, decoder_input_ids=long).logits
    torch.testing.assert_close(logits, other(input_ids=long, decoder_input_ids=long).logits)
    states = short.get_encoder()(torch.full((1, 129), 5)).last_hidden_state[0]
    assert len(states.unique(dim=0)) == 129


def test_resized_vocabulary(tiny_model, documents):
    model = tiny_model()
    torch.nn.init.normal_(model.final_logits_bias)
    inputs = {**documents, "decoder_input_ids": documents["input_ids"]}
    before = model(**inputs).logits
    model.resize_token_embeddings(60)
    assert model(**inputs).logits.shape[-1] == 60 == model.config.vocab_size
    torch.testing.assert_close(model(**inputs).logits[..., :50], before)
    model.resize_token_embeddings(50)
    torch.testing.assert_close(model(**inputs).logits, before)


def test_the_bias_is_added_to_the_logits_and_counts_in_the_loss(tiny_model, documents):
    """As Opus-MT has it, which by it never writes padding."""
    model = tiny_model()
    inputs = {**documents, "labels": torch.tensor([[5, 2, 0, 6, 2, 0, 7, 2, 49], [8, 2, 49] + [-100] * 6])}
    logits = model(**inputs).logits
    torch.nn.init.normal_(model.final_logits_bias)
    logits = logits + model.final_logits_bias
    torch.testing.assert_close(model(**inputs).logits, logits)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), inputs["labels"].flatten())
    for skip_logits in (False, True):
        torch.testing.assert_close(model(**inputs, skip_logits=skip_logits).loss, loss)


@pytest.mark.parametrize("hook", ["forward", "full_backward"])
def test_hooks_of_the_output_layer_take_part_in_training(tiny_model, documents, hook):
    model, calls = tiny_model().train(), []
    getattr(model.lm_head, f"register_{hook}_hook")(lambda *_: calls.append(hook))
    labels = torch.tensor([[5, 2, 0, 6, 2, 0, 7, 2, 49], [8, 2, 49] + [-100] * 6])
    model(**documents, labels=labels).loss.backward()
    assert calls == [hook]


@pytest.mark.parametrize("bits", [8, 4])
def test_quantised_linear_layers(tiny_model, documents, tmp_path, bits):
    bitsandbytes = pytest.importorskip("bitsandbytes")
    model = tiny_model(d_model=64, encoder_ffn_dim=64, decoder_ffn_dim=64)
    model.save_pretrained(tmp_path)
    settings = {8: {"load_in_8bit": True}, 4: {"load_in_4bit": True, "bnb_4bit_compute_dtype": torch.float32}}
    quantised = GTransformerForConditionalGeneration.from_pretrained(
        tmp_path, quantization_config=BitsAndBytesConfig(**settings[bits]), device_map="cpu"
    )
    layer = quantised.model.decoder.layers[1]
    assert isinstance(layer.self_attn_global.q_proj, (bitsandbytes.nn.Linear8bitLt, bitsandbytes.nn.Linear4bit))
    assert type(layer.self_attn_gate) is GTransformerGate
    labels = documents["input_ids"].masked_fill(documents["input_ids"] == 1, -100)
    losses = [m(**documents, labels=labels).loss.item() for m in (model, quantised)]
    assert losses[1] == pytest.approx(losses[0], rel=0.2) and losses[1] != losses[0]


def test_states_without_tags_open_the_whole_source_with_a_warning(tiny_model, documents, monkeypatch):
    """Bare encoder states, and embeddings, do not show where sentences begin."""
    model, target, warnings = tiny_model(**ONLY_GROUP), torch.tensor([[0, 5, 2, 0, 6, 2]] * 2), []
    monkeypatch.setattr("modeling_gtransformer.group_tags.logger.warning_once", warnings.append)
    states, mask = model.get_encoder()(**documents).last_hidden_state, documents["attention_mask"]
    bare = {"encoder_outputs": (states,), "attention_mask": mask, "decoder_input_ids": target}
    expected = model(**documents, decoder_input_ids=target).logits
    tags = group_tags(documents["input_ids"], BOS, EOS)
    torch.testing.assert_close(model(**bare, group_tags=tags).logits, expected)
    assert not warnings
    opened = model(**bare).logits
    assert not torch.allclose(opened, expected)
    # Padding stays closed.
    bare["encoder_outputs"] = (states.masked_fill(mask[..., None] == 0, 9.0),)
    torch.testing.assert_close(model(**bare).logits, opened)
    assert {"sentences of the source are unknown" in message for message in warnings} == {True}
    assert "pass group_tags, or the ids" in warnings[0]
    embeds = model.model.decoder.embed_tokens(target)
    model(**documents, decoder_inputs_embeds=embeds)
    assert "sentences of the target are unknown" in warnings[-1] and "pass decoder_group_tags" in warnings[-1]


@pytest.mark.parametrize("scope", ["document", "sentence"])
def test_as_many_tokens_as_positions_are_taken(tiny_model, scope):
    model = tiny_model(max_position_embeddings=8, position_scope=scope)
    full = torch.tensor([[0, 5, 6, 7, 8, 9, 10, 2]])
    short = full[:, :3]
    for source, target in ((full, full), (short, full), (full, short)):
        assert model(input_ids=source, decoder_input_ids=target).logits.shape == (1, target.shape[1], 50)
    longer = torch.cat([full[:, :2], full[:, 1:]], dim=1)
    for source, target in ((longer, short), (short, longer)):
        with pytest.raises(ValueError, match="9 tokens, but the model has learned 8 positions"):
            model(input_ids=source, decoder_input_ids=target)


def test_a_loss_fills_no_cache(tiny_model, documents):
    """Keys and values of a training step would take memory that nobody reads."""
    model = tiny_model()
    assert model.config.use_cache
    for asked in ({}, {"use_cache": True}):
        assert model(**documents, labels=documents["input_ids"], **asked).past_key_values is None
