"""The decoder of a model over the sources of a batch, with scores that keep to the template of sentences.

Shape legend: B documents, R rows, T target tokens, S source tokens, D model size, V vocabulary.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import EncoderDecoderCache

from .sentence_template import TargetTemplate


class Sources(NamedTuple):
    """Encoder states `(B, S, D)`, masks and group tags `(B, S)` of documents."""

    states: Tensor
    mask: Tensor
    tags: Tensor


class FramedDecoder:
    """
    The decoder of a model over the sources of a batch, with scores that keep to a template.

    Args:
        model: a `GTransformerForConditionalGeneration`.
        limits: the `GroupTagLogitsProcessor` of the batch.
        suppressed: ids of the tokens that are never chosen where the template leaves a choice.
        sources: the documents of the batch; their masks are 1 for tokens, 0 for padding.
        watchers: called before each step with the ids `(R, T)` of documents that grow token by token.

    Attributes:
        steps: number of steps that have read single tokens.
    """

    def __init__(
        self,
        model,
        limits,
        suppressed: Tensor,
        sources: Sources,
        watchers: Sequence[Callable[[Tensor], None]] = (),
    ):
        self.model, self.limits, self.template, self.suppressed = model, limits, limits.template, suppressed
        self.token_limits, self.max_length = limits.token_limits, limits.max_length
        self.source_states, self.source_mask, self.source_tags = sources
        self.device, self.watchers = self.source_states.device, watchers
        self.is_biased = bool(model.final_logits_bias.any())  # zeros would cost a copy of the logits
        self.steps = 0

    def over(self, sources: Sources, token_limits: Tensor) -> "FramedDecoder":
        """The same decoder over other sources `(B, S)`, with these limits `(B, G)` of words per target sentence."""
        return FramedDecoder(self.model, self.limits.with_limits(token_limits), self.suppressed, sources)

    def sources(self, rows: Tensor | list[int]) -> Sources:
        """The sources of these documents of the batch."""
        return Sources(self.source_states[rows], self.source_mask[rows], self.source_tags[rows])

    def states(
        self,
        sources: Sources,
        ids: Tensor,
        mask: Tensor | dict[str, Tensor] | None,
        positions: Tensor | None,
        cache: EncoderDecoderCache,
        source_mask: dict[str, Tensor] | None = None,
        **arguments: Tensor,
    ) -> Tensor:
        """Decoder states `(B, T, D)` of ids `(B, T)` at these positions, which the model counts unless given."""
        if positions is not None and self.model.config.position_embedding_type == "learned":
            # Drafts may run past the last learned position; final sentences do not.
            positions = positions.clamp(max=self.model.config.max_position_embeddings - 1)
        return self.model.model(
            decoder_input_ids=ids,
            decoder_attention_mask=mask,
            decoder_position_ids=positions,
            encoder_outputs=(sources.states, sources.tags),
            attention_mask=sources.mask if source_mask is None else source_mask,
            cache=cache,
            **arguments,
        ).last_hidden_state

    def scores(self, hidden_states: Tensor, *before: Tensor, normalize: bool = False) -> Tensor:
        """Scores `(R, V)` of the tokens that follow decoder states `(R, D)`, templated by what precedes them."""
        project = self.model.output_logits if self.is_biased else self.model.lm_head
        logits = project(hidden_states).to(device=self.device, dtype=torch.float32)
        scores = logits.log_softmax(dim=-1) if normalize else logits
        return self.limits.mask(scores.index_fill_(1, self.suppressed, -torch.inf), *before)


def progress_after(tokens: Tensor, number: Tensor, read: Tensor, template: TargetTemplate) -> tuple[Tensor, Tensor]:
    """What [`sentence_progress`] returns for prefixes that end with these tokens, given the number of their sentence
    and how many of its tokens were read before them; all of one shape."""
    words = read + 1 - template.head - len(template.prefix)
    if template.eos_opens_next:
        return number, words
    # A closed sentence is followed by what opens the next one.
    closed = tokens == template.eos_id
    return number + closed, words.masked_fill(closed, -len(template.prefix))
