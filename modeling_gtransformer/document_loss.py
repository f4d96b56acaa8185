"""Label-smoothed cross-entropy of target documents and log-probabilities of their tokens, without the logits of the
whole batch in memory.

Shape legend: B documents, T target tokens, G source sentences, D model size, V vocabulary, C tokens of a chunk.
"""

import torch
from torch import Tensor, nn

from .group_tags import read_group_tags
from .sentence_template import TargetTemplate


# Logits in memory at a time: 64 MB in float32 on a CPU, 256 MB on a GPU, which thus has few kernels to start. Chunks
# are multiples, at least one, of a number of tokens that products are efficient with.
CPU_CHUNK_LOGITS, CHUNK_LOGITS, CHUNK_TOKENS = 2**24, 2**26, 256


def logit_chunks(tokens: int, vocab_size: int, device: torch.device) -> list[slice]:
    """Splits this many tokens into slices, whose logits over the vocabulary are computed one chunk at a time."""
    logits = CPU_CHUNK_LOGITS if device.type == "cpu" else CHUNK_LOGITS
    size = max(logits // vocab_size // CHUNK_TOKENS, 1) * CHUNK_TOKENS
    return [slice(start, min(start + size, tokens)) for start in range(0, tokens, size)]


def is_plain_linear(layer: nn.Module) -> bool:
    """Whether a layer is nothing but its weight and bias: no adapter, quantisation or hook changes its output."""
    hooks = (layer._forward_hooks, layer._forward_pre_hooks, layer._backward_hooks, layer._backward_pre_hooks)
    return type(layer) is nn.Linear and not any(hooks) and "forward" not in vars(layer)


def document_loss(
    logits: Tensor, labels: Tensor, label_smoothing: float = 0.0, num_items_in_batch: Tensor | int | None = None
) -> Tensor:
    """
    The readable reference: (1 - e) * nll + e / V * sum over the vocabulary of -log p.

    Args:
        logits: `(B, T, V)`.
        labels: `(B, T)`, -100 where there is no loss.
        label_smoothing: e.
        num_items_in_batch: number of labels over which the sum is averaged; by default, this batch's labels.

    Returns:
        The loss in nats per label.
    """
    total = nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), reduction="sum", label_smoothing=label_smoothing
    )
    return total / (num_items_in_batch if num_items_in_batch is not None else (labels != -100).sum().clamp(min=1))


