"""Group tags: which sentence of the document each token belongs to (paper, equation 3). Pure functions of the ids.

Shape legend: B documents, T tokens (queries), S keys, G sentences of the longest document.
"""

import torch
from torch import Tensor


#: Group tag of padding, where it must be told from a token outside of all sentences.
PADDING = -1


def group_tags(
    input_ids: Tensor, bos_token_id: int | None, eos_token_id: int | None, attention_mask: Tensor | None = None
) -> Tensor:
    """
    Tags of documents `<s> w w </s> <s> w </s> ...`: k for `<s>`, words and `</s>` of the k-th sentence (from 1), 0 for
    padding and whatever else lies outside a sentence, such as language codes.

    Args:
        input_ids: `(B, T)`, source documents or decoder inputs.
        bos_token_id: id of `<s>`, which opens a sentence. `None`: no sentences, every tag is 0.
        eos_token_id: id of `</s>`, which closes it. `None`: a sentence lasts until the next `<s>`.
        attention_mask: `(B, T)`, 0 where a token is padding.

    Returns:
        `(B, T)`, int64.
    """
    if bos_token_id is None:
        return torch.zeros_like(input_ids)
    real = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
    position = torch.arange(1, input_ids.shape[1] + 1, device=input_ids.device)
    opens = (input_ids == bos_token_id) & real
    in_sentence = real
    if eos_token_id is not None:
        closes = (input_ids == eos_token_id) & real
        last_open = (opens * position).cummax(dim=1).values
        last_close = (closes * position).cummax(dim=1).values
        # `</s>` itself still belongs to its sentence, hence the shift by one.
        in_sentence = real & (last_open > torch.nn.functional.pad(last_close, (1, -1)))
    return opens.long().cumsum(dim=1) * in_sentence


def tags_on_cpu(tags: Tensor, real: Tensor) -> Tensor:
    """Tags `(B, T)` on the CPU, [`PADDING`] where `real` `(B, T)` is false. Synchronises with the device, so that
    everything that follows from the positions of the sentences is computed without further synchronisation."""
    return tags.long().masked_fill(~real, PADDING).cpu()


def same_group(query_tags: Tensor, key_tags: Tensor) -> Tensor:
    """
    Mask of group attention (M of the paper's equation 7, as a boolean): a query sees the keys of its own sentence. A
    query with tag 0 stands outside all sentences and sees every key.

    Args:
        query_tags: `(B, T)`.
        key_tags: `(B, S)`.

    Returns:
        `(B, 1, T, S)`, bool.
    """
    query_tags = query_tags[:, None, :, None]
    return (query_tags == key_tags[:, None, None, :]) | (query_tags == 0)


def in_one_piece(tags: Tensor) -> bool:
    """Tells whether the tokens of every sentence stand together in documents with tags `(B, T)`."""
    starts = (tags != torch.nn.functional.pad(tags, (1, -1))) & (tags > 0)
    return bool(starts.sum() == (sentence_lengths(tags) > 0).sum())


def sentence_lengths(tags: Tensor) -> Tensor:
    """Number of tokens of every sentence, `<s>` and `</s>` included: tags `(B, T)` to lengths `(B, G)`, 0 beyond the
    last sentence of a document."""
    groups = int(tags.max()) if tags.numel() else 0
    lengths = tags.new_zeros(tags.shape[0], groups + 1)
    lengths.scatter_add_(1, tags, torch.ones_like(tags))
    return lengths[:, 1:]
