"""Reports sentences as soon as they are certain, while their document is still being generated."""

from collections.abc import Callable

from torch import Tensor
from transformers.generation import LogitsProcessor

from .group_tags import sentence_progress
from .sentence_template import TargetTemplate


class SentenceStreamer(LogitsProcessor):
    """
    As a `logits_processor` of `generate`, reports every sentence of one document that has ended and that nothing can
    change any more: immediately with greedy search and sampling, with beams when all of them agree. Scores stay as
    they are. Sentences on which the beams never agree become certain only at the end of `generate`, as do those that
    are decoded side by side.

    Args:
        on_sentence: called with the number of the sentence, from 0, and the ids of its words.
        sentences: number of sentences of the document.
        template: the tokens around the words of target sentences, `processor.target_template`.
        start: number of sentences that are given in the prompt and not reported.
    """

    def __init__(
        self,
        on_sentence: Callable[[int, list[int]], None],
        sentences: int,
        template: TargetTemplate,
        start: int = 0,
    ):
        self.on_sentence = on_sentence
        self.sentences = sentences
        self.template = template
        self.told = start
        self._open = True

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Looks at the prefixes `(R, T)` of all hypotheses, and returns the scores as they are."""
        self.watch(input_ids)
        return scores

    def watch(self, input_ids: Tensor) -> None:
        """Looks at the prefixes `(R, T)` of all hypotheses that are still followed."""
        if self._open:
            agreed = int((input_ids == input_ids[0]).all(dim=0).long().cumprod(dim=0).sum())
            prefix = input_ids[0, :agreed].tolist()
            current, _ = sentence_progress(input_ids[:1, :agreed], self.template)
            for number, words in enumerate(self.template.split(prefix)[: int(current) - 1]):
                if number == self.told:
                    self.told += 1
                    self.on_sentence(number, words)
            # A hypothesis that may end with the next token will no longer be among those followed.
            self._open = int(sentence_progress(input_ids, self.template)[0].max()) <= self.sentences
