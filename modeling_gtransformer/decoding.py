"""The decoding engine: greedy and beam search over rows that grow token by token.

A search has items, each with one row for every beam. An item is a document, a sentence that depends on its source
alone, which is a document of one sentence, or a sentence in the context of its document
([`modeling_gtransformer.jacobi_decoding`]). The loops of Transformers are the reference: documents come out the same,
token by token. Items leave this loop when they are finished.

Shape legend: B items, N beams, R rows (B times N), M candidates, P tokens of a prompt, T target tokens, S source
tokens, G source sentences, L tokens of the longest source sentence, D model size, V vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers.cache_utils import EncoderDecoderCache
from transformers.generation import ForcedBOSTokenLogitsProcessor, SuppressTokensLogitsProcessor

from .cache_gtransformer import DocumentCache
from .group_tags import is_ended, last_in_sentence, progress_after, read_group_tags, sentence_lengths
from .sentence_template import TargetTemplate
from .target_sentences import GroupTagLogitsProcessor, SentenceScoreRecorder, SentenceStreamer


# The score of hypotheses that do not exist; finite, as in the beam search of Transformers.
IMPOSSIBLE = -1.0e9
# Finished items leave the batch when they are this share of it.
SHRINKS_AT = 1 / 8
# Logits of sentences in memory at a time: 32 MB in float32. Larger blocks would be allocated anew in every step.
STEP_LOGITS = 2**23
# Logits that a CPU normalises at a time: 2 MB, which stay in its cache. A table as large as all of them would be new
# memory in every step, and mapping it takes longer than the sums.
BLOCK_LOGITS = 2**19
# From this size on, a CPU finds the best tokens of the vocabulary 2.5 to 5 times as fast block by block.
LARGE_VOCABULARY, TOPK_BLOCK = 2**14, 64

# Logits processors that score every token separately, and processors that leave documents unchanged.
TOKEN_PROCESSORS = (GroupTagLogitsProcessor, SentenceScoreRecorder, SuppressTokensLogitsProcessor)
NEUTRAL_PROCESSORS = (SentenceStreamer, ForcedBOSTokenLogitsProcessor)

Processor = Callable[[Tensor, Tensor], Tensor]


class Written(NamedTuple):
    """Ids that a search has written and, if they are recorded, their log-probabilities in the model, in nats; 0 for
    the ids of a prompt. Forced ids that the template excludes elsewhere may have minus infinity."""

    ids: list[int]
    log_probabilities: list[float] = []


class Sources(NamedTuple):
    """Encoder states `(B, S, D)`, masks and group tags `(B, S)` of documents."""

    states: Tensor
    mask: Tensor
    tags: Tensor

    def of(self, documents: Tensor | list[int]) -> "Sources":
        """The sources of these documents."""
        return Sources(*(each[documents] for each in self))


class TemplateDecoder:
    """
    The decoder of a model over the sources of a batch, with scores that follow the template of the sentences.

    Args:
        model: a `GTransformerForConditionalGeneration`.
        limits: keeps the sentences aligned.
        processors: logits processors in the order in which Transformers applies them, `limits` among them.
        sources: the documents of the batch; their masks are 1 for tokens, 0 for padding.

    Attributes:
        shrinks: whether the processors allow finished documents to leave the batch.
        records: whether the log-probabilities of documents are recorded.
        steps: number of steps that have read single tokens.
    """

    def __init__(
        self,
        model,
        limits: GroupTagLogitsProcessor,
        processors: Sequence[Processor],
        sources: Sources,
    ):
        self.model, self.limits, self.processors, self.sources = model, limits, processors, sources
        self.template, self.token_limits, self.max_length = limits.template, limits.token_limits, limits.max_length
        self.device = sources.states.device
        self.is_biased = bool(model.final_logits_bias.any())  # zeros would cost a copy of the logits
        self.shrinks = all(isinstance(each, (*TOKEN_PROCESSORS, *NEUTRAL_PROCESSORS)) for each in processors)
        self.observers = [each for each in processors if isinstance(each, SentenceStreamer)]
        self.records = any(isinstance(each, SentenceScoreRecorder) for each in processors)
        suppressed = [each.suppress_tokens for each in processors if isinstance(each, SuppressTokensLogitsProcessor)]
        banned = {*limits.banned, *(int(token) for tokens in suppressed for token in tokens)}
        in_vocabulary = [token for token in sorted(banned) if token < model.config.decoder_vocab_size]
        self.banned = torch.tensor(in_vocabulary, dtype=torch.long, device=self.device)
        self.steps = 0

    def sentences_per_step(self, beams: int) -> int:
        """Number of sentences that may be decoded at a time."""
        return max(STEP_LOGITS // (self.model.config.decoder_vocab_size * beams), 1)

    def over(self, sources: Sources, token_limits: Tensor) -> "TemplateDecoder":
        """The same decoder over other sources `(B, S)`, with these limits `(B, G)` of tokens per target sentence."""
        limits = GroupTagLogitsProcessor(token_limits, self.limits.min_length, self.max_length, self.template)
        return TemplateDecoder(self.model, limits, self.processors, sources)

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
            # Drafts and what follows the end of a document may run past the last learned position; sentences do not.
            positions = positions.clamp(max=self.model.config.max_position_embeddings - 1)
        return self.model.model.decoder(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            encoder_hidden_states=sources.states,
            encoder_group_tags=sources.tags,
            encoder_attention_mask=sources.mask if source_mask is None else source_mask,
            cache=cache,
            return_dict=True,
            **arguments,
        ).last_hidden_state

    def best(
        self,
        hidden_states: Tensor,
        ids: Tensor,
        count: int,
        *before: Tensor | int,
        normalize: bool = False,
        record: bool = False,
    ) -> tuple[Tensor, ...]:
        """The best tokens that may follow decoder states `(R, D)`, best first: their scores, their ids and, if these
        are recorded, their log-probabilities in the model, `(R, count)`. Scores are logits or, if normalized,
        log-probabilities, processed for prefixes `(R, T)`; `before` goes to [`GroupTagLogitsProcessor.allowed`]."""
        project = self.model.output_logits if self.is_biased else self.model.lm_head
        logits = project(hidden_states).to(device=self.device, dtype=torch.float32)
        count = min(count, logits.shape[1])
        log_sums = logsumexp(logits) if normalize or record else 0
        if not self.shrinks:
            # Processors may work in place.
            scores = logits - log_sums if normalize else logits.clone() if record else logits
            for process in self.processors:
                is_own = isinstance(process, GroupTagLogitsProcessor)
                scores = self.limits.mask(scores, *before) if is_own else process(ids, scores)
            best, tokens = best_tokens(scores, count)
        else:
            for observe in self.observers:
                observe(ids, logits)
            allowed = self.limits.allowed(*before)
            logits.index_fill_(1, self.banned, -torch.inf)
            logits[:, self.template.eos_id].masked_fill_(allowed.too_short, -torch.inf)
            best, tokens = best_tokens(logits, count)
            best = best - log_sums if normalize else best
            is_first = torch.arange(count, device=self.device) == 0
            best = torch.where(allowed.is_forced, torch.where(is_first, 0.0, -torch.inf), best)
            tokens = torch.where(allowed.is_forced, allowed.forced, tokens)
        return (best, tokens, logits.gather(1, tokens) - log_sums) if record else (best, tokens)


def logsumexp(logits: Tensor) -> Tensor:
    """The logarithm of the sum of exponentials of each row of logits `(R, V)`: `(R, 1)`."""
    rows = max(BLOCK_LOGITS // logits.shape[1], 1) if logits.device.type == "cpu" else len(logits)
    # On a CPU, `log_softmax` takes half the time of torch's own `logsumexp`.
    normalized = [block.log_softmax(dim=-1).amax(dim=-1, keepdim=True) for block in logits.split(rows)]
    return logits.amax(dim=-1, keepdim=True) - torch.cat(normalized)


def best_tokens(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The best tokens of scores `(R, V)` and their ids, best first. A single token is the first of equal ones, as in
    the greedy search of Transformers."""
    # `topk` does not define the order of equal scores, which are frequent in bfloat16.
    if count == 1:
        return scores.max(dim=-1, keepdim=True)
    is_large = scores.shape[1] >= max(LARGE_VOCABULARY, count * TOPK_BLOCK) and scores.device.type == "cpu"
    return _topk_by_block(scores, count) if is_large else scores.topk(count, dim=-1)