@torch.compiler.disable(
    reason="How many tokens have a loss depends on the data; pass skip_logits=False for one graph."
)
def linear_document_loss(
    hidden_states: Tensor,
    weight: Tensor,
    bias: Tensor,
    labels: Tensor,
    label_smoothing: float = 0.0,
    num_items_in_batch: Tensor | int | None = None,
) -> Tensor:
    """Computes [`document_loss`] of the logits `hidden_states @ weight.T + bias`, one chunk of them at a time.

    Args:
        hidden_states: `(B, T, D)`.
        weight: `(V, D)`.
        bias: `(1, V)`, a constant.
        labels: `(B, T)`, -100 where there is no loss; these cost no work.
    """
    # Found once, as every indexing by a mask would synchronise with the device.
    keep = (labels.flatten() != -100).nonzero()[:, 0]
    targets = labels.flatten()[keep]
    items = float(num_items_in_batch if num_items_in_batch is not None else max(len(targets), 1))
    return _ChunkedCrossEntropy.apply(
        hidden_states.flatten(0, 1)[keep], weight, bias, targets, label_smoothing, items, torch.is_grad_enabled()
    )


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Computes the gradient together with the loss, as the logits are gone by the time of the backward pass."""

    @staticmethod
    def forward(ctx, hidden, weight, bias, targets, smoothing, items, with_gradient):
        if torch.is_autocast_enabled(hidden.device.type):
            dtype = torch.get_autocast_dtype(hidden.device.type)
            states, matrix = hidden.to(dtype), weight.to(dtype)
        else:
            states, matrix = hidden, weight
        total = torch.zeros((), device=hidden.device)
        grad_hidden = torch.empty_like(states)
        # A frozen output layer (adapters) needs no gradient.
        grad_weight = torch.empty_like(weight) if with_gradient and ctx.needs_input_grad[1] else None
        if grad_weight is not None and (len(targets) == 0 or weight.dtype != matrix.dtype):
            grad_weight.zero_()
        # Averaged along the way, but in float16 only after the loss scale, without which small gradients would vanish.
        scale = 1.0 if weight.dtype == torch.float16 else 1 / items
        chunks = logit_chunks(len(targets), len(weight), states.device)
        # In float32, all chunks share one buffer: fresh memory costs as much as reading it several times.
        buffer = states.new_empty(chunks[0].stop if chunks else 0, len(weight))
        for part in chunks:
            chunk, target = states[part], targets[part, None]
            logits = torch.addmm(bias.to(matrix.dtype), chunk, matrix.T, out=buffer[: len(chunk)]).float()
            gold = logits.gather(1, target)
            if smoothing:
                total -= smoothing * logits.mean(dim=-1).sum()
            # softmax = exp(logits - maximum) / sum, in place of the logits.
            maximum = logits.amax(dim=-1, keepdim=True)
            exponentials = logits.sub_(maximum).exp_()
            sums = exponentials.sum(dim=-1, keepdim=True)
            total += (maximum + sums.log() - (1 - smoothing) * gold).sum()
            if not with_gradient:
                continue
            # d loss / d logits = softmax - (1 - e) * onehot - e / V.
            difference = exponentials.div_(sums)
            if smoothing:
                difference -= smoothing / len(weight)
            difference.scatter_add_(1, target, torch.full_like(gold, smoothing - 1))
            difference = difference.to(matrix.dtype)
            del logits, exponentials  # in half precision, the next chunk takes their memory
            torch.mm(difference, matrix, out=grad_hidden[part])
            if grad_weight is None:
                continue
            if grad_weight.dtype == chunk.dtype:
                grad_weight.addmm_(difference.T, chunk, alpha=scale, beta=int(part.start > 0))
            else:
                # Summed in the precision of the weight: in that of autocast, many chunks would lose much to rounding.
                grad_weight.add_(difference.T @ chunk, alpha=scale)
        ctx.save_for_backward(grad_hidden.to(hidden.dtype), grad_weight)
        ctx.items, ctx.scale = items, scale
        return total / items

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_total):
        grad_hidden, grad_weight = ctx.saved_tensors
        # It is as large as the embeddings of the whole vocabulary: copied only if needed, even if finding this out
        # synchronises with the device.
        rest = grad_total / ctx.items
        if grad_weight is not None and rest / ctx.scale != 1:
            grad_weight = grad_weight * (rest / ctx.scale)
        return grad_hidden * rest, grad_weight, None, None, None, None, None


@torch.no_grad()
def label_log_probabilities(model, labels: Tensor, **inputs: Tensor) -> Tensor:
    """
    Scores labels with a model.

    Args:
        model: a `GTransformerForConditionalGeneration`.
        labels: `(B, T)`, -100 where no score is wanted.
        inputs: what the model reads, `decoder_input_ids` `(B, T)` among them.

    Returns:
        The log-probability of every label in nats, `(B, T)`, float32; 0 where no score is wanted.
    """
    mask = model.target_mask(inputs["decoder_input_ids"])
    states = model.model(**inputs, decoder_attention_mask=mask).last_hidden_state
    asked = labels != -100
    states, wanted = states[asked], labels[asked]
    scores = torch.zeros(len(wanted), device=labels.device)
    for chunk in logit_chunks(len(wanted), model.config.decoder_vocab_size, states.device):
        log_probabilities = model.output_logits(states[chunk]).float().log_softmax(dim=-1)
        scores[chunk] = log_probabilities.gather(1, wanted[chunk, None])[:, 0]
    return torch.zeros(labels.shape, device=labels.device).masked_scatter(asked, scores)


def sentence_log_probabilities(
    model, sequences: Tensor, template: TargetTemplate, *, encoder_outputs: tuple[Tensor, Tensor], **inputs: Tensor
) -> tuple[Tensor, Tensor]:
    """
    Scores the sentences of documents `(B, T)` with a model.

    Args:
        encoder_outputs: states of the sources and their group tags, from 1 to G.
        inputs: what else the model reads.

    Returns:
        The summed log-probability of the words and `</s>` of every sentence in nats, `(B, G)`, float32, and the number
        of these tokens, `(B, G)`. The tokens that the template adds count nothing.
    """
    read, labels = sequences[:, :-1], sequences[:, 1:]
    # A token belongs to the sentence of the token that it is predicted from.
    tags = read_group_tags(read, model.config, is_target=True)
    added = [token for token in (*template.prefix, template.pad, template.end) if token is not None]
    is_scored = (tags > 0) & ~torch.isin(labels, torch.tensor(added, device=labels.device))
    inputs |= {"decoder_input_ids": read, "encoder_outputs": encoder_outputs}
    scores = label_log_probabilities(model, labels.masked_fill(~is_scored, -100), **inputs)
    sentences = int(encoder_outputs[1].max()) + 1
    tags = (tags * is_scored).clamp(max=sentences)
    sums, counts = (
        torch.zeros(len(labels), sentences + 1, device=labels.device).scatter_add(1, tags, each)[:, 1:sentences]
        for each in (scores, is_scored.float())
    )
    return sums, counts.long()
