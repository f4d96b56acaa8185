"""Scores of labels against the logits of the whole batch."""

import pytest
import torch

from modeling_gtransformer import document_loss
from modeling_gtransformer.token_scores import label_log_probabilities


TARGET = torch.tensor([[0, 5, 2, 0, 6, 7, 2], [0, 7, 2, 1, 1, 1, 1]])
LABELS = torch.tensor([[5, 2, -100, 6, 7, 2, 49], [-100, 2, 49, -100, -100, -100, -100]])


@pytest.mark.parametrize("chunk", [1, 3, 100], ids="{}-tokens-a-chunk".format)
def test_scores_are_those_of_the_logits(tiny_model, documents, monkeypatch, chunk):
    monkeypatch.setattr(document_loss, "CHUNK_LOGITS", chunk * 50)
    monkeypatch.setattr(document_loss, "CHUNK_TOKENS", 1)
    model = tiny_model()
    torch.nn.init.normal_(model.final_logits_bias)
    inputs = {**documents, "decoder_input_ids": TARGET}
    scores = label_log_probabilities(model, LABELS, **inputs)
    log_probabilities = model(**inputs, decoder_attention_mask=TARGET.ne(1)).logits.log_softmax(dim=-1)
    asked = LABELS != -100
    expected = log_probabilities.gather(2, LABELS.clamp(min=0)[..., None])[..., 0]
    torch.testing.assert_close(scores[asked], expected[asked])
    assert scores.dtype == torch.float32 and not scores.requires_grad
    assert (scores[~asked] == 0).all()


def test_nothing_is_asked_for(tiny_model, documents):
    labels = torch.full_like(LABELS, -100)
    assert label_log_probabilities(tiny_model(), labels, **documents, decoder_input_ids=TARGET).eq(0).all()


def test_padding_changes_no_score(tiny_model, documents):
    model = tiny_model()
    together = label_log_probabilities(model, LABELS, **documents, decoder_input_ids=TARGET)
    alone = label_log_probabilities(
        model, LABELS[1:, :3], input_ids=documents["input_ids"][1:, :4], decoder_input_ids=TARGET[1:, :3]
    )
    torch.testing.assert_close(together[1:, :3], alone)


def test_half_precision_is_scored_in_float32(tiny_model, documents):
    model = tiny_model().to(torch.bfloat16)
    scores = label_log_probabilities(model, LABELS, **documents, decoder_input_ids=TARGET)
    assert scores.dtype == torch.float32
    # A score of bfloat16 has eight bits.
    assert not scores.equal(scores.to(torch.bfloat16).float())
