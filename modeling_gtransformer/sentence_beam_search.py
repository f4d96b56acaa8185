"""Beam search of many sentences side by side, each with a beam of its own.

Shape legend: B documents, R sentences of a document, N beams, M candidates, T tokens written so far, V vocabulary.
"""

import torch
from torch import Tensor, nn

from .decoding_batch import DecodingBatch


# The score of hypotheses that do not exist; finite, as in the beam search of Transformers.
IMPOSSIBLE = -1.0e9


class SentenceBeamSearch:
    """
    The beam search of Transformers, for every sentence of a decoding batch whose columns are its beams side by side.

    Args:
        batch: `(B, R * N)` sentences, of which N in a row are the same.
        length_penalty: exponent of the length by which scores are divided.
        early_stopping: whether a sentence is done as soon as it has N finished hypotheses.

    Attributes:
        tokens: the last token of each running hypothesis, `(B, R, N)`.
        written: what it has written, `(B, R, N, T)`.
        running: its sum of log-probabilities.
        best: finished hypotheses, best first, filled up with `</s>`, `(B, R, N, T)`.
        finished: their scores, `(B, R, N)`; `is_finished` tells which of them exist.
        improvable: sentences whose running hypotheses may still become better ones, `(B, R)`.
    """

    def __init__(self, batch: DecodingBatch, num_beams: int, length_penalty: float, early_stopping: bool):
        self.batch, self.num_beams = batch, num_beams
        self.length_penalty, self.early_stopping = length_penalty, early_stopping
        self.frame = batch.decoder.frame
        self.tokens = batch.tokens.unflatten(1, (-1, num_beams))
        self.real = batch.real[:, ::num_beams]
        first = torch.arange(num_beams, device=self.tokens.device) == 0
        self.running = torch.where(first, 0.0, IMPOSSIBLE).expand(self.tokens.shape)
        self.finished = torch.full_like(self.running, IMPOSSIBLE)
        self.is_finished = torch.zeros_like(self.tokens, dtype=torch.bool)
        self.written = self.best = self.tokens.new_empty(*self.tokens.shape, 0)
        self.improvable = self.real

    def run(self) -> list[list[list[int]]]:
        """The best hypothesis of every sentence of every document, from the first new token to `</s>`."""
        # No sentence is longer; the bound matters where fewer hypotheses exist than beams.
        around = self.frame.head * len(self.frame.prefix) + 1 + (self.frame.end is not None)
        for length in range(1, int(self.batch.decoder.word_limits.max()) + around + 1):
            if not bool((self.improvable & self.real).any()):
                break
            self.step(length)
        best, real = self.best[:, :, 0].tolist(), self.real.tolist()
        return [
            [words[: words.index(self.frame.closer) + 1] for words, is_real in zip(*document, strict=True) if is_real]
            for document in zip(best, real, strict=True)
        ]

    def step(self, length: int) -> None:
        """Write one more token of every hypothesis; `length` tokens are then written."""
        scores = self.batch.step(self.tokens.flatten(1), normalize=True).unflatten(1, self.tokens.shape[1:])
        total = (self.running[..., None] + scores).flatten(2)
        candidates, index = total.topk(2 * self.num_beams, dim=-1)
        parent, chosen = index // scores.shape[-1], index % scores.shape[-1]
        # Frames with a token that ends a document read it as the one after </s>, as if this were the only sentence.
        last = chosen if self.frame.end is None else self.tokens.gather(2, parent)
        ends = last == self.frame.closer
        grown = torch.cat([_pick(self.written, parent), chosen[..., None]], dim=-1)
        self._finish(candidates, ends, grown, length)
        self._go_on(candidates, ends, grown, parent, chosen)
        worst = torch.where(self.is_finished, self.finished[..., -1:], IMPOSSIBLE)
        promising = (self.running[..., :1] / length**self.length_penalty > worst).any(dim=-1)
        self.improvable = self.improvable & promising & ~(self.is_finished.all(dim=-1) & self.early_stopping)

    def _finish(self, candidates: Tensor, ends: Tensor, grown: Tensor, length: int) -> None:
        """Keep the N best of the finished hypotheses and of the candidates `(B, R, M)` that have just ended."""
        just_finished = ends & (torch.arange(2 * self.num_beams, device=ends.device) < self.num_beams)
        closed = ~self.improvable | (self.is_finished.all(dim=-1) & self.early_stopping)
        hypotheses = candidates / length**self.length_penalty + (~just_finished | closed[..., None]) * IMPOSSIBLE
        self.finished, places = torch.cat([self.finished, hypotheses], dim=-1).topk(self.num_beams, dim=-1)
        self.is_finished = torch.cat([self.is_finished, just_finished], dim=-1).gather(2, places)
        longer = nn.functional.pad(self.best, (0, 1), value=self.frame.closer)
        self.best = _pick(torch.cat([longer, grown], dim=2), places)

    def _go_on(self, candidates: Tensor, ends: Tensor, grown: Tensor, parent: Tensor, chosen: Tensor) -> None:
        """Follow the N best candidates `(B, R, M)` that have not ended."""
        self.running, kept = (candidates + ends * IMPOSSIBLE).topk(self.num_beams, dim=-1)
        self.batch.follow(parent.gather(2, kept))
        self.written, self.tokens = _pick(grown, kept), chosen.gather(2, kept)


def _pick(table: Tensor, index: Tensor) -> Tensor:
    """`(B, R, N, T)` at `(B, R, M)`: `(B, R, M, T)`."""
    return table.gather(2, index[..., None].expand(*index.shape, table.shape[-1]))
