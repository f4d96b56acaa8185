"""Log-probabilities that a model gives to target tokens and sentences, without the logits of a whole batch.

Shape legend: B documents, T target tokens, G source sentences.
"""

import torch
from torch import Tensor

from .document_loss import logit_chunks
from .group_tags import read_group_tags
from .sentence_template import TargetTemplate


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
