import pytest
import torch

from modeling_gtransformer import document_loss as module
from modeling_gtransformer.document_loss import document_loss, linear_document_loss


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("chunk", [1, 3, 100], ids="{}-tokens-a-chunk".format)
def test_chunks_give_the_loss_and_gradients_of_the_reference(monkeypatch, chunk, smoothing):
    monkeypatch.setattr(module, "CHUNK_LOGITS", chunk * 11)
    monkeypatch.setattr(module, "CHUNK_TOKENS", 1)
    labels = torch.tensor([[3, 0, 10, -100], [-100, 5, 5, 1]])
    bias = torch.randn(1, 11)
    results = []
    for chunked in (False, True):
        generator = torch.Generator().manual_seed(1)
        hidden = torch.randn(2, 4, 6, generator=generator).requires_grad_()
        weight = torch.randn(11, 6, generator=generator).requires_grad_()
        if chunked:
            loss = linear_document_loss(hidden, weight, bias, labels, smoothing, num_items_in_batch=5)
        else:
            loss = document_loss(hidden @ weight.T + bias, labels, smoothing, num_items_in_batch=5)
        (3 * loss).backward()
        results.append((loss, hidden.grad, weight.grad))
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
    gradients = []
    for output in (lean, full):
        model.zero_grad()
        output.loss.backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


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
