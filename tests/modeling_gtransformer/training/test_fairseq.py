"""What a fairseq run means: its arguments, its weights under names of every age, and the embeddings that it shares."""

import os
from argparse import Namespace

import pytest
import torch
from fairseq_reference import Reference, older_names, write_run

from modeling_gtransformer.training.fairseq import config_from_fairseq, model_from_fairseq, read_checkpoint


UNTIED = {"share_all_embeddings": False, "share_decoder_input_output_embed": False}
ENCODER, DECODER = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
OUTPUT = "decoder.output_projection.weight"


@pytest.fixture
def reference():
    return Reference("postnorm_sin_k2")


def logits_and_states(model, reference):
    """Logits `(B, T, V)` and decoder states `(B, T, D)` of a batch of the reference."""
    batch = reference.batch("valid_ragged")
    del batch["labels"]
    outputs = model(**batch, output_hidden_states=True)
    return outputs.logits, outputs.decoder_hidden_states[-1]


def test_older_names(reference):
    args, weights = reference.meta["args"], older_names(reference.weights)
    assert "decoder.layers.0.encoder_attn.in_proj_weight" in weights
    del weights[OUTPUT]
    expected = reference.model.state_dict()
    model = model_from_fairseq(args | {"arch": "transformer_doc_base"}, weights)
    assert all(tensor.equal(expected[name]) for name, tensor in model.state_dict().items())


def test_an_older_output_layer_has_its_own_name(reference):
    weights = reference.weights
    weights["decoder.embed_out"] = weights.pop(OUTPUT) + 1
    model = model_from_fairseq(reference.meta["args"] | UNTIED, weights)
    assert model.lm_head.weight.equal(weights["decoder.embed_out"])


def test_half_precision_is_widened(reference):
    """As where the authors evaluate: their training with --fp16 saves half precision."""
    model = model_from_fairseq(reference.meta["args"], {k: v.half() for k, v in reference.weights.items()})
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_what_an_older_run_leaves_unsaid(reference):
    args = reference.meta["args"]
    unsaid = ("no_scale_embedding", "layernorm_embedding", "encoder_learned_pos", "cross_ctxlayers", "activation_fn")
    older = {name: value for name, value in args.items() if name not in unsaid} | {"max_source_positions": None}
    assert config_from_fairseq(older, 115).to_dict() == config_from_fairseq(args, 115).to_dict()
    mbart = config_from_fairseq({**older, "arch": "mbart_large", "decoder_learned_pos": None}, 115)
    assert (mbart.position_embedding_type, mbart.layernorm_embedding) == ("learned", True)
    assert (mbart.activation_function, mbart.init_std, mbart.tie_word_embeddings) == ("gelu", 0.02, True)
    del older["decoder_attention_heads"], older["doc_mode"]
    with pytest.raises(ValueError, match=r"lack \['doc_mode', 'decoder_attention_heads'\]"):
        config_from_fairseq(older, 115)


def test_doc_modes(reference):
    args = reference.meta["args"] | {"encoder_ctxlayers": 1, "decoder_ctxlayers": 0, "cross_ctxlayers": 7}
    config = config_from_fairseq(args, 115)
    assert config.encoder_attention_types == ["group", "group", "combined"]
    assert config.decoder_attention_types == ["group"] * 3 and config.cross_attention_types == ["combined"] * 3
    config = config_from_fairseq(args | {"doc_mode": "full"}, 115)
    for stack in ("encoder", "decoder", "cross"):
        assert config.attention_types(stack) == ["global"] * 3


@pytest.mark.parametrize(
    "argument",
    [
        {"no_token_positional_embeddings": True},
        {"adaptive_input": True},
        {"adaptive_softmax_cutoff": "10,20"},
        {"cross_self_attention": True},
        {"no_cross_attention": True},
        {"no_decoder_final_norm": True},
        {"encoder_layers_to_keep": "0,2"},
        {"quant_noise_pq": 0.1},
        {"prepend_bos": True},
        {"decoder_output_dim": 16},
        {"decoder_embed_dim": 16},
        {"decoder_normalize_before": True},
        {"decoder_learned_pos": True},
        {"doc_mode": "sentence"},
        {"activation_fn": "swish"},
        {"arch": "lightconv"},
    ],
    ids=lambda argument: next(iter(argument)),
)
def test_what_no_configuration_expresses_is_refused_by_name(reference, argument):
    with pytest.raises(ValueError, match=next(iter(argument))):
        model_from_fairseq(reference.meta["args"] | argument, reference.weights)


def test_learned_positions_of_unlike_number_are_reported(caplog):
    Reference("mbart_prenorm_learned_k2")
    assert "encoder has learned 96 positions, the decoder 128" in caplog.text


def test_untied_embeddings(reference):
    """Matrices of the same size, which nothing but the arguments tells from shared ones."""
    weights = reference.weights
    weights[OUTPUT] = torch.randn_like(weights[OUTPUT])
    model = model_from_fairseq(reference.meta["args"] | UNTIED, weights)
    logits, states = logits_and_states(model, reference)
    torch.testing.assert_close(logits, states @ weights[OUTPUT].T)
    torch.testing.assert_close(states, logits_and_states(reference.model, reference)[1])
    assert not model.config.tie_word_embeddings


def test_encoder_with_embeddings_of_its_own(reference):
    """The decoder's input and output share theirs."""
    weights = reference.weights
    weights[ENCODER] = torch.randn_like(weights[ENCODER])
    args = reference.meta["args"] | UNTIED | {"share_decoder_input_output_embed": True}
    model = model_from_fairseq(args, weights)
    batch = reference.batch("valid_ragged")
    ids, mask = batch["input_ids"], batch["attention_mask"]
    expected = reference.model.model.encoder(
        inputs_embeds=weights[ENCODER][ids] * 32**0.5,
        attention_mask=mask,
        group_tags=reference["valid_ragged.encoder_tags"],
    )[0]
    torch.testing.assert_close(model.model.encoder(ids, mask)[0][mask.bool()], expected[mask.bool()])
    logits, states = logits_and_states(model, reference)
    torch.testing.assert_close(logits, states @ weights[DECODER].T)


