"""Decodes sentences that depend only on their source as a batch of documents of one sentence each.

Sentences are like this where no layer of the decoder has global attention and positions count from the start of every
sentence. Each of them gets its own beam, as in a translator of sentences.

Shape legend: B documents, S source tokens, G sentences of a document, R sentences of the batch, N tokens of the
longest source sentence.
"""

from collections.abc import Callable

from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .framed_decoder import FramedDecoder, Sources


# Logits in memory at a time (32M are 128 MB in float32).
STEP_LOGITS = 2**25


def decode_independently(
    decoder: FramedDecoder, beams: int, decode: Callable[[FramedDecoder, Tensor], list[list[int]]]
) -> list[list[int]]:
    """
    Returns the documents of a decoder's batch, without the token that ends them.

    Args:
        beams: number of rows that each sentence takes.
        decode: decodes the documents of a decoder, which begin with prompts `(R, 1)`.
    """
    template = decoder.template
    rows, index = sentence_places(decoder.source_tags)
    numbers = decoder.source_tags.flatten()[index[:, 0]] - 1
    lengths = (index >= 0).sum(dim=1)
    translated: dict[int, list[list[int]]] = {}
    size = max(STEP_LOGITS // (decoder.model.config.decoder_vocab_size * beams), 1)
    for part in lengths.argsort(descending=True, stable=True).split(size):  # similar lengths side by side
        places = index[part, : int(lengths[part].max())]
        mask = (places >= 0).long()
        states = decoder.source_states.flatten(0, 1)[places.clamp(min=0)]
        limits = decoder.token_limits[rows[part], numbers[part]][:, None]
        sentences = decoder.over(Sources(states, mask, mask), limits)
        prompts = part.new_full((len(part), 1), template.start)
        for place, ids in zip(part.tolist(), decode(sentences, prompts), strict=True):
            [words] = template.split(ids)
            translated[place] = words
        decoder.steps += sentences.steps
    documents: list[list[list[int]]] = [[] for _ in decoder.source_tags]
    for place, row in enumerate(rows.tolist()):
        documents[row].append(translated[place])
    return [template.read(sentences) for sentences in documents]


def sentence_places(tags: Tensor) -> tuple[Tensor, Tensor]:
    """The row `(R,)` of every sentence of documents with tags `(B, S)`, in order, and the positions of its tokens in
    the flattened documents `(R, N)`, padded with -1."""
    [positions] = (tags > 0).flatten().nonzero(as_tuple=True)
    rows, sentences = positions // tags.shape[1], tags.flatten()[positions]
    sentence, order = (rows * (int(tags.max()) + 1) + sentences).sort(stable=True)
    _, counts = sentence.unique_consecutive(return_counts=True)
    pieces = positions[order].split(counts.tolist())
    places = pad_sequence(list(pieces), batch_first=True, padding_value=-1)
    return places[:, 0] // tags.shape[1], places
