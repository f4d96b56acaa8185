"""Scores of labels against the logits of the whole batch."""

import pytest
import torch

from modeling_gtransformer import document_loss
from modeling_gtransformer.document_loss import label_log_probabilities


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


CALLS = {
    "greedy": {},
    "beams": {"num_beams": 3},
    "parallel": {"parallel_sentences": True, "num_beams": 3},
    "several": {"num_beams": 3, "num_return_sequences": 2},
    "sampling": {"do_sample": True},
    "cut off": {"max_new_tokens": 5},
    "penalised": {"repetition_penalty": 1.5},
}


@pytest.mark.parametrize("arguments", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("config", [{}, {"sentence_template": "bart"}], ids=["paper", "bart"])
@pytest.mark.parametrize("encoded", [False, True])
def test_generate_returns_the_scores_of_its_sentences(tiny_model, documents, arguments, config, encoded):
    """Whichever loop decoded them: words and `</s>` count, also where `</s>` had to come."""
    model = tiny_model(**config)
    model.generation_config.eos_token_id = 2 if config else 49
    source = documents
    if encoded:
        source = {"encoder_outputs": model.get_encoder()(**documents), "attention_mask": documents["attention_mask"]}
    torch.manual_seed(0)
    output = model.generate(**source, **arguments, max_length_b=1, sentence_scores=True)
    torch.manual_seed(0)
    assert output.sequences.equal(model.generate(**documents, **arguments, max_length_b=1))
    copies = len(output.sequences) // 2
    repeated = {name: tensor.repeat_interleave(copies, 0) for name, tensor in documents.items()}
    assert output.sentence_scores.shape == output.sentence_tokens.shape == (2 * copies, 3)
    for row, ids in enumerate(output.sequences.tolist()):
        ids = ids[: max(place for place, token in enumerate(ids) if token != 1) + 1]
        one = {name: tensor[row : row + 1] for name, tensor in repeated.items()}
        log_p = model(**one, decoder_input_ids=torch.tensor([ids[:-1]])).logits[0].log_softmax(dim=-1)
        scores, tokens, sentence = [0.0] * 3, [0] * 3, 0
        for place, token in enumerate(ids[1:]):
            if token not in (0, 49) or (config and token == 49):
                scores[sentence] += log_p[place, token].item()
                tokens[sentence] += 1
            sentence += token == 2
        assert output.sentence_tokens[row].tolist() == tokens
        torch.testing.assert_close(output.sentence_scores[row], torch.tensor(scores), atol=1e-4, rtol=1e-4)


def test_scores_need_sentences(tiny_model):
    with pytest.raises(ValueError, match="sentence_scores needs sentences"):
        tiny_model().generate(torch.tensor([[5, 6, 7]]), sentence_scores=True)
