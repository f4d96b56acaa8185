"""A beam search for every sentence of a document, in the context of the others as they stand.

Every beam of every sentence is a row. What the rows share, the document and its source, is kept once.

Shape legend: S sentences, N beams, R rows (S times N), B source tokens of a sentence, H heads, K head size, P tokens
of the document, L places of a row, M candidates, V vocabulary.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache

from .cache_gtransformer import StepCache
from .configuration_gtransformer import GTransformerConfig
from .context_attention import Context
from .decoding_batch import FramedDecoder, OpenSentence


States = tuple[Tensor, Tensor]


class SentenceCache(StepCache):
    """
    Keys and values of sentences that grow token by token, in rows of their own.

    Args:
        cache: keys and values of the documents of a batch, as a pass over all of them has filled it.
        row: the document.
        starts: where its sentences start, `(S,)`.
        begun: most tokens that are given of a sentence.
        places: L, tokens of the longest sentence that may come.
        source: which tokens of its source are no padding, `(T,)`, bool.
        source_places: tokens of the source sentences, `(S, B)`.
        beams: N.

    Attributes:
        place: where the next token of each row goes, `(R,)`.
        length: places that are in use.
    """

    has_source = True

    def __init__(
        self,
        config: GTransformerConfig,
        cache: EncoderDecoderCache,
        row: int,
        starts: Tensor,
        begun: int,
        places: int,
        source: Tensor,
        source_places: Tensor,
        beams: int,
    ):
        super().__init__(DynamicCache(), DynamicCache())
        self.place, self.length, self.beams = starts, begun, beams
        self.documents: dict[tuple[int, str], States] = {}
        self.own: dict[tuple[int, str], States] = {}
        self.sources: dict[tuple[int, str], States] = {}
        tokens = torch.arange(places, device=starts.device) + starts[:, None]
        for (layer, kind), states in _by_kind(config.attention_types("decoder"), cache.self_attention_cache, row):
            self.documents[layer, kind] = states
            # What is given of a sentence stands in the document; the rest is written later.
            given = (each[:, tokens.clamp(max=each.shape[1] - 1).to(each.device)].transpose(0, 1) for each in states)
            self.own[layer, kind] = tuple(each.repeat_interleave(beams, 0) for each in given)
        for (layer, kind), states in _by_kind(config.attention_types("cross"), cache.cross_attention_cache, row):
            if kind == "group":
                picked = (each[:, source_places.to(each.device)] for each in states)
                states = tuple(each.transpose(0, 1).contiguous() for each in picked)
            else:
                states = tuple(each[None, :, source.to(each.device)] for each in states)
            self.sources[layer, kind] = states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.length

    def start(self, place: Tensor, length: int) -> None:
        """Prepares for the next token of each row, which goes to its place `(R,)`, below a length."""
        self.place, self.length = place, length

    def target(self, layer_idx: int, kind: str, keys: Tensor, values: Tensor) -> tuple:
        """Stores keys and values `(R, H, 1, K)` of the new token, and returns those of the row, `(R, H, L, K)`; for
        global attention also those of the document."""
        seen = []
        index = self.place.to(keys.device)[:, None, None, None].expand_as(keys)
        for buffer, states in zip(self.own[layer_idx, kind], (keys, values), strict=True):
            seen.append(buffer.scatter_(2, index, states)[:, :, : self.length])
        if kind == "group":
            return tuple(seen)
        return tuple(Context(*pair) for pair in zip(self.documents[layer_idx, kind], seen, strict=True))

    def source(self, layer_idx: int, kind: str, *_) -> States:
        """Returns keys and values of the source sentence of each row, `(S, H, B, K)`, or of the document."""
        return self.sources[layer_idx, kind]

    def follow(self, rows: Tensor) -> None:
        """Lets each row go on from another one, `(R,)`."""
        changed = (rows != torch.arange(len(rows), device=rows.device)).nonzero()[:, 0]
        for each in self.own.values():
            for buffer in each:
                used = buffer[:, :, : self.length]
                used[changed.to(used.device)] = used[rows[changed].to(used.device)]

    def keep(self, sentences: Tensor) -> None:
        """Leaves all sentences out but those with these indices."""
        rows = _rows(sentences, self.beams)
        self.own = {key: tuple(buffer[rows.to(buffer.device)] for buffer in each) for key, each in self.own.items()}
        for key, each in self.sources.items():
            if key[1] == "group":
                self.sources[key] = tuple(states[sentences.to(states.device)] for states in each)


def _by_kind(attention_types: list[str], cache: Cache, row: int) -> Iterator[tuple[tuple[int, str], States]]:
    """Yields by layer and attention kind the keys and values `(H, P, K)` of a document, which stand side by side as
    heads in a cache of Transformers."""
    for number, (attention_type, layer) in enumerate(zip(attention_types, cache.layers, strict=True)):
        kinds = ("group", "global") if attention_type == "combined" else (attention_type,)
        pairs = zip(layer.keys[row].chunk(len(kinds)), layer.values[row].chunk(len(kinds)), strict=True)
        for kind, states in zip(kinds, pairs, strict=True):
            yield (number, kind), states


def _rows(sentences: Tensor, beams: int) -> Tensor:
    """The rows of sentences."""
    return (sentences[:, None] * beams + torch.arange(beams, device=sentences.device)).flatten()


class SentenceBatch:
    """
    Sentences of a document for [`BeamSearch`].

    Args:
        decoder: the decoder over the sources of a batch.
        cache: keys and values of its documents.
        row: the document.
        sentences: what is to be searched; each brings the tokens that are given of it.
        beams: N.
    """

    def __init__(
        self,
        decoder: FramedDecoder,
        cache: EncoderDecoderCache,
        row: int,
        sentences: list[OpenSentence],
        beams: int,
    ):
        def column(values: list[int]) -> Tensor:
            return torch.tensor(values, device=decoder.device)

        self.decoder, self.row = decoder, row
        self.number = column([sentence.number for sentence in sentences])
        self.begin = column([sentence.start for sentence in sentences])
        self.read = column([len(sentence.tokens) - 1 for sentence in sentences])
        self.tokens = column([sentence.tokens[-1] for sentence in sentences])[:, None].expand(-1, beams)
        around = decoder.frame.head * len(decoder.frame.prefix) + 1 + (decoder.frame.end is not None)
        self.longest = int(decoder.word_limits[row].max()) + around
        # The encoder states stay one document: the cache has projected them for all rows.
        self.sources = decoder.sources(column([row]))
        [tags] = self.sources.tags
        in_sentence = tags == self.number[:, None]
        places = [line.nonzero()[:, 0] for line in in_sentence]
        self.source_mask = pad_sequence([torch.ones_like(each) for each in places], batch_first=True).bool()
        begun = max(len(sentence.tokens) for sentence in sentences) - 1
        self.cache = SentenceCache(
            decoder.model.config,
            cache,
            row,
            self.begin,
            begun,
            begun + self.longest + 1,
            self.sources.mask[0].bool(),
            pad_sequence(places, batch_first=True),
            beams,
        )
        self.context = torch.arange(cache.get_seq_length(), device=decoder.device) < self.begin[:, None]

    def step(self, tokens: Tensor, normalize: bool = False) -> Tensor:
        """Reads the next tokens `(S, N)`: the framed scores `(S, N, V)` of those that follow."""
        decoder, frame = self.decoder, self.decoder.frame
        number, begin, read = (
            each.repeat_interleave(tokens.shape[1]) for each in (self.number, self.begin, self.read)
        )
        self.cache.start(read, self.cache.length + 1)
        own = torch.arange(self.cache.length, device=decoder.device) <= read[:, None]
        # What stands in the document before a sentence is the same for all its beams.
        document = self.context.repeat_interleave(tokens.shape[1], 0)
        hidden_states = decoder.states(
            self.sources,
            tokens.reshape(-1, 1),
            {**decoder.masks(group=own[:, None]), "global": Context(document, own)},
            (read if decoder.model.config.position_scope == "sentence" else begin + read)[:, None],
            self.cache,
            source_mask={**decoder.masks(group=self.source_mask[:, None]), "global": None},
            decoder_group_tags=number[:, None],
        )[:, -1]
        decoder.steps += 1
        self.tokens, self.read = tokens, self.read + 1
        last, words = tokens.flatten(), read + 1 - frame.head - len(frame.prefix)
        if not frame.closer_opens:
            # Behind the last word comes what opens the next sentence.
            closed = last == frame.closer
            number, words = number + closed, words.masked_fill(closed, -len(frame.prefix))
        before = (torch.full_like(last, self.row), number, words, begin + read + 1, last)
        return decoder.scores(hidden_states, *before, normalize=normalize).view(*tokens.shape, -1)

    def ends(self, chosen: Tensor, parents: Tensor) -> Tensor:
        """Tells which tokens `(S, M)` end a sentence that beams `(S, M)` have begun."""
        frame = self.decoder.frame
        # Frames with a token that ends a document read it as the one after </s>, as if this were the only sentence.
        last = chosen if frame.end is None else self.tokens.gather(1, parents)
        return last == frame.closer

    def follow(self, parents: Tensor) -> None:
        """Lets beams go on from others, `(S, N)`."""
        first = torch.arange(len(parents), device=parents.device)[:, None] * parents.shape[1]
        self.cache.follow((first + parents).flatten())

    def keep(self, sentences: Tensor) -> None:
        """Leaves all sentences out but those with these indices."""
        self.cache.keep(sentences)
        for name in ("number", "begin", "read", "tokens", "source_mask", "context"):
            setattr(self, name, getattr(self, name)[sentences])
