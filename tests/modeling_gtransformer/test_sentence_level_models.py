"""A sentence-level translator that is handed over as an object; `tests/test_families.py` compares its translations."""

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, pipeline

from modeling_gtransformer.sentence_level_models import from_sentence_level_model, load_processor


@pytest.fixture
def marian(sentence_level_checkpoint):
    return AutoModelForSeq2SeqLM.from_pretrained(sentence_level_checkpoint("marian"))


def test_weights_are_shared(marian):
    converted = from_sentence_level_model(marian)
    for ours, theirs in (
        (converted.lm_head.weight, marian.lm_head.weight),
        (converted.model.decoder.embed_tokens.weight, marian.model.decoder.embed_tokens.weight),
        (converted.model.encoder.layers[1].fc1.weight, marian.model.encoder.layers[1].fc1.weight),
    ):
        assert ours.data_ptr() == theirs.data_ptr()
    assert set(converted.config.encoder_attention_types) == {"group"}


def test_a_weight_without_a_place_is_refused(marian):
    marian.model.encoder.layer_scale = torch.nn.Parameter(torch.ones(1))
    with pytest.raises(ValueError, match=r"do not fit a G-Transformer: model\.encoder\.layer_scale"):
        from_sentence_level_model(marian)


def test_an_object_with_its_tokenizer(marian, sentence_level_checkpoint):
    tokenizer = AutoTokenizer.from_pretrained(sentence_level_checkpoint("marian"))
    translate = pipeline("document-translation", model=marian, tokenizer=tokenizer)
    assert translate.processor.tokenizer is tokenizer and translate.processor.sentence_template == "marian"
    assert translate(["the cat sleeps"])["translation_text"] == "die katze schläft"


def test_without_a_processor_it_says_what_to_pass(marian):
    converted = from_sentence_level_model(marian)
    converted.name_or_path = ""
    with pytest.raises(ValueError, match="as processor="):
        load_processor(converted, None)


def test_the_processor_is_that_of_the_same_commit(marian, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "modeling_gtransformer.sentence_level_models.GTransformerProcessor.from_pretrained",
        lambda name, **arguments: asked.append((name, arguments)),
    )
    for commit in (None, "0123abcd"):
        marian.config._commit_hash = commit
        load_processor(marian, None)
    assert asked == [(marian.name_or_path, {"revision": revision}) for revision in ("main", "0123abcd")]
