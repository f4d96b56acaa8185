"""Sentences that are decoded side by side, each in the context of its document in its current state.

Every beam of every sentence is a row. What rows share, a document and its source, is kept once.

Shape legend: B documents, S sentences, N beams, R rows (S times N), W rows of a document, J source tokens of a
sentence, H heads, K head size, P tokens of a document, L places of a row, M candidates, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache

from .cache_gtransformer import StepCache
from .configuration_gtransformer import GTransformerConfig
from .context_attention import Context, ContextMask, rows_of_documents
from .framed_decoder import FramedDecoder, progress_after


States = tuple[Tensor, Tensor]

# Number of places by which the tables of keys and values grow.
GROWS_BY = 16


class SentenceCache(StepCache):
    """
    Keys and values of sentences that grow token by token, in rows of their own.

    Args:
        cache: keys and values of all documents, filled by a pass over them.
        documents: the document of each sentence, `(S,)`.
        starts: where each sentence starts in its document, `(S,)`.
        begun: the largest number of tokens that any sentence already has.
        source_places: positions of the tokens of the source sentences, `(S, J)`.
        beams: N.
        drafting: whether global attention sees what other sentences of the document write.

    Attributes:
        place: where the next token of each row goes, `(R,)`.
        length: number of places in use.
        rows: the rows of each document, `(B, W)`, as in a [`ContextMask`].
    """

    has_source = True

    def __init__(
        self,
        config: GTransformerConfig,
        cache: EncoderDecoderCache,
        documents: Tensor,
        starts: Tensor,
        begun: int,
        source_places: Tensor,
        beams: int,
        drafting: bool,
    ):
        super().__init__(DynamicCache(), DynamicCache())
        self.length, self.beams, self.drafting = begun, beams, drafting
        self.rows = documents[:0]
        self.place = documents.new_zeros(len(documents) * beams)
        self.documents: dict[tuple[int, str], States] = {}
        self.own: dict[tuple[int, str], States] = {}
        self.sources: dict[tuple[int, str], States] = {}
        tokens = torch.arange(begun, device=starts.device) + starts[:, None]
        for key, states in _by_kind(config.attention_types("decoder"), cache.self_attention_cache):
            self.documents[key] = states
            if drafting and key[1] == "global":
                continue
            given = (_pick(each, documents, tokens.clamp(max=each.shape[2] - 1)) for each in states)
            self.own[key] = tuple(each.repeat_interleave(beams, 0) for each in given)
        for key, states in _by_kind(config.attention_types("cross"), cache.cross_attention_cache):
            if key[1] == "group":
                states = tuple(_pick(each, documents, source_places) for each in states)
            self.sources[key] = states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.length

    def start(self, place: Tensor) -> None:
        """Prepares for the next token of each row, which goes to its place `(R,)`."""
        self.place, self.length = place, self.length + 1
        for key, states in self.own.items():
            if states[0].shape[2] < self.length:
                self.own[key] = tuple(nn.functional.pad(each, (0, 0, 0, GROWS_BY)) for each in states)

    def target(self, layer_idx: int, kind: str, keys: Tensor, values: Tensor) -> tuple:
        """Stores keys and values `(R, H, 1, K)` of the new token, and returns those of the row, `(R, H, L, K)`; for
        global attention also those of the documents, followed by what drafts have written."""
        if self.drafting and kind == "global":
            self._write(layer_idx, keys, values)
            return tuple(Context(states, keys[:, :, :0]) for states in self.documents[layer_idx, kind])
        seen = []
        index = self.place.to(keys.device)[:, None, None, None].expand_as(keys)
        for buffer, states in zip(self.own[layer_idx, kind], (keys, values), strict=True):
            seen.append(buffer.scatter_(2, index, states)[:, :, : self.length])
        if kind == "group":
            return tuple(seen)
        return tuple(Context(*pair) for pair in zip(self.documents[layer_idx, kind], seen, strict=True))

    def _write(self, layer_idx: int, *new: Tensor) -> None:
        """Appends keys and values `(R, H, 1, K)` of a token of every draft to its document."""
        rows = self.rows.to(new[0].device)
        pairs = zip(self.documents[layer_idx, "global"], new, strict=True)
        self.documents[layer_idx, "global"] = tuple(
            torch.cat([states, written[:, :, 0][rows].transpose(1, 2)], dim=2) for states, written in pairs
        )

    def source(self, layer_idx: int, kind: str, *_) -> tuple:
        """Returns keys and values of the source sentences, `(S, H, J, K)`; for global attention, of the documents."""
        states = self.sources[layer_idx, kind]
        if kind == "group":
            return states
        return tuple(
            Context(each, each.new_empty(len(self.place), each.shape[1], 0, each.shape[3])) for each in states
        )

    def follow(self, rows: Tensor) -> None:
        """Continues each row from its parent row, `(R,)`."""
        changed = (rows != torch.arange(len(rows), device=rows.device)).nonzero()[:, 0]
        for each in self.own.values():
            for buffer in each:
                used = buffer[:, :, : self.length]
                used[changed.to(used.device)] = used[rows[changed].to(used.device)]

    def keep(self, sentences: Tensor) -> None:
        """Keeps only the sentences with these indices."""
        rows = (sentences[:, None] * self.beams + torch.arange(self.beams, device=sentences.device)).flatten()
        self.own = {key: tuple(buffer[rows.to(buffer.device)] for buffer in each) for key, each in self.own.items()}
        for key, each in self.sources.items():
            if key[1] == "group":
                self.sources[key] = tuple(states[sentences.to(states.device)] for states in each)


def _by_kind(attention_types: list[str], cache: Cache) -> Iterator[tuple[tuple[int, str], States]]:
    """Yields the keys and values `(B, H, P, K)` by layer and attention kind; in a cache of Transformers, those of a
    layer are side by side, like heads."""
    for number, (attention_type, layer) in enumerate(zip(attention_types, cache.layers, strict=True)):
        kinds = ("group", "global") if attention_type == "combined" else (attention_type,)
        pairs = zip(layer.keys.chunk(len(kinds), dim=1), layer.values.chunk(len(kinds), dim=1), strict=True)
        for kind, states in zip(kinds, pairs, strict=True):
            yield (number, kind), states


def _pick(states: Tensor, documents: Tensor, places: Tensor) -> Tensor:
    """Picks states `(B, H, P, K)` at places `(S, L)` of documents `(S,)`: `(S, H, L, K)`."""
    index = documents[:, None].to(states.device), places.to(states.device)
    return states.transpose(1, 2)[index].transpose(1, 2).contiguous()


@dataclass
class OpenSentence:
    """
    A sentence that is being decoded.

    Attributes:
        number: its group tag.
        start: the position of its first token in the document.
        tokens: its tokens from there on; the last one is new, those before it are in the document.
        context: how many tokens of the document it sees, its own included.
        old_rest: what followed the token that the new one replaces.
    """

    number: int
    start: int
    tokens: list[int]
    context: int
    old_rest: Sequence[int] = ()


class SentenceBatch:
    """
    Sentences that grow token by token.

    Args:
        cache: keys and values of documents.
        rows: which documents of the decoder's batch these are.
        sentences: the sentences to decode, each with the index of its document in `rows`, in ascending order.
        beams: N.
        drafting: whether sentences see what those before them write, rather than what the document has there. Drafts
            have one beam each.

    Attributes:
        tokens: the last token of each beam, `(S, N)`.
        context: which tokens of its document each sentence sees, `(S, P)`.
    """

    def __init__(
        self,
        decoder: FramedDecoder,
        cache: EncoderDecoderCache,
        rows: Sequence[int],
        sentences: Sequence[tuple[int, OpenSentence]],
        beams: int = 1,
        drafting: bool = False,
    ):
        def column(values: list[int]) -> Tensor:
            return torch.tensor(values, device=decoder.device)

        self.decoder, self.drafting, self.width = decoder, drafting, len(rows)
        self.documents = column([document for document, _ in sentences])
        self.row = column(list(rows))[self.documents]
        self.number = column([sentence.number for _, sentence in sentences])
        self.begin = column([sentence.start for _, sentence in sentences])
        self.read = column([len(sentence.tokens) - 1 for _, sentence in sentences])
        self.tokens = column([sentence.tokens[-1] for _, sentence in sentences])[:, None].expand(-1, beams)
        around = decoder.template.head * len(decoder.template.prefix) + 1 + (decoder.template.end is not None)
        self.longest = int(decoder.token_limits[self.row].max()) + around
        places = [line.nonzero()[:, 0] for line in decoder.source_tags[self.row] == self.number[:, None]]
        self.source_mask = pad_sequence([torch.ones_like(each) for each in places], batch_first=True).bool()
        begun = max(len(sentence.tokens) for _, sentence in sentences) - 1
        self.cache = SentenceCache(
            decoder.model.config,
            cache,
            self.documents,
            self.begin,
            begun,
            pad_sequence(places, batch_first=True),
            beams,
            drafting,
        )
        # Drafts find all that they see in the document, others have the beginning of their own sentence in their rows.
        before = column([sentence.context for _, sentence in sentences]) if drafting else self.begin
        self.context = torch.arange(cache.get_seq_length(), device=decoder.device) < before[:, None]
        self._arrange()

    def _arrange(self) -> None:
        """Prepares what the rows of sentences share at every step, until a sentence leaves."""
        decoder, columns = self.decoder, (self.row, self.number, self.begin)
        self.of_row = [each.repeat_interleave(self.tokens.shape[1]) for each in columns]
        documents = self.documents.repeat_interleave(self.tokens.shape[1])
        context = self.context.repeat_interleave(self.tokens.shape[1], 0)
        self.mask = ContextMask(context, context[:, :0], *rows_of_documents(documents, self.width))
        self.cache.rows = self.mask.rows
        source = self.mask._replace(document=decoder.source_mask[self.of_row[0]].bool())
        self.source_masks = {"group": self.source_mask[:, None, None], "global": source}
        # These are not read again, as the cache has their projections.
        self.sources = decoder.sources(self.row[:1])

    def step(self, tokens: Tensor, normalize: bool = False, alive: Tensor | None = None) -> Tensor:
        """Reads the next tokens `(S, N)` and returns the templated scores `(S, N, V)` of those that follow them.
        Drafts do not see new tokens of sentences that are no longer `alive`, `(S,)`."""
        decoder = self.decoder
        row, number, begin = self.of_row
        read = self.read.repeat_interleave(tokens.shape[1])
        self.cache.start(read)
        own = torch.arange(self.cache.length, device=decoder.device) <= read[:, None]
        mask = self.mask._replace(own=own)
        if self.drafting:
            alive = torch.ones_like(self.row, dtype=torch.bool) if alive is None else alive
            self.context = torch.cat([self.context, self._written(alive)], dim=-1)
            mask = self.mask._replace(document=self.context)
        hidden_states = decoder.states(
            self.sources,
            tokens.reshape(-1, 1),
            {"group": own[:, None, None], "global": mask},
            (read if decoder.model.config.position_scope == "sentence" else begin + read)[:, None],
            self.cache,
            source_mask=self.source_masks,
            decoder_group_tags=number[:, None],
        )[:, -1]
        decoder.steps += 1
        self.tokens, self.read = tokens, self.read + 1
        last = tokens.flatten()
        before = (row, *progress_after(last, number, read, decoder.template), begin + read + 1, last)
        return decoder.scores(hidden_states, *before, normalize=normalize).view(*tokens.shape, -1)

    def _written(self, alive: Tensor) -> Tensor:
        """Tells which of the tokens read in this step each draft sees, `(S, W)`: its own, and those of drafts before
        it."""
        rows = self.mask.rows
        column, place = torch.arange(rows.shape[1], device=rows.device), self.mask.place[:, None] % rows.shape[1]
        return (column == place) | ((column < place) & alive[rows][self.documents])

    def ends(self, chosen: Tensor, parents: Tensor) -> Tensor:
        """Tells which of the chosen tokens `(S, M)` end the sentence of their parent beams `(S, M)`."""
        template = self.decoder.template
        # Where a token of its own ends a document, it comes after </s>, as if this were the only sentence.
        last = chosen if template.end is None else self.tokens.gather(1, parents)
        return last == template.eos_id

    def follow(self, parents: Tensor) -> None:
        """Continues every beam from its parent beam, `(S, N)`."""
        first = torch.arange(len(parents), device=parents.device)[:, None] * parents.shape[1]
        self.cache.follow((first + parents).flatten())

    def keep(self, sentences: Tensor) -> None:
        """Keeps only the sentences with these indices."""
        self.cache.keep(sentences)
        for name in ("documents", "row", "number", "begin", "read", "tokens", "source_mask", "context"):
            setattr(self, name, getattr(self, name)[sentences])
        self._arrange()
