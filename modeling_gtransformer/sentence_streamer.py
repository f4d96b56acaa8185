"""Sentences as soon as they are certain, while their document is still being generated."""

from collections.abc import Callable

from torch import Tensor
from transformers.generation import LogitsProcessor


class SentenceStreamer(LogitsProcessor):
    """
    Among the `logits_processor` of `generate`, tells of every sentence of one document that has ended and that nothing
    can change any more: with greedy search and sampling at once, with beams when all of them agree. Scores stay as
    they are. Sentences on which the beams never agree become certain with the end of `generate` only.

    Args:
        on_sentence: called with the number of the sentence, from 0, and its token ids, without `<s>` and `</s>`.
        sentences: how many the document has.
        bos_token_id: `<s>`.
        eos_token_id: `</s>`.
        start: so many sentences are given in the prompt, and not told of.
    """

    def __init__(
        self,
        on_sentence: Callable[[int, list[int]], None],
        sentences: int,
        bos_token_id: int,
        eos_token_id: int,
        start: int = 0,
    ):
        self.on_sentence = on_sentence
        self.sentences = sentences
        self.bos_token_id = bos_token_id
        self.eos_token_id = eos_token_id
        self.told = start
        self._open = True

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Look at the prefixes `(R, T)` of all hypotheses that are still followed."""
        if self._open:
            agreed = int((input_ids == input_ids[0]).all(dim=0).long().cumprod(dim=0).sum())
            for number, words in enumerate(self._closed(input_ids[0, :agreed].tolist())):
                if number == self.told:
                    self.told += 1
                    self.on_sentence(number, words)
            # A hypothesis that may end with the next token is not among those that are followed then.
            self._open = int((input_ids == self.eos_token_id).sum(dim=1).max()) < self.sentences
        return scores

    def _closed(self, ids: list[int]) -> list[list[int]]:
        """The words of the sentences that have ended."""
        sentences: list[list[int]] = []
        words: list[int] = []
        for token in ids:
            if token == self.eos_token_id:
                sentences.append(words)
            words = [] if token in (self.bos_token_id, self.eos_token_id) else [*words, token]
        return sentences
