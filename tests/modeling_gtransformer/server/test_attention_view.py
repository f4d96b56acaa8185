"""Attention of a sentence: shares of the global attention, and gates."""

from xml.etree import ElementTree

import pytest
import torch
from server_fixtures import elements, text_of
from tiny import ONLY_GROUP

from modeling_gtransformer import Translator
from modeling_gtransformer.evaluation.attention_recording import record_attention
from modeling_gtransformer.server.attention_view import attended_sentences, attention_html


@pytest.mark.parametrize(
    "types", [{}, {"encoder_global_layers": 1, "cross_attention_types": ["group", "global"]}], ids=["default", "mixed"]
)
def test_attention_of_a_sentence(save_checkpoint, processor, types):
    translate = Translator(save_checkpoint(**types)).pipeline
    pairs = translate(["the cat", "it is old", "sie"])["sentences"]
    pairs[0]["translation_text"] = ""  # a translation without words
    implementation = translate.model.config._attn_implementation
    shown = attended_sentences(translate.model, translate.processor, pairs, 1)
    assert translate.model.config._attn_implementation == implementation

    words = [processor.encode_sentences([pair["translation_text"]])[0] for pair in pairs[1:]]
    ids = {
        "encoder": processor([pair["source_text"] for pair in pairs], return_tensors="pt")["input_ids"],
        "decoder": torch.tensor([processor.build_source([[], *words])]),
    }
    ids["cross"] = ids["decoder"]
    with torch.inference_mode():
        sublayers = record_attention(translate.model, input_ids=ids["encoder"], decoder_input_ids=ids["decoder"])
    begins = ids["encoder"][0].eq(processor.bos_token_id).nonzero()[:, 0].tolist()
    for stack in ("encoder", "decoder", "cross"):
        start, stop = ids[stack][0].eq(processor.bos_token_id).nonzero()[1:, 0].tolist()
        layers = [layer for layer in sublayers if layer.stack == stack and "global" in layer.weights]
        if stack in ("encoder", "cross"):
            mean = torch.stack([layer.weights["global"][0, start:stop].mean(0) for layer in layers]).mean(0)
            expected = [part.sum().item() for part in mean.tensor_split(begins[1:])]
            assert shown.shares[stack] == pytest.approx(expected, rel=1e-4) and sum(expected) == pytest.approx(1)
        gates = [layer.gate[0, start:stop].mean().item() for layer in layers if layer.gate is not None]
        assert bool(gates) == (stack in shown.gates)
        if gates:
            assert shown.gates[stack] == pytest.approx(sum(gates) / len(gates), rel=1e-4)

    html = attention_html(shown, ["a", "<b>", "c"], "en", 5, 1)
    labels = [text_of(item[0]) for item in ElementTree.fromstring(f"<div>{html}</div>").iter("li")]
    assert labels[:3] == ["5. a", "6. <b> (the sentence itself)", "7. c"]
    shares = [text_of(share) for share in elements(html, "share")]
    assert shares[:3] == [f"{share:.1%}" for share in shown.shares["cross"]]
    assert len(shares) == 6 + len(shown.gates)


def test_a_model_without_global_attention(save_checkpoint):
    translate = Translator(save_checkpoint(**ONLY_GROUP)).pipeline
    pairs = translate(["the cat", "it is"])["sentences"]
    shown = attended_sentences(translate.model, translate.processor, pairs, 0)
    assert not shown.shares and not shown.gates
    assert "no global attention" in attention_html(shown, ["the cat", "it is"], "en", 1, 0)