def test_a_larger_source_vocabulary(reference):
    """The words that only the source has have no probability, so that of the others is what it would be alone."""
    weights = reference.weights
    weights[ENCODER] = torch.cat([weights[ENCODER], torch.randn(5, 32)])
    model = model_from_fairseq(reference.meta["args"] | UNTIED, weights)
    assert model.config.vocab_size == 120
    logits, states = logits_and_states(model, reference)
    expected = (states @ weights[OUTPUT].T).log_softmax(-1)
    torch.testing.assert_close(logits.log_softmax(-1)[..., :115], expected)
    assert (logits[..., 115:] == -torch.inf).all()
    model.generation_config.eos_token_id = 113
    for settings in ({}, {"num_beams": 4}, {"parallel_sentences": True, "num_beams": 4}, {"do_sample": True}):
        generated = model.generate(reference.batch("single_nopad")["input_ids"], **settings)
        assert generated.max() < 115


def test_a_larger_target_vocabulary(reference):
    weights = reference.weights
    weights[DECODER] = torch.cat([weights[DECODER], torch.randn(5, 32)])
    weights[OUTPUT] = torch.randn(120, 32)
    model = model_from_fairseq(reference.meta["args"] | UNTIED, weights)
    logits, states = logits_and_states(model, reference)
    torch.testing.assert_close(logits, states @ weights[OUTPUT].T)
    torch.testing.assert_close(states, logits_and_states(reference.model, reference)[1])


@pytest.mark.parametrize("sharing", [{}, UNTIED | {"share_decoder_input_output_embed": True}])
def test_shared_embeddings_must_be_equal(reference, sharing):
    reference.weights[OUTPUT] = reference.weights[OUTPUT] + 1
    with pytest.raises(ValueError, match=r"share_\w+ is set, but the checkpoint's .*decoder.output_projection"):
        model_from_fairseq(reference.meta["args"] | sharing, reference.weights)


def test_all_weights_are_used_and_none_is_missing(reference):
    args, weights = reference.meta["args"], reference.weights
    with pytest.raises(ValueError, match=r"'model\.encoder\.layers\.0\.self_attn_gate\.weight'.* are missing"):
        model_from_fairseq(args | {"encoder_ctxlayers": 3}, weights)
    with pytest.raises(ValueError, match=r"\['model\.decoder\.alignment\.weight'\] are not expected"):
        model_from_fairseq(args, weights | {"decoder.alignment.weight": torch.zeros(2)})
    for name in ("encoder.layers.0.self_attn.in_proj_bias", "decoder.embed_out"):
        with pytest.raises(ValueError, match=f"both an old and a current name, one of them {name}"):
            model_from_fairseq(args, weights | {name: torch.zeros(96)})
    with pytest.raises(ValueError, match="last layer norm"):
        model_from_fairseq(args, weights | {"decoder.version": torch.tensor([2.0])})
    with pytest.raises(ValueError, match=r"lacks \['decoder\.output_projection\.weight'\]"):
        model_from_fairseq(args | UNTIED, {name: weights[name] for name in weights if name != OUTPUT})
    with pytest.raises(RuntimeError, match=r"encoder\.layers\.0\.fc1\.weight"):
        model_from_fairseq(args | {"encoder_ffn_embed_dim": 48}, weights)


class Harmful:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "torch1.4"])
def test_loading_runs_no_code(reference, tmp_path, zipped):
    path = tmp_path / "checkpoint_best.pt"
    write_run(tmp_path, reference.meta["args"], reference.weights, _use_new_zipfile_serialization=zipped)
    args, weights = read_checkpoint(path)
    assert args == reference.meta["args"] and weights.keys() == reference.weights.keys()
    args["user_dir"] = Harmful(tmp_path / "harm")
    write_run(tmp_path, args, weights, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ValueError, match=r"holds a \w+\.mkdir\. Only tensors, .* could run code"):
        read_checkpoint(path)
    assert not (tmp_path / "harm").exists()


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "checkpoint.pt"
    torch.save({"args": None, "cfg": {"model": {}}, "model": {}}, path)
    with pytest.raises(ValueError, match="not a checkpoint of the authors' code"):
        read_checkpoint(path)
    torch.save({"args": Namespace(), "state_dict": {}}, path)
    with pytest.raises(ValueError, match="not a checkpoint of the authors' code"):
        read_checkpoint(path)
    for content in (b"", b"no checkpoint", path.read_bytes()[:300]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="damaged"):
            read_checkpoint(path)


@pytest.mark.parametrize("arch, init_std", [("mbart_large", 0.02), ("gtransformer_base", None)])
@pytest.mark.parametrize("no_scale_embedding", [False, True])
def test_scale_and_initialisation_are_those_of_the_run(reference, arch, init_std, no_scale_embedding):
    args = reference.meta["args"] | {"arch": arch, "no_scale_embedding": no_scale_embedding}
    config = config_from_fairseq(args, 115)
    assert (config.scale_embedding, config.init_std) == (not no_scale_embedding, init_std)
    model = model_from_fairseq(args, reference.weights)
    embeddings = model.model.encoder.embed_tokens
    scale = 1 if no_scale_embedding else config.d_model**0.5
    torch.testing.assert_close(embeddings(torch.tensor([5])), embeddings.weight[5:6] * scale)
