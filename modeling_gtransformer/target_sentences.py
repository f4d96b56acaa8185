"""Rules for target sentences while a document is generated: their order, the tokens around them, their lengths, and
when they are certain.

Shape legend: B documents, P tokens of a prompt, R rows (documents times beams or samples), T tokens, S source tokens,
G source sentences, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import GenerationConfig
from transformers.generation import (
    EncoderNoRepeatNGramLogitsProcessor,
    EncoderRepetitionPenaltyLogitsProcessor,
    LogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    StoppingCriteria,
)

from .group_tags import is_ended, sentence_lengths, sentence_progress
from .sentence_template import TargetTemplate


# Settings against repetition, their neutral values, and their processors; "encoder" settings need the source ids.
AGAINST_REPETITION: dict[str, tuple[float, type[Any]]] = {
    "encoder_repetition_penalty": (1.0, EncoderRepetitionPenaltyLogitsProcessor),
    "repetition_penalty": (1.0, RepetitionPenaltyLogitsProcessor),
    "no_repeat_ngram_size": (0, NoRepeatNGramLogitsProcessor),
    "encoder_no_repeat_ngram_size": (0, EncoderNoRepeatNGramLogitsProcessor),
}
REPETITION_PROCESSORS = tuple(processor for _, processor in AGAINST_REPETITION.values())


class NextTokens(NamedTuple):
    """
    The tokens that may follow R prefixes; tokens that are never words are excluded elsewhere.

    Attributes:
        forced: a token for each prefix, `(R, 1)`, and whether it must come, `is_forced` `(R, 1)`.
        too_short: whether the sentence is still too short for `</s>`, `(R,)`.
    """

    forced: Tensor
    is_forced: Tensor
    too_short: Tensor


class GroupTagLogitsProcessor(LogitsProcessor):
    """
    Keeps the target aligned with the source: the prefix of the template opens every sentence, then come words, then
    `</s>`, then the next sentence or, after as many as the source has, the end of the document, then padding. Within a
    sentence, words and `</s>` keep their scores, not renormalised; a token that must come scores 0. This is a pure
    function of the prefix, so there is no state that would have to follow the beams.

    Args:
        token_limits: maximum number of tokens of each target sentence, without those of the template, `(B, G)`. A row
            of the batch without source sentences (all zero) is generated freely.
        min_length: minimum number of such tokens of a sentence.
        max_length: maximum number of tokens of the document, the first one included. Sentences are closed early enough
            for all that follow to get `min_length` tokens.
        template: the tokens around every sentence.
    """

    def __init__(self, token_limits: Tensor, min_length: int, max_length: int, template: TargetTemplate):
        self.token_limits = token_limits
        self.min_length = min_length
        self.max_length = max_length
        self.template = template
        end = template.pad if template.end is None else template.end
        self.sentences = (token_limits > 0).sum(dim=1)
        self.forced = torch.tensor([end, *template.prefix], device=token_limits.device)
        banned = {template.start, *template.prefix, template.pad, template.end} - {template.eos_id, None}
        self.banned = sorted(token for token in banned if token is not None)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Masks scores `(R, V)` of the token that follows the prefixes `(R, T)`."""
        # The rows of a document are adjacent.
        documents = torch.arange(len(self.token_limits), device=input_ids.device)
        documents = documents.repeat_interleave(len(input_ids) // len(documents))
        progress = sentence_progress(input_ids, self.template)
        return self.mask(scores.clone(), documents, *progress, input_ids.shape[1], input_ids[:, -1])

    def mask(self, scores: Tensor, documents: Tensor, *before: Tensor | int) -> Tensor:
        """Masks scores `(R, V)` of a token, in place; for the other arguments see `allowed`."""
        is_document = self.sentences.to(scores.device)[documents] > 0
        allowed = self.allowed(documents, *before)
        is_forced = allowed.is_forced & is_document[:, None]
        for token in self.banned:
            scores[:, token].masked_fill_(is_document, -torch.inf)
        scores[:, self.template.eos_id].masked_fill_(is_document & allowed.too_short, -torch.inf)
        scores.masked_fill_(is_forced, -torch.inf)
        return scores.scatter_(1, allowed.forced, scores.gather(1, allowed.forced).masked_fill(is_forced, 0.0))

    def allowed(
        self, documents: Tensor, number: Tensor, words: Tensor, length: Tensor | int, last: Tensor
    ) -> NextTokens:
        """
        The tokens that may come next in documents with sentences.

        Args:
            documents: the document of the batch that the token belongs to, `(R,)`.
            number, words: its place, as [`sentence_progress`] returns it, `(R,)`.
            length: number of tokens of the document so far, `(R,)`.
            last: the token before it, `(R,)`.
        """
        template, limits = self.template, self.token_limits.to(number.device)
        sentences = self.sentences.to(number.device)[documents]
        limit = limits[documents, (number - 1).clamp(0, limits.shape[1] - 1)]
        later = (sentences - number).clamp(min=0)

        finished = (number > sentences) & (words == -len(template.prefix))
        inside = (words >= 0) & ~finished
        # After one more word, `</s>`, the later sentences and the end of the document must still fit.
        needed = 1 + later * (self.min_length + template.tokens) + (template.end is not None)
        is_full = self.max_length - length - 1 < needed
        close = inside & (words >= self.min_length) & ((words >= limit) | is_full)

        # The tokens of the prefix in order or, after the last sentence, the end.
        forced = self.forced.to(number.device)[
            torch.where(finished, 0, (1 + len(template.prefix) + words).clamp(max=len(template.prefix)))
        ]
        forced = torch.where(finished & is_ended(last, template), template.pad, forced)
        forced = torch.where(close, template.eos_id, forced)
        return NextTokens(forced[:, None], (~inside | close)[:, None], words < self.min_length)


class SentenceEndsSpared(LogitsProcessor):
    """Applies processors to the scores of all tokens but `</s>`, which a repetition penalty counts as repeated."""

    def __init__(self, processors: Sequence[Callable[[Tensor, Tensor], Tensor]], eos_token_id: int):
        self.processors, self.eos_token_id = processors, eos_token_id

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        ends = scores[:, self.eos_token_id].clone()
        for process in self.processors:
            scores = process(input_ids, scores)
        return scores.index_copy(1, torch.tensor([self.eos_token_id], device=scores.device), ends[:, None])


def spare_sentence_ends(
    config: GenerationConfig,
    given: Sequence[Callable[[Tensor, Tensor], Tensor]],
    source_ids: Tensor | None,
    eos_token_id: int,
) -> list[Callable[[Tensor, Tensor], Tensor]]:
    """
    Returns the given processors after those for the settings against repetition, which it sets to neutral in the
    config. None of these changes the score of `</s>`, which ends every sentence. Settings that need the ids of the
    source stay in the config if these are unknown.
    """
    processors = []
    for name, (neutral, make) in AGAINST_REPETITION.items():
        value, needs_source = getattr(config, name), name.startswith("encoder")
        if value is None or (source_ids is None and needs_source):
            continue
        if value != neutral:
            processors.append(make(value, source_ids) if needs_source else make(value))
        setattr(config, name, neutral)
    last = max((place for place, each in enumerate(given, 1) if isinstance(each, REPETITION_PROCESSORS)), default=0)
    processors += given[:last]
    spared = [SentenceEndsSpared(processors, eos_token_id)] if processors else []
    return [*spared, *given[last:]]


class SentenceStreamer(LogitsProcessor):
    """
    As a `logits_processor` of `generate`, reports every sentence of one document that has ended and that nothing can
    change any more: immediately with greedy search and sampling, with beams when all of them agree. It changes no
    score. Sentences on which the beams never agree become certain only at the end of `generate`, as do those that are
    decoded in parallel.

    Args:
        on_sentence: called with the number of the sentence, from 0, and the ids of its words.
        sentences: number of sentences of the document.
        template: the tokens around the words of target sentences, `processor.target_template`.
    """

    def __init__(self, on_sentence: Callable[[int, list[int]], None], sentences: int, template: TargetTemplate):
        self.on_sentence = on_sentence
        self.sentences = sentences
        self.template = template
        self.reported = 0
        self._open = True

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Looks at the prefixes `(R, T)` of all hypotheses that are still followed, and returns their scores."""
        if self._open:
            agreed = int((input_ids == input_ids[0]).all(dim=0).long().cumprod(dim=0).sum())
            prefix = input_ids[0, :agreed].tolist()
            current, _ = sentence_progress(input_ids[:1, :agreed], self.template)
            for number, words in enumerate(self.template.split(prefix)[: int(current) - 1]):
                if number == self.reported:
                    self.reported += 1
                    self.on_sentence(number, words)
            # A hypothesis that may end with the next token will no longer be among those followed.
            self._open = int(sentence_progress(input_ids, self.template)[0].max()) <= self.sentences
        return scores


class SentenceScoreRecorder(LogitsProcessor):
    """
    Records the scores of all sentences of one call of `generate`, as the last of its `logits_processor`. It changes no
    score.

    Attributes:
        sums: by document and sentence, the summed log-probability in nats of its words and `</s>`, and their number;
            `None` after a search in the loops of Transformers or a beam search with `parallel_sentences=True`, and
            for documents with a prompt.
    """

    sums: list[list[tuple[float, int]]] | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Returns the scores `(R, V)`."""
        return scores


class SentenceCountCriteria(StoppingCriteria):
    """
    Ends documents that have as many sentences as their sources, in templates without a token that ends a document.

    Args:
        sentences: number of sentences of each document, `(B,)`; 0 for one that its first `</s>` ends.
    """

    def __init__(self, sentences: Tensor, template: TargetTemplate):
        self.sentences, self.template = sentences.clamp(min=1), template
        # With this attribute, Transformers pads finished rows.
        self.eos_token_id = torch.tensor([template.eos_id])

    def __call__(self, input_ids: Tensor, scores: Tensor, **kwargs: Any) -> Tensor:
        """Returns which of the prefixes `(R, T)` are at their end, `(R,)`, bool."""
        sentences = self.sentences.to(input_ids.device).repeat_interleave(len(input_ids) // len(self.sentences))
        return sentence_progress(input_ids, self.template)[0] > sentences


class DocumentLengthCriteria(StoppingCriteria):
    """
    Ends documents that are generated freely, each at its own length, in any batch.

    Args:
        lengths: maximum number of tokens of each document, `(B,)`.
    """

    def __init__(self, lengths: Tensor):
        self.lengths = lengths

    def __call__(self, input_ids: Tensor, scores: Tensor, **kwargs: Any) -> Tensor:
        """Returns which of the prefixes `(R, T)` are at their end, `(R,)`, bool."""
        lengths = self.lengths.to(input_ids.device).repeat_interleave(len(input_ids) // len(self.lengths))
        return lengths <= input_ids.shape[1]


@dataclass(frozen=True)
class LengthPlan:
    """
    Lengths of the target documents of a batch, in tokens from the first `<s>` on.

    Attributes:
        token_limits: maximum number of tokens of each target sentence, without those of the template, `(B, G)`; 0
            beyond the last one.
        min_length: minimum number of such tokens of a sentence.
        sentences: number of sentences of each document, `(B,)`.
        opened: number of sentences that the prompt opens, `(B,)`; at least one.
        min_tokens: length that the batch needs for the shortest translations.
        max_tokens: length of the longest translation of each document, `(B,)`.
        positions: maximum number of tokens that the model has positions for; infinite if it is unbounded.
        budget: available length: `max_length`, or what the caller or the positions limit it to.
    """

    token_limits: Tensor
    min_length: int
    sentences: Tensor
    opened: Tensor
    min_tokens: int
    max_tokens: Tensor
    positions: float
    budget: int

    @property
    def max_length(self) -> int:
        """Length of the longest translation of all."""
        return int(self.max_tokens.max())


def _opened(prompt: Tensor, template: TargetTemplate) -> tuple[Tensor, Tensor]:
    """Number of sentences that prompts `(B, P)` open, at least one, and number of tokens that the prefix of the last
    one still lacks, both `(B,)`."""
    number, words = sentence_progress(prompt, template)
    at_boundary = (words == -len(template.prefix)) & (number > 1)
    return (number - at_boundary.long()).clamp(min=1), (-words).clamp(min=0).masked_fill(at_boundary, 0)


def plan_lengths(
    config: GenerationConfig,
    source_tags: Tensor,
    prompt: Tensor | None,
    model_config: Any,
    template: TargetTemplate,
    limited: bool,
) -> LengthPlan:
    """
    Plans target documents for sources with tags `(B, S)`.

    Args:
        config: has the limits per sentence, and `max_length` or `max_new_tokens`.
        prompt: `decoder_input_ids` `(B, P)`.
        template: the tokens around the words of target sentences.
        limited: whether the caller set `max_length` or `max_new_tokens`.

    Raises:
        ValueError: the tags skip a sentence.
    """
    lengths = sentence_lengths(source_tags)
    present = lengths > 0
    if (present[:, 1:] & ~present[:, :-1]).any():
        raise ValueError("group_tags must number the sentences of a document 1, 2, 3, ... without gaps.")
    sentences, min_length = present.sum(dim=1), max(config.min_length, 1)
    source_frame = len(model_config.template.source_prefix) + 1 + len(model_config.template.source_suffix)
    words = (lengths - source_frame).clamp(min=0).double() * config.max_length_a + config.max_length_b
    token_limits = words.long().clamp(min=min_length) * present
    positions = model_config.max_document_tokens
    if (in_sentence := model_config.max_sentence_tokens) < positions:
        token_limits = token_limits.clamp(max=in_sentence - template.tokens)

    prompt = source_tags.new_full((len(sentences), 1), template.start) if prompt is None else prompt
    prompt_length, (opened, lacking) = prompt.shape[1], _opened(prompt, template)
    later = (sentences - opened).clamp(min=0)
    min_tokens = prompt_length + int((lacking + later * (min_length + template.tokens)).max()) + min_length + 1
    min_tokens += template.end is not None
    max_tokens = prompt_length + (token_limits + template.tokens * present).sum(dim=1)

    budget = int(max_tokens.max())
    if limited:
        budget = config.max_length if config.max_new_tokens is None else prompt_length + config.max_new_tokens
    budget = int(min(budget, positions))
    return LengthPlan(token_limits, min_length, sentences, opened, min_tokens, max_tokens, positions, budget)
