"""The beam search of Transformers, for sentences or documents side by side, each with a beam of its own.

Scores are ranked row by row, so that no second table of all beams and the whole vocabulary is made.

Shape legend: B documents, R sentences of a document (1 if it is decoded as a whole), N beams, M candidates, T tokens
written so far, V vocabulary.
"""

from typing import Protocol

import torch
from torch import Tensor, nn


# The score of hypotheses that do not exist; finite, as in the beam search of Transformers.
IMPOSSIBLE = -1.0e9


class Batch(Protocol):
    """
    What is decoded: `(B, R * N)` columns, of which N in a row are the beams of the same sentence.

    Attributes:
        tokens: the last token of each column.
        real: which columns are no padding.
        longest: most tokens that are still written.
    """

    tokens: Tensor
    real: Tensor

    @property
    def longest(self) -> int: ...

    def step(self, tokens: Tensor, normalize: bool) -> Tensor:
        """Log-probabilities `(B, R * N, V)` of what follows the next tokens `(B, R * N)`."""

    def ends(self, chosen: Tensor, parents: Tensor) -> Tensor:
        """Tells which tokens `(B, R, M)` end what beams `(B, R, M)` have written."""

    def follow(self, parents: Tensor) -> None:
        """Lets beams go on from others, `(B, R, N)`."""


class BeamSearch:
    """
    A beam search for every sentence of a batch.

    Args:
        length_penalty: exponent of the length by which scores are divided.
        early_stopping: whether a sentence is done as soon as it has N finished hypotheses.

    Attributes:
        tokens: the last token of each running hypothesis, `(B, R, N)`.
        written: what it has written, `(B, R, N, T)`.
        running: its sum of log-probabilities.
        best: finished hypotheses, best first, `(B, R, N, T)`.
        lengths: numbers of their tokens, `(B, R, N)`.
        finished: their scores, `(B, R, N)`; `is_finished` tells which of them exist.
        improvable: sentences whose running hypotheses may still become better ones, `(B, R)`.
    """

    def __init__(self, batch: Batch, num_beams: int, length_penalty: float, early_stopping: bool):
        self.batch, self.num_beams = batch, num_beams
        self.length_penalty, self.early_stopping = length_penalty, early_stopping
        self.tokens = batch.tokens.unflatten(1, (-1, num_beams))
        self.real = batch.real[:, ::num_beams]
        first = torch.arange(num_beams, device=self.tokens.device) == 0
        self.running = torch.where(first, 0.0, IMPOSSIBLE).expand(self.tokens.shape)
        self.finished = torch.full_like(self.running, IMPOSSIBLE)
        self.is_finished = torch.zeros_like(self.tokens, dtype=torch.bool)
        self.lengths = torch.zeros_like(self.tokens)
        self.written = self.best = self.tokens.new_empty(*self.tokens.shape, 0)
        self.improvable = self.real

    def run(self) -> list[list[list[int]]]:
        """The new tokens of the best hypothesis of every sentence of every document."""
        # The bound matters where fewer hypotheses exist than beams.
        for _ in range(self.batch.longest):
            if not bool(self.improvable.any()):
                break
            self.step()
        return self.results()

    def results(self) -> list[list[list[int]]]:
        """The new tokens of the best hypothesis so far of every sentence of every document."""
        best, lengths = self.best[:, :, 0].tolist(), self.lengths[:, :, 0].tolist()
        return [
            [tokens[:length] for tokens, length in zip(*document, strict=True)]
            for document in zip(best, lengths, strict=True)
        ]

    def keep(self, documents: Tensor) -> None:
        """Leaves all documents out but those with these indices."""
        for name in (
            "tokens",
            "real",
            "running",
            "finished",
            "is_finished",
            "lengths",
            "written",
            "best",
            "improvable",
        ):
            setattr(self, name, getattr(self, name)[documents])

    def step(self) -> None:
        """Write one more token of every hypothesis."""
        length = self.written.shape[-1] + 1
        scores = self.batch.step(self.tokens.flatten(1), normalize=True).unflatten(1, self.tokens.shape[1:])
        # No more than so many candidates come from one beam.
        scores, tokens = scores.topk(min(2 * self.num_beams, scores.shape[-1]), dim=-1)
        candidates, index = (self.running[..., None] + scores).flatten(2).topk(2 * self.num_beams, dim=-1)
        parent, chosen = index // scores.shape[-1], tokens.flatten(2).gather(2, index)
        ends = self.batch.ends(chosen, parent)
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
        self.lengths = torch.cat([self.lengths, torch.full_like(ends, length, dtype=torch.long)], dim=-1).gather(
            2, places
        )
        self.best = _pick(torch.cat([nn.functional.pad(self.best, (0, 1)), grown], dim=2), places)

    def _go_on(self, candidates: Tensor, ends: Tensor, grown: Tensor, parent: Tensor, chosen: Tensor) -> None:
        """Follow the N best candidates `(B, R, M)` that have not ended."""
        self.running, kept = (candidates + ends * IMPOSSIBLE).topk(self.num_beams, dim=-1)
        self.batch.follow(parent.gather(2, kept))
        self.written, self.tokens = _pick(grown, kept), chosen.gather(2, kept)


def _pick(table: Tensor, index: Tensor) -> Tensor:
    """`(B, R, N, T)` at `(B, R, M)`: `(B, R, M, T)`."""
    return table.gather(2, index[..., None].expand(*index.shape, table.shape[-1]))
