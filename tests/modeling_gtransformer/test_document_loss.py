import pytest
import torch

from modeling_gtransformer import document_loss as module
from modeling_gtransformer.document_loss import (
    document_loss,
    is_plain_linear,
    label_log_probabilities,
    linear_document_loss,
    sentence_log_probabilities,
)


@pytest.mark.parametrize("trains_weight", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("chunk", [1, 3, 100], ids="{}-tokens-a-chunk".format)
def test_chunks_give_the_loss_and_gradients_of_the_reference(monkeypatch, chunk, smoothing, trains_weight):
    monkeypatch.setattr(module, "CPU_CHUNK_LOGITS", chunk * 11)
    monkeypatch.setattr(module, "CHUNK_TOKENS", 1)
    labels = torch.tensor([[3, 0, 10, -100], [-100, 5, 5, 1]])
    bias = torch.randn(1, 11)
    results = []
    for chunked in (False, True):
        generator = torch.Generator().manual_seed(1)
        hidden = torch.randn(2, 4, 6, generator=generator).requires_grad_()
        weight = torch.randn(11, 6, generator=generator).requires_grad_(trains_weight)
        if chunked:
            loss = linear_document_loss(hidden, weight, bias, labels, smoothing, num_items_in_batch=5)
        else:
            loss = document_loss(hidden @ weight.T + bias, labels, smoothing, num_items_in_batch=5)
        (3 * loss).backward()
        results.append((loss, hidden.grad, weight.grad))
    with torch.no_grad():
        assert linear_document_loss(hidden, weight, bias, labels, smoothing, num_items_in_batch=5) == loss
    torch.testing.assert_close(*results)


def test_average_is_over_the_labels_that_count():
    hidden, weight, bias = torch.randn(1, 3, 4), torch.randn(5, 4), torch.zeros(1, 5)
    logits = hidden @ weight.T
    for labels in (torch.tensor([[1, -100, 2]]), torch.tensor([[-100, 3, -100]])):
        expected = torch.nn.functional.cross_entropy(logits[0], labels[0])
        torch.testing.assert_close(document_loss(logits, labels), expected)
        torch.testing.assert_close(linear_document_loss(hidden, weight, bias, labels), expected)
    nothing = torch.full((1, 3), -100)
    assert document_loss(logits, nothing) == linear_document_loss(hidden, weight, bias, nothing) == 0


def test_logits_of_any_size_have_a_finite_loss():
    """Each row is relative to its own maximum."""
    hidden, weight, labels = torch.randn(1, 3, 8), torch.randn(5, 8), torch.tensor([[1, 2, 3]])
    hidden *= torch.tensor([1.0, 100.0, 1000.0])[:, None]
    loss = linear_document_loss(hidden, weight, torch.zeros(1, 5), labels)
    torch.testing.assert_close(loss, document_loss(hidden @ weight.T, labels))


@pytest.mark.parametrize(
    ("device", "vocabulary", "size"), [("cpu", 5000, 3328), ("cpu", 250027, 256), ("meta", 32000, 2048)]
)
def test_sizes_of_chunks(device, vocabulary, size):
    """So that products are efficient, and memory is bounded."""
    first, *_, last = module.logit_chunks(10_001, vocabulary, torch.device(device))
    assert first == slice(0, size) and last.stop == 10_001


def test_a_layer_whose_forward_is_replaced_is_not_a_plain_one():
    """Accelerate does so to move its weights."""
    layer = torch.nn.Linear(2, 2)
    assert is_plain_linear(layer)
    layer.forward = layer.forward
    assert not is_plain_linear(layer)


def test_logits_of_half_precision_have_a_loss_in_single():
    logits, labels = torch.randn(1, 3, 4000).bfloat16(), torch.tensor([[1, 2, 3]])
    loss = document_loss(logits, labels)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, document_loss(logits.float(), labels), rtol=0, atol=0)


def test_small_gradients_of_half_precision_do_not_vanish():
    """A loss is scaled against that, which averages over many labels must not undo."""
    labels, gradients = torch.tensor([[1, 2, 3]]), []
    hidden, weight = torch.randn(1, 3, 8), torch.randn(5, 8)
    for dtype in (torch.float32, torch.float16):
        own, matrix = (states.to(dtype, copy=True).requires_grad_() for states in (hidden, weight))
        bias = torch.zeros(1, 5, dtype=dtype)
        loss = linear_document_loss(own, matrix, bias, labels, num_items_in_batch=10**8)
        (loss * 10**8).backward()
        gradients.append((own.grad.float(), matrix.grad.float()))
    torch.testing.assert_close(*gradients, rtol=0.02, atol=0.01)


