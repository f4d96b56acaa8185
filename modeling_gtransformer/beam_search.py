"""Beam search as in Transformers, over sentences or documents side by side that each have a beam of their own.

Scores are ranked row by row, which avoids a second table of all beams and the whole vocabulary.

Shape legend: B documents or sentences, N beams, M candidates, T tokens written so far, V vocabulary.
"""

from typing import Protocol

import torch
from torch import Tensor, nn


# The score of hypotheses that do not exist; finite, as in the beam search of Transformers.
IMPOSSIBLE = -1.0e9
# A batch shrinks when this share of it is finished.
SHRINKS_AT = 1 / 8


class Batch(Protocol):
    """
    The documents or sentences that are decoded, with N beams each.

    Attributes:
        tokens: the last token of each beam, `(B, N)`.
        longest: upper bound of the tokens that remain to be written.
    """

    tokens: Tensor

    @property
    def longest(self) -> int: ...

    def step(self, tokens: Tensor, normalize: bool) -> Tensor:
        """Reads the next tokens `(B, N)` and returns the log-probabilities `(B, N, V)` of what follows them."""

    def ends(self, chosen: Tensor, parents: Tensor) -> Tensor:
        """Tells which of the chosen tokens `(B, M)` end what their parent beams `(B, M)` have written."""

    def follow(self, parents: Tensor) -> None:
        """Continues every beam from its parent beam, `(B, N)`."""

    def keep(self, rest: Tensor) -> None:
        """Keeps only the documents or sentences with these indices."""


class BeamSearch:
    """
    A beam search for every document or sentence of a batch.

    Args:
        length_penalty: exponent of the length by which scores are divided.
        early_stopping: whether a search ends as soon as it has N finished hypotheses.

    Attributes:
        searched: original indices of what is still in the batch, `(B,)`.
        tokens: the last token of each running hypothesis, `(B, N)`.
        written: the tokens that it has written, `(B, N, T)`.
        running: the sum of their log-probabilities, `(B, N)`.
        best: finished hypotheses, best first, `(B, N, T)`.
        lengths: the numbers of their tokens, `(B, N)`.
        finished: their scores, `(B, N)`; `is_finished` tells which of them exist.
        improvable: which searches may still find a better hypothesis, `(B,)`.
    """

    def __init__(self, batch: Batch, length_penalty: float, early_stopping: bool):
        self.batch, self.length_penalty, self.early_stopping = batch, length_penalty, early_stopping
        self.tokens = batch.tokens
        self.num_beams = self.tokens.shape[1]
        self.searched = torch.arange(len(self.tokens), device=self.tokens.device)
        self.improvable = torch.ones_like(self.searched, dtype=torch.bool)
        first = torch.arange(self.num_beams, device=self.tokens.device) == 0
        self.running = torch.where(first, 0.0, IMPOSSIBLE).expand(self.tokens.shape)
        self.finished = torch.full_like(self.running, IMPOSSIBLE)
        self.is_finished = torch.zeros_like(self.tokens, dtype=torch.bool)
        self.lengths = torch.zeros_like(self.tokens)
        self.written = self.best = self.tokens.new_empty(*self.tokens.shape, 0)

    def run(self) -> list[list[int]]:
        """Returns the new tokens of the best hypothesis of every search."""
        found: dict[int, list[int]] = {}
        # The bound matters where fewer hypotheses exist than beams.
        for _ in range(self.batch.longest):
            self.step()
            improvable = self.improvable.nonzero()[:, 0]
            if len(improvable) <= len(self.tokens) * (1 - SHRINKS_AT):
                found |= self._found()
                if not len(improvable):
                    break
                self.keep(improvable)
        found |= self._found()
        return [found[index] for index in sorted(found)]

    def _found(self) -> dict[int, list[int]]:
        """The new tokens of the best hypotheses so far."""
        best = zip(self.best[:, 0].tolist(), self.lengths[:, 0].tolist(), strict=True)
        return dict(zip(self.searched.tolist(), (tokens[:length] for tokens, length in best), strict=True))

    def keep(self, rest: Tensor) -> None:
        """Keeps only the documents or sentences with these indices."""
        self.batch.keep(rest)
        of_each = ("searched", "tokens", "running", "finished", "is_finished", "lengths", "written", "best")
        for name in (*of_each, "improvable"):
            setattr(self, name, getattr(self, name)[rest])

    def step(self) -> None:
        """Writes one more token of every hypothesis."""
        length = self.written.shape[-1] + 1
        scores = self.batch.step(self.tokens, normalize=True)
        # A beam has at most this many of the best candidates.
        scores, tokens = scores.topk(min(2 * self.num_beams, scores.shape[-1]), dim=-1)
        candidates, index = (self.running[..., None] + scores).flatten(1).topk(2 * self.num_beams, dim=-1)
        parent, chosen = index // scores.shape[-1], tokens.flatten(1).gather(1, index)
        ends = self.batch.ends(chosen, parent)
        grown = torch.cat([_pick(self.written, parent), chosen[..., None]], dim=-1)
        self._finish(candidates, ends, grown, length)
        self._go_on(candidates, ends, grown, parent, chosen)
        worst = torch.where(self.is_finished, self.finished[:, -1:], IMPOSSIBLE)
        promising = (self.running[:, :1] / length**self.length_penalty > worst).any(dim=-1)
        self.improvable = self.improvable & promising & ~(self.is_finished.all(dim=-1) & self.early_stopping)

    def _finish(self, candidates: Tensor, ends: Tensor, grown: Tensor, length: int) -> None:
        """Keeps the N best of the finished hypotheses and the candidates `(B, M)` that have just ended."""
        just_finished = ends & (torch.arange(2 * self.num_beams, device=ends.device) < self.num_beams)
        closed = ~self.improvable | (self.is_finished.all(dim=-1) & self.early_stopping)
        hypotheses = candidates / length**self.length_penalty + (~just_finished | closed[:, None]) * IMPOSSIBLE
        self.finished, places = torch.cat([self.finished, hypotheses], dim=-1).topk(self.num_beams, dim=-1)
        self.is_finished = torch.cat([self.is_finished, just_finished], dim=-1).gather(1, places)
        lengths = torch.cat([self.lengths, torch.full_like(ends, length, dtype=torch.long)], dim=-1)
        self.lengths = lengths.gather(1, places)
        self.best = _pick(torch.cat([nn.functional.pad(self.best, (0, 1)), grown], dim=1), places)

    def _go_on(self, candidates: Tensor, ends: Tensor, grown: Tensor, parent: Tensor, chosen: Tensor) -> None:
        """Follows the N best candidates `(B, M)` that have not ended."""
        self.running, kept = (candidates + ends * IMPOSSIBLE).topk(self.num_beams, dim=-1)
        self.batch.follow(parent.gather(1, kept))
        self.written, self.tokens = _pick(grown, kept), chosen.gather(1, kept)


def _pick(table: Tensor, index: Tensor) -> Tensor:
    """Picks the rows `(B, M)` of a table `(B, N, T)`: `(B, M, T)`."""
    return table.gather(1, index[..., None].expand(*index.shape, table.shape[-1]))
