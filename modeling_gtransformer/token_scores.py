"""Log-probabilities that a model gives to target tokens, without the logits of a whole batch."""

import torch
from torch import Tensor

from .document_loss import logit_chunks


@torch.no_grad()
def label_log_probabilities(model, labels: Tensor, **inputs: Tensor) -> Tensor:
    """
    Scores labels with a model.

    Args:
        model: a `GTransformerForConditionalGeneration`.
        labels: `(B, T)`, -100 where no score is asked for.
        inputs: what the model reads, `decoder_input_ids` `(B, T)` among them.

    Returns:
        The log-probability of every label in nats, `(B, T)`, float32; 0 where no score is asked for.
    """
    mask = model.target_mask(inputs["decoder_input_ids"])
    states = model.model(**inputs, decoder_attention_mask=mask).last_hidden_state
    asked = labels != -100
    states, wanted = states[asked], labels[asked]
    scores = torch.zeros(len(wanted), device=labels.device)
    for chunk in logit_chunks(len(wanted), model.config.decoder_vocab_size):
        log_probabilities = model.output_logits(states[chunk]).float().log_softmax(dim=-1)
        scores[chunk] = log_probabilities.gather(1, wanted[chunk, None])[:, 0]
    return torch.zeros(labels.shape, device=labels.device).masked_scatter(asked, scores)
