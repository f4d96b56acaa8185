"""Sentences that are decoded side by side, each in the context of its document as it stands.

Shape legend: B documents, T target tokens, S source tokens, R sentences decoded at a time, D model size, V
vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import EncoderDecoderCache

from .beam_search import SHRINKS_AT
from .configuration_gtransformer import TargetFrame


@dataclass
class OpenSentence:
    """
    A sentence that is being decoded.

    Attributes:
        number: its group tag.
        start: the position of its first token in the document.
        tokens: from that one on. The last one is new, those before it stand in the document.
        context: how many tokens of the document it sees, its own included.
        old_rest: what stood behind the token that the new one replaces.
    """

    number: int
    start: int
    tokens: list[int]
    context: int
    old_rest: Sequence[int] = ()


class Sources(NamedTuple):
    """Encoder states `(B, S, D)`, masks and group tags `(B, S)` of documents."""

    states: Tensor
    mask: Tensor
    tags: Tensor


class FramedDecoder:
    """
    The decoder of a model over the sources of a batch, whose scores keep to a frame.

    Args:
        model: a `GTransformerForConditionalGeneration`.
        frame: the `GroupTagLogitsProcessor` of the batch.
        suppressed: ids of the tokens that never come where the frame leaves a choice.
        sources: the documents of the batch; their masks are 1 for tokens, 0 for padding.
        watchers: look at the ids `(R, T)` of documents that grow token by token, before each step.

    Attributes:
        steps: how often single tokens were read.
    """

    def __init__(
        self,
        model,
        frame,
        suppressed: Tensor,
        sources: Sources,
        watchers: Sequence[Callable[[Tensor], None]] = (),
    ):
        self.model, self.limits, self.frame, self.suppressed = model, frame, frame.frame, suppressed
        self.word_limits, self.max_length = frame.word_limits, frame.max_length
        self.source_states, self.source_mask, self.source_tags = sources
        self.device, self.watchers = self.source_states.device, watchers
        self.is_biased = bool(model.final_logits_bias.any())  # zeros would cost a copy of the logits
        self.steps = 0

    def over(self, sources: Sources, word_limits: Tensor) -> "FramedDecoder":
        """The same decoder over other sources `(B, S)`, whose target sentences have so many words `(B, G)` at most."""
        return FramedDecoder(self.model, self.limits.with_limits(word_limits), self.suppressed, sources)

    def sources(self, rows: Tensor) -> Sources:
        """The sources of the documents `rows` of the batch."""
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
        """Decoder states `(B, T, D)` of ids `(B, T)` at these positions, which are counted unless given."""
        if positions is not None and self.model.config.position_embedding_type == "learned":
            # Drafts may run past the last learned position: the final sentences do not.
            positions = positions.clamp(max=self.model.config.max_position_embeddings - 1)
        return self.model.model(
            decoder_input_ids=ids,
            decoder_attention_mask=mask,
            decoder_position_ids=positions,
            encoder_outputs=(sources.states, sources.tags),
            attention_mask=sources.mask if source_mask is None else source_mask,
            past_key_values=cache,
            **arguments,
        ).last_hidden_state

    def scores(self, hidden_states: Tensor, *before: Tensor, normalize: bool = False) -> Tensor:
        """Scores `(R, V)` of the tokens after decoder states `(R, D)`, framed by what is before them."""
        project = self.model.output_logits if self.is_biased else self.model.lm_head
        logits = project(hidden_states).to(device=self.device, dtype=torch.float32)
        scores = logits.log_softmax(dim=-1) if normalize else logits
        return self.limits.mask(scores.index_fill_(1, self.suppressed, -torch.inf), *before)

    def masks(self, seen: dict[str, Tensor]) -> dict[str, Tensor]:
        """Masks `(B, 1, R, S)` for the model by attention kind, of booleans `(B, R, S)`."""
        masks = {kind: mask[:, None] for kind, mask in seen.items()}
        if self.model.config._attn_implementation == "sdpa":
            return masks
        least = torch.finfo(self.model.dtype).min
        return {kind: mask.logical_not().to(self.model.dtype) * least for kind, mask in masks.items()}


def progress_after(tokens: Tensor, number: Tensor, read: Tensor, frame: TargetFrame) -> tuple[Tensor, Tensor]:
    """What [`sentence_progress`] tells of prefixes that end with these tokens, before which so many of their sentence
    were read; all of one shape."""
    words = read + 1 - frame.head - len(frame.prefix)
    if frame.closer_opens:
        return number, words
    # Behind the last word comes what opens the next sentence.
    closed = tokens == frame.closer
    return number + closed, words.masked_fill(closed, -len(frame.prefix))


class DecodingBatch:
    """
    Sentences that are decoded side by side. Their keys and values go into the cache of their document, in the order of
    decoding, and a mask tells which of them each may see: what stood there and what it has written itself; drafts also
    what the sentences before them have written so far.

    Args:
        cache: keys and values of the documents.
        rows: which documents of the decoder's batch these are.
        sentences: for each document its sentences; the batch has as many columns as the longest list.
        drafting: whether sentences see what those before them write.

    Attributes:
        tokens: the last token of each sentence, `(B, R)`.
        real: which columns are sentences, `(B, R)`.
        column: where each stands in the list of its document, `(B, R)`.
    """

    def __init__(
        self,
        decoder: FramedDecoder,
        cache: EncoderDecoderCache,
        rows: list[int],
        sentences: list[list[OpenSentence]],
        drafting: bool = False,
    ):
        self.decoder, self.cache, self.drafting = decoder, cache, drafting
        empty = OpenSentence(1, 0, [decoder.frame.pad], 0)
        width = max(map(len, sentences))
        filled = [[*opened, *[empty] * (width - len(opened))] for opened in sentences]

        def table(field) -> Tensor:
            return torch.tensor([[field(sentence) for sentence in opened] for opened in filled], device=decoder.device)

        self.tokens = table(lambda sentence: sentence.tokens[-1])
        longest = max(len(sentence.old_rest) for opened in filled for sentence in opened)
        self.old_rest = table(lambda sentence: [*sentence.old_rest, *[-1] * (longest - len(sentence.old_rest))])
        self.number, self.start = table(lambda sentence: sentence.number), table(lambda sentence: sentence.start)
        self.real = table(lambda sentence: sentence is not empty)
        self.column = torch.arange(width, device=decoder.device).expand_as(self.real)
        self.read = table(lambda sentence: len(sentence.tokens) - 1)
        self.rows = torch.tensor(rows, device=decoder.device)
        position = torch.arange(cache.get_seq_length(), device=decoder.device)
        self.document = position < table(lambda sentence: sentence.context)[..., None]
        self.sentence = self.document & (position >= self.start[..., None])
        self.sources = decoder.sources(self.rows)
        self.source = self.sources.mask[:, None].bool()
        self.source_sentence = self.sources.tags[:, None] == self.number[..., None]
        self.written = self.earlier = self.document[..., :0]

    def step(self, tokens: Tensor, alive: Tensor) -> Tensor:
        """Reads the next token `(B, R)` of every sentence: the framed scores `(B, R, V)` of the one after it. Drafts
        do not look at sentences that are no longer `alive`."""
        decoder = self.decoder
        itself = torch.eye(tokens.shape[1], dtype=torch.bool, device=tokens.device).expand(len(tokens), -1, -1)
        self.written = context = torch.cat([self.written, itself], dim=-1)
        if self.drafting:
            open_before = torch.ones_like(itself).tril() & alive[:, None]
            self.earlier = context = torch.cat([self.earlier, itself | open_before], dim=-1)
        hidden_states = decoder.states(
            self.sources,
            tokens,
            decoder.masks(
                {
                    "group": torch.cat([self.sentence, self.written], dim=-1),
                    "global": torch.cat([self.document, context], dim=-1),
                }
            ),
            self.read if decoder.model.config.position_scope == "sentence" else self.start + self.read,
            self.cache,
            source_mask=decoder.masks({"group": self.source_sentence, "global": self.source}),
            decoder_group_tags=self.number,
        )
        decoder.steps += 1
        rows = self.rows[:, None].expand_as(tokens)
        progress = progress_after(tokens, self.number, self.read, decoder.frame)
        before = (rows, *progress, self.start + self.read + 1, tokens)
        states = (states.flatten(0, 1) for states in (hidden_states, *before))
        scores = decoder.scores(*states)
        self.read = self.read + 1
        return scores.view(*tokens.shape, -1)

    def decode(self) -> list[list[list[int]]]:
        """The new tokens of all sentences, decoded greedily until each is at its end or goes on as it did before."""
        frame, documents = self.decoder.frame, torch.arange(len(self.rows), device=self.rows.device)[:, None]
        tokens, reading, alive = self.tokens, self.real, self.real
        empty = torch.full_like(tokens, frame.pad)
        decoded: list[Tensor] = []
        while True:
            tokens = self.step(tokens, reading).argmax(dim=-1).masked_fill(~alive, frame.pad)
            as_before = (tokens[..., None] == self.old_rest[..., len(decoded) : len(decoded) + 1]).any(dim=-1)
            decoded.append(empty.scatter(1, self.column, tokens))
            # Others see the last token of a sentence only after one more step.
            reading, alive = alive, alive & (tokens != frame.closer)
            width, is_done = int(reading.sum(dim=1).max()), not bool((alive & ~as_before).any())
            if is_done:
                break
            if width <= tokens.shape[1] * (1 - SHRINKS_AT):
                columns = reading.long().argsort(dim=1, descending=True, stable=True)[:, :width]
                self.keep(columns)
                tokens, reading, alive = (each[documents, columns] for each in (tokens, reading, alive))
        lines = torch.stack(decoded, dim=2).tolist()
        return [[[token for token in line if token != frame.pad] for line in opened] for opened in lines]

    def keep(self, columns: Tensor) -> None:
        """Leaves all sentences out but those in these columns, `(B, R)`."""
        documents = torch.arange(len(columns), device=columns.device)[:, None]
        of_each = ("old_rest", "number", "start", "read", "column", "document", "sentence", "source_sentence")
        for name in (*of_each, "written", "earlier"):
            setattr(self, name, getattr(self, name)[documents, columns])