def test_without_labels_the_gradient_is_zero(monkeypatch):
    """Not what memory happens to contain."""
    monkeypatch.setattr(torch, "empty_like", lambda states: torch.full_like(states, torch.nan))
    hidden, weight = torch.randn(1, 2, 4, requires_grad=True), torch.randn(5, 4, requires_grad=True)
    linear_document_loss(hidden, weight, torch.zeros(1, 5), torch.full((1, 2), -100)).backward()
    assert not hidden.grad.any() and not weight.grad.any()


def test_model_in_training_has_no_logits(tiny_model, documents):
    model = tiny_model(dropout=0.0).train()
    labels = torch.tensor([[5, 2, 0, 6, 2, 49], [7, 2, 49, -100, -100, -100]])
    lean = model(**documents, labels=labels, label_smoothing=0.1)
    full = model(**documents, labels=labels, label_smoothing=0.1, skip_logits=False)
    assert lean.logits is None and full.logits.shape == (2, 6, 50)
    torch.testing.assert_close(lean.loss, full.loss)


def test_autocast_takes_products_in_its_precision():
    hidden, weight = torch.randn(1, 3, 8), torch.randn(5, 8)
    bias, labels = torch.zeros(1, 5), torch.tensor([[1, 2, 3]])
    with torch.autocast("cpu", torch.bfloat16):
        loss = linear_document_loss(hidden, weight, bias, labels)
    assert loss == linear_document_loss(hidden.bfloat16(), weight.bfloat16(), bias, labels)
    assert loss != linear_document_loss(hidden, weight, bias, labels)


def test_half_precision_of_autocast(tiny_model, documents):
    model = tiny_model(dropout=0.0).train()
    labels = torch.tensor([[5, 2, 0, 6, 2, 49], [7, 2, 49, -100, -100, -100]])
    with torch.autocast("cpu", torch.bfloat16):
        lean, full = (model(**documents, labels=labels, skip_logits=skip).loss for skip in (True, False))
    torch.testing.assert_close(lean, full, rtol=2e-2, atol=2e-2)
    gradients = []
    for loss in (lean, model(**documents, labels=labels).loss):
        model.zero_grad()
        loss.backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
    half, whole = gradients
    assert torch.nn.functional.cosine_similarity(half, whole, dim=0) > 0.999
    torch.testing.assert_close(half.norm(), whole.norm(), rtol=0.02, atol=0)


TARGET = torch.tensor([[0, 5, 2, 0, 6, 7, 2], [0, 7, 2, 1, 1, 1, 1]])
LABELS = torch.tensor([[5, 2, -100, 6, 7, 2, 49], [-100, 2, 49, -100, -100, -100, -100]])


@pytest.mark.parametrize("chunk", [1, 3, 100], ids="{}-tokens-a-chunk".format)
def test_scores_are_those_of_the_logits(tiny_model, documents, monkeypatch, chunk):
    monkeypatch.setattr(module, "CPU_CHUNK_LOGITS", chunk * 50)
    monkeypatch.setattr(module, "CHUNK_TOKENS", 1)
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


@pytest.mark.parametrize("arguments", [{}, {"max_new_tokens": 5}, {"do_sample": True}])
@pytest.mark.parametrize(("name", "end"), [("paper", 49), ("bart", None)])
def test_words_and_ends_of_sentences_count(tiny_model, documents, arguments, name, end):
    """Also where `</s>` had to come, and in documents that are cut off."""
    model = tiny_model(sentence_template=name)
    model.generation_config.eos_token_id = end or 2
    template = model.config.template.in_ids({"bos": 0, "eos": 2, "pad": 1, "tgt_lang": end}.__getitem__)
    sequences = model.generate(**documents, **arguments, max_length_b=1)
    encoded, mask = model.get_encoder()(**documents), documents["attention_mask"]
    source = {"encoder_outputs": (encoded[0], encoded.group_tags * mask), "attention_mask": mask}
    scores, counts = sentence_log_probabilities(model, sequences, template, **source)
    for row, ids in enumerate(sequences.tolist()):
        ids = ids[: max(place for place, token in enumerate(ids) if token != 1) + 1]
        one = {name: tensor[row : row + 1] for name, tensor in documents.items()}
        log_p = model(**one, decoder_input_ids=torch.tensor([ids[:-1]])).logits[0].log_softmax(dim=-1)
        expected, tokens, sentence = [0.0] * 3, [0] * 3, 0
        for place, token in enumerate(ids[1:]):
            if token not in (0, end):
                expected[sentence] += log_p[place, token].item()
                tokens[sentence] += 1
            sentence += token == 2
        assert counts[row].tolist() == tokens
        torch.testing.assert_close(scores[row], torch.tensor(expected), atol=1e-4, rtol=1e-4)