def _topk_by_block(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`topk` of scores `(R, V)`, which are in the blocks with the highest maxima."""
    blocks = scores[:, : scores.shape[1] // TOPK_BLOCK * TOPK_BLOCK].unflatten(1, (-1, TOPK_BLOCK))
    chosen = blocks.amax(dim=-1).topk(count, dim=-1).indices[..., None]
    offset = torch.arange(TOPK_BLOCK, device=scores.device)
    tokens = (chosen * TOPK_BLOCK + offset).flatten(1)
    rest = torch.arange(blocks.shape[1] * TOPK_BLOCK, scores.shape[1], device=scores.device).expand(len(scores), -1)
    tokens = torch.cat([tokens, rest], dim=1)
    best, places = scores.gather(1, tokens).topk(count, dim=-1)
    return best, tokens.gather(1, places)


class Rows(ABC):
    """
    Items that are decoded, with N beams each.

    Attributes:
        decoder: the decoder over their sources.
        tokens: the last token of each beam, `(B, N)`.
        budget: upper bound of the number of tokens that remain to be written.
        shrinks: whether items may leave.
        records: whether steps return log-probabilities.
    """

    decoder: TemplateDecoder
    tokens: Tensor
    budget: int
    shrinks: bool = True
    records: bool = False

    @abstractmethod
    def step(self, tokens: Tensor, count: int) -> tuple[Tensor, ...]:
        """Reads the next tokens `(B, N)` and returns the best of those that follow, as [`TemplateDecoder.best`] does,
        with logits as the scores of a single beam: `(B, N, count)`, or fewer in a small vocabulary."""

    def best(self, hidden_states: Tensor, ids: Tensor, count: int, *before: Tensor | int) -> tuple[Tensor, ...]:
        """The result of a step, given the states `(R, D)` of its tokens; for the other arguments see
        [`TemplateDecoder.best`]."""
        self.decoder.steps += 1
        shape = self.tokens.shape
        best = self.decoder.best(hidden_states, ids, count, *before, normalize=shape[1] > 1, record=self.records)
        return tuple(each.view(*shape, -1) for each in best)

    @abstractmethod
    def ends(self, chosen: Tensor, parents: Tensor) -> Tensor:
        """Returns which of the chosen tokens `(B, M)` end what their parent beams `(B, M)` have written."""

    @abstractmethod
    def follow(self, rows: Tensor) -> None:
        """Continues every row from its parent row, `(R,)`."""

    @abstractmethod
    def keep(self, items: Tensor) -> None:
        """Keeps only the items with these indices."""


class Ranking(NamedTuple):
    """
    How a search ranks hypotheses.

    Attributes:
        length_penalty: exponent of the length by which scores are divided.
        early_stopping: whether a search ends as soon as it has N finished hypotheses.
    """

    length_penalty: float = 1.0
    early_stopping: bool = False


# With one beam, there is nothing to rank.
GREEDY = Ranking()


class Search:
    """
    A beam search for every item of a batch, as in Transformers; with one beam, a greedy search.

    Attributes:
        searched: original indices of the items that are still in the batch, `(B,)`.
        tokens: the last token of each running hypothesis, `(B, N)`.
        written: the tokens that it has written and, if these are recorded, their log-probabilities, `(B, N, T)`.
        running: the sum of their log-probabilities, `(B, N)`.
        best: tokens and log-probabilities of the finished hypotheses, best first, `(B, N, T)`.
        lengths: the numbers of their tokens, `(B, N)`.
        finished: their scores, `(B, N)`; `is_finished` marks those that exist.
        improvable: which searches may still find a better hypothesis, `(B,)`.
    """

    def __init__(self, rows: Rows, ranking: Ranking = GREEDY):
        self.rows, self.tokens, self.num_beams = rows, rows.tokens, rows.tokens.shape[1]
        self.length_penalty = ranking.length_penalty
        self.early_stopping = ranking.early_stopping or self.num_beams == 1
        # No beam has more of the best candidates than are looked at.
        self.num_candidates = 2 * self.num_beams if self.num_beams > 1 else 1
        self.searched = torch.arange(len(self.tokens), device=self.tokens.device)
        self.improvable = torch.ones_like(self.searched, dtype=torch.bool)
        first = torch.arange(self.num_beams, device=self.tokens.device) == 0
        self.running = torch.where(first, 0.0, IMPOSSIBLE).expand(self.tokens.shape)
        self.finished = torch.full_like(self.running, IMPOSSIBLE)
        self.is_finished = torch.zeros_like(self.tokens, dtype=torch.bool)
        self.lengths = torch.zeros_like(self.tokens)
        nothing = self.tokens.new_empty(*self.tokens.shape, 0)
        self.written = self.best = [nothing, nothing.float()] if rows.records else [nothing]

    def run(self, until: int = 0) -> list[Written]:
        """Returns the new tokens of the best hypothesis of every item. A greedy search may end when so few items are
        left, which are then unfinished."""
        found: dict[int, Written] = {}
        # The budget matters where fewer hypotheses exist than beams.
        for _ in range(self.rows.budget):
            self.step()
            improvable = self.improvable.nonzero()[:, 0]
            if len(improvable) <= until:
                break
            if self.rows.shrinks and len(improvable) <= len(self.tokens) * (1 - SHRINKS_AT):
                found |= self._found()
                self.keep(improvable)
        found |= self._found()
        if self.num_beams == 1:
            left = self.improvable.nonzero()[:, 0]
            found |= self._read(left, self.written, torch.full_like(left, self.written[0].shape[-1]))
        return [found[index] for index in sorted(found)]

    def _found(self) -> dict[int, Written]:
        """The new tokens of the best hypotheses so far."""
        return self._read(torch.arange(len(self.tokens), device=self.tokens.device), self.best, self.lengths[:, 0])

    def _read(self, items: Tensor, tables: list[Tensor], lengths: Tensor) -> dict[int, Written]:
        """The first hypotheses of these items in tables `(B, N, T)`, with these lengths, by original index."""
        hypotheses = zip(*(table[items, 0].tolist() for table in tables), strict=True)
        cut = zip(self.searched[items].tolist(), hypotheses, lengths.tolist(), strict=True)
        return {index: Written(*(each[:length] for each in hypothesis)) for index, hypothesis, length in cut}

    def keep(self, items: Tensor) -> None:
        """Keeps only the items with these indices."""
        self.rows.keep(items)
        for name in ("searched", "tokens", "running", "finished", "is_finished", "lengths", "improvable"):
            setattr(self, name, getattr(self, name)[items])
        self.written, self.best = ([table[items] for table in tables] for tables in (self.written, self.best))

    def step(self) -> None:
        """Writes one more token of every hypothesis."""
        length = self.written[0].shape[-1] + 1
        candidates, parents, chosen = self._candidates(*self.rows.step(self.tokens, self.num_candidates))
        ends = self.rows.ends(chosen[0], parents)
        just_finished = ends & (torch.arange(ends.shape[1], device=ends.device) < self.num_beams)
        just_finished = just_finished & self.improvable[:, None]
        # Asking another device would synchronise with it.
        if just_finished.device.type != "cpu" or just_finished.any():
            self._finish(candidates, just_finished, self._grown(parents, chosen), length)
        self._go_on(candidates, ends, parents, chosen)
        worst = torch.where(self.is_finished, self.finished[:, -1:], IMPOSSIBLE)
        promising = (self.running[:, :1] / length**self.length_penalty > worst).any(dim=-1)
        self.improvable = self.improvable & promising & ~(self.is_finished.all(dim=-1) & self.early_stopping)

    def _candidates(self, scores: Tensor, *best: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The best continuations of every item, given those of each beam as a step returns them: the scores of the
        hypotheses, their parent beams, and their last tokens with their log-probabilities, `(B, M)`, best first."""
        if self.num_beams == 1:  # the score of the token alone, as a sum would round away differences
            return scores[:, 0], torch.zeros_like(best[0][:, 0]), [each[:, 0] for each in best]
        candidates, index = (self.running[..., None] + scores).flatten(1).topk(self.num_candidates, dim=-1)
        return candidates, index // scores.shape[-1], [each.flatten(1).gather(1, index) for each in best]

    def _grown(self, parents: Tensor, chosen: list[Tensor]) -> list[Tensor]:
        """What the parent beams `(B, M)` have written and the tokens chosen after it, `(B, M, T)`."""
        pairs = zip(self.written, chosen, strict=True)
        return [torch.cat([_pick(table, parents), new[..., None]], dim=-1) for table, new in pairs]

    def _finish(self, candidates: Tensor, just_finished: Tensor, grown: list[Tensor], length: int) -> None:
        """Keeps the N best of the finished hypotheses and of the candidates `(B, M)` that have just ended."""
        hypotheses = candidates / length**self.length_penalty + ~just_finished * IMPOSSIBLE
        self.finished, places = torch.cat([self.finished, hypotheses], dim=-1).topk(self.num_beams, dim=-1)
        self.is_finished = torch.cat([self.is_finished, just_finished], dim=-1).gather(1, places)
        lengths = torch.cat([self.lengths, torch.full_like(just_finished, length, dtype=torch.long)], dim=-1)
        self.lengths = lengths.gather(1, places)
        padding = (0, length - self.best[0].shape[-1])
        pairs = zip(self.best, grown, strict=True)
        self.best = [_pick(torch.cat([nn.functional.pad(best, padding), new], dim=1), places) for best, new in pairs]

    def _go_on(self, candidates: Tensor, ends: Tensor, parents: Tensor, chosen: list[Tensor]) -> None:
        """Follows the N best candidates `(B, M)` that have not ended."""
        self.running, kept = (candidates + ends * IMPOSSIBLE).topk(self.num_beams, dim=-1)
        parents = parents.gather(1, kept)
        self.written = self._grown(parents, [each.gather(1, kept) for each in chosen])
        self.tokens = self.written[0][..., -1]
        if self.num_beams > 1:
            first = torch.arange(len(kept), device=kept.device)[:, None] * self.num_beams
            self.rows.follow((first + parents).flatten())


def _pick(table: Tensor, index: Tensor) -> Tensor:
    """Picks the rows `(B, M)` of a table `(B, N, T)`: `(B, M, T)`."""
    return table.gather(1, index[..., None].expand(*index.shape, table.shape[-1]))


class DocumentRows(Rows):
    """
    Documents that grow token by token, each in the context of what it has written so far.

    Args:
        decoder: the decoder over their sources.
        prompts: the ids that the documents begin with, `(B, P)`.
        beams: N.

    Attributes:
        ids: the ids of every row so far, `(R, T)`.
        number, place: the sentence of the last token that each row has read and the place of the token in it, `(R,)`,
            from the first step on.
    """

    def __init__(self, decoder: TemplateDecoder, prompts: Tensor, beams: int):
        self.decoder, self.beams, self.shrinks, self.records = decoder, beams, decoder.shrinks, decoder.records
        self.cache = DocumentCache(len(prompts), beams)
        self.documents = torch.arange(len(prompts), device=decoder.device)
        self.rows = self.documents.repeat_interleave(beams)
        # After the prompts, nothing reads the sources again: the cache has their projections.
        self.sources = decoder.sources.of([0])
        self.budget = decoder.max_length - prompts.shape[1]
        self.tokens = prompts[:, -1:].expand(-1, beams)
        self.ids = prompts[:, :-1].repeat_interleave(beams, 0)

    def step(self, tokens: Tensor, count: int) -> tuple[Tensor, ...]:
        decoder, last, self.tokens = self.decoder, tokens.flatten(), tokens
        self.ids = torch.cat([self.ids, last[:, None]], dim=1)
        hidden_states = self._read_token(last) if self.cache.get_seq_length() else self._read_prompts()
        progress = progress_after(last, self.number, self.place, decoder.template)
        return self.best(hidden_states[:, -1], self.ids, count, self.rows, *progress, self.ids.shape[1], last)

    def _read_prompts(self) -> Tensor:
        """Decoder states of the prompts, `(R, P, D)`."""
        decoder = self.decoder
        self.number, self.place = last_in_sentence(self.ids, decoder.template)
        tags = read_group_tags(self.ids, decoder.model.config, is_target=True)
        return decoder.states(decoder.sources.of(self.rows), self.ids, None, None, self.cache, group_tags=tags)

    def _read_token(self, last: Tensor) -> Tensor:
        """Decoder states of one more token of every row, `(R, 1, D)`."""
        decoder, template = self.decoder, self.decoder.template
        opens = last == (template.eos_id if template.eos_opens_next else template.prefix[0])
        self.number, self.place = self.number + opens, (self.place + 1).masked_fill(opens, 0)
        positions = self.place[:, None] if decoder.model.config.position_scope == "sentence" else None
        # What ends a document belongs to no sentence.
        tags = self.number.masked_fill(is_ended(last, template) & (self.place > 0), 0)[:, None]
        return decoder.states(self.sources, last[:, None], None, positions, self.cache, group_tags=tags)

    def ends(self, chosen: Tensor, parents: Tensor) -> Tensor:
        template = self.decoder.template
        if template.end is not None:
            return chosen == template.end
        begun = self.number.view(-1, self.beams).gather(1, parents)
        sentences = self.decoder.limits.sentences.to(chosen.device)[self.documents]
        return (chosen == template.eos_id) & (begun >= sentences[:, None])

    def follow(self, rows: Tensor) -> None:
        self.ids, self.number, self.place = self.ids[rows], self.number[rows], self.place[rows]
        self.cache.reorder_cache(rows)

    def keep(self, items: Tensor) -> None:
        self.cache.keep(items)
        rows = torch.arange(len(self.rows), device=items.device).unflatten(0, (-1, self.beams))[items].flatten()
        for name in ("ids", "number", "place", "rows"):
            setattr(self, name, getattr(self, name)[rows])
        self.documents = self.documents[items]


def decode_documents(
    decoder: TemplateDecoder, prompts: Tensor, beams: int, ranking: Ranking = GREEDY
) -> list[Written]:
    """Returns the documents that a search finds from prompts `(B, P)`, including the tokens that end them."""
    found = Search(DocumentRows(decoder, prompts, beams), ranking).run()
    before = [0.0] * prompts.shape[1] * decoder.records
    pairs = zip(prompts.tolist(), found, strict=True)
    return [Written([*prompt, *new.ids], [*before, *new.log_probabilities]) for prompt, new in pairs]


def decode_independently(decoder: TemplateDecoder, beams: int, ranking: Ranking) -> list[Written]:
    """
    Returns the documents of a decoder's batch, including the tokens that end them, where no layer of the decoder has
    global attention and positions count from the start of every sentence. Each sentence is a separate document with
    separate beams, as in a sentence-level model.
    """
    template, sources = decoder.template, decoder.sources
    lengths = sentence_lengths(sources.tags)
    rows, columns = lengths.nonzero(as_tuple=True)
    translated: dict[int, Written] = {}
    # Similar lengths are decoded in parallel.
    order = lengths[rows, columns].argsort(descending=True, stable=True)
    for part in order.split(decoder.sentences_per_step(beams)):
        row, column = rows[part], columns[part]
        places, is_real = sentence_places(sources.tags[row], column + 1)
        own = Sources(sources.states[row[:, None], places], is_real.long(), is_real.long())
        sentences = decoder.over(own, decoder.token_limits[row, column][:, None])
        prompts = part.new_full((len(part), 1), template.start)
        translated |= zip(part.tolist(), decode_documents(sentences, prompts, beams, ranking), strict=True)
    documents: list[list[Written]] = [[] for _ in sources.tags]
    for place, row in enumerate(rows.tolist()):
        documents[row].append(translated[place])
    return [joined(sentences, template) for sentences in documents]


def joined(sentences: list[Written], template: TargetTemplate) -> Written:
    """The document of these sentences, each of which is a complete document."""
    head, end = template.head, int(template.end is not None)

    def join(parts: Sequence[list]) -> list:
        bodies = (part[head : len(part) - end] for part in parts)
        return [*parts[0][:head], *chain.from_iterable(bodies), *parts[-1][len(parts[-1]) - end :]]

    return Written(*map(join, zip(*sentences, strict=True)))


def sentence_places(tags: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
    """The places `(R, J)` of the tokens of one sentence in every row, given tags `(R, S)` and the numbers of the
    sentences `(R,)`, and a mask `(R, J)` that excludes the places that pad shorter sentences."""
    own = tags == numbers[:, None]
    lengths = own.sum(dim=1)
    places = own.int().argsort(dim=1, descending=True, stable=True)[:, : int(lengths.max())]
    return places, torch.arange(places.shape[1], device=tags.device) < lengths[:, None]
