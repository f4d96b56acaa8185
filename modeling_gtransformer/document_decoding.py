"""Greedy and beam search of documents, token by token, in a loop of our own.

The documents are those that `generate` of Transformers finds, which is the reference. This loop avoids needless copies
of tables over the vocabulary, and documents leave the batch when they are finished.

Shape legend: B documents, R rows (documents times beams), P tokens of a prompt, T target tokens, M candidates,
V vocabulary.
"""

import torch
from torch import Tensor

from .beam_search import SHRINKS_AT, BeamSearch
from .cache_gtransformer import DocumentCache
from .framed_decoder import FramedDecoder
from .group_tags import read_group_tags, sentence_progress


class DocumentBatch:
    """
    Documents that grow token by token, with a row for each beam.

    Args:
        decoder: the decoder over their sources.
        prompts: the ids that the documents begin with, `(B, P)`.
        beams: number of rows of a document.

    Attributes:
        ids: the ids of every row so far, `(R, T)`.
        number: the number of sentences that each row has begun, `(R,)`.
        tokens: the last token of every row, `(B, N)`.
    """

    def __init__(self, decoder: FramedDecoder, prompts: Tensor, beams: int):
        self.decoder, self.beams = decoder, beams
        self.cache = DocumentCache(decoder.limits.longest_sentence(prompts), len(prompts))
        self.documents = torch.arange(len(prompts), device=decoder.device)
        self.sentences = (decoder.token_limits > 0).sum(dim=1).to(decoder.device)
        self.longest = decoder.max_length - prompts.shape[1]
        self._spread()
        self.tokens = prompts[:, -1:].expand(-1, beams)
        self.ids = prompts[:, :-1].repeat_interleave(beams, 0)
        self.number = self.ids.new_zeros(len(self.ids))

    def _spread(self) -> None:
        """Sets the documents and sources of all rows."""
        self.rows = self.documents.repeat_interleave(self.beams)
        self.sources = self.decoder.sources(self.rows)

    def step(self, tokens: Tensor, normalize: bool = False) -> Tensor:
        """Reads the next tokens `(B, N)` and returns the templated scores `(B, N, V)` of those that follow them."""
        decoder = self.decoder
        self.ids = torch.cat([self.ids, tokens.flatten()[:, None]], dim=1)
        for watch in decoder.watchers:
            watch(self.ids)
        self.number, words = sentence_progress(self.ids, decoder.template)
        hidden_states = decoder.states(
            self.sources,
            self.ids[:, self.cache.get_seq_length() :],
            None,
            None,
            self.cache,
            decoder_group_tags=read_group_tags(self.ids, decoder.model.config, is_target=True),
        )[:, -1]
        decoder.steps += 1
        before = (self.rows, self.number, words, self.ids.shape[1], self.ids[:, -1])
        return decoder.scores(hidden_states, *before, normalize=normalize).view(*tokens.shape, -1)

    def ends(self, chosen: Tensor, parents: Tensor) -> Tensor:
        """Tells which of the chosen tokens `(B, M)` end the document of their parent beams `(B, M)`."""
        template = self.decoder.template
        if template.end is not None:
            return chosen == template.end
        begun = self.number.view(-1, self.beams).gather(1, parents)
        return (chosen == template.eos_id) & (begun >= self.sentences[self.documents][:, None])

    def follow(self, parents: Tensor) -> None:
        """Continues every beam from its parent beam, `(B, N)`."""
        first = torch.arange(len(parents), device=parents.device)[:, None] * self.beams
        index = (first + parents).flatten()
        self.ids = self.ids[index]
        self.cache.reorder_cache(index)

    def keep(self, documents: Tensor) -> None:
        """Keeps only the documents with these indices."""
        self.cache.keep(documents)
        self.ids = self.ids.unflatten(0, (-1, self.beams))[documents].flatten(0, 1)
        self.number = self.number.view(-1, self.beams)[documents].flatten()
        self.documents = self.documents[documents]
        self._spread()


def decode_greedily(decoder: FramedDecoder, prompts: Tensor) -> list[list[int]]:
    """Returns the greedy documents that begin with prompts `(B, P)`, including the tokens that end them."""
    batch = DocumentBatch(decoder, prompts, 1)
    tokens, open_documents = batch.tokens, torch.ones_like(batch.tokens, dtype=torch.bool)
    finished: dict[int, list[int]] = {}
    for _ in range(batch.longest):
        tokens = batch.step(tokens).argmax(dim=-1)
        ended = batch.ends(tokens, torch.zeros_like(tokens)) & open_documents
        open_documents = open_documents & ~ended
        if not bool(ended.any()):
            continue
        lines = torch.cat([batch.ids, tokens], dim=1)[ended[:, 0]].tolist()
        finished |= zip(batch.documents[ended[:, 0]].tolist(), lines, strict=True)
        if len(finished) == len(prompts):
            break
        still_open = open_documents[:, 0].nonzero()[:, 0]
        if len(still_open) <= len(tokens) * (1 - SHRINKS_AT):
            batch.keep(still_open)
            tokens, open_documents = tokens[still_open], open_documents[still_open]
    return [finished[row] for row in range(len(prompts))]


def search_documents(
    decoder: FramedDecoder,
    prompts: Tensor,
    num_beams: int,
    length_penalty: float,
    early_stopping: bool,
) -> list[list[int]]:
    """Returns the documents that a beam search finds from prompts `(B, P)`, including the tokens that end them."""
    batch = DocumentBatch(decoder, prompts, num_beams)
    found = BeamSearch(batch, length_penalty, early_stopping).run()
    return [[*prompt, *tokens] for prompt, tokens in zip(prompts.tolist(), found, strict=True)]
