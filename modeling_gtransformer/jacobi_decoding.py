"""Jacobi decoding of documents: all sentences are drafted in parallel, then verified in one pass over the document.

Greedy decoding has one result, in which every token is the model's choice given all tokens before it: a system of
equations that fixed-point iterations solve in parallel (Santilli et al. 2023, "Accelerating Transformer Inference for
Translation via Parallel Decoding"). Here a block is a sentence. Every sentence is drafted in the context of the prompt
alone. A pass over the document then computes the model's choice of every token, as in speculative decoding. Sentences
with another token are decoded again, in parallel, from the first such token on, in the context of the latest
translations of the other sentences, until each rejoins its previous continuation. The last few long sentences of a
round are verified unfinished. The tokens before the first rejected one of a document are final, and every round adds
to them; the next pass begins with the sentence of that token. If there are too many rounds, the rest is decoded token
by token.

Positions count the tokens of the document. Where earlier sentences are not yet translated, their source lengths are
used instead.

Shape legend: B documents, S sentences, N beams, R rows (S times N), W rows of a document, J source tokens of a
sentence, H heads, K head size, P tokens of a document or prompt, L tokens of a row, M candidates, V vocabulary,
X tokens that a pass reads, Y tokens of all sources.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers.cache_utils import DynamicCache

from .cache_gtransformer import StepCache
from .context_attention import Context, ContextMask, rows_of_documents
from .decoding import GREEDY, Ranking, Rows, Search, Sources, TemplateDecoder, decode_documents, sentence_places
from .document_loss import logit_chunks
from .group_tags import progress_after, read_group_tags, sentence_lengths, sentence_positions
from .sentence_attention import PackedDocuments


States = tuple[Tensor, Tensor]

# Repairs end after this many steps per token of the longest document, or when more than this share of a document's
# sentences remains to be repaired.
PATIENCE = 0.25
MAX_TO_REPAIR = 0.5

# When only this share of the sentences is still being decoded, they are verified unfinished: few rows do not fill a
# step, and the next round continues them beside those that it repairs.
LEFT_OPEN = 1 / 8

# Every pass reads documents of more tokens than this as a whole: to read their last tokens takes a mask, which grows
# with the square of the length.
LONG = 1024

# Number of places by which the tables of keys and values grow.
GROWS_BY = 16


@dataclass
class OpenSentence:
    """
    A sentence that is being decoded.

    Attributes:
        number: its group tag.
        start: the position of its first token in the document.
        tokens: its tokens from there on; the last one is new, those before it are in the document.
        old_rest: the tokens that followed the one that the new token replaces.
    """

    number: int
    start: int
    tokens: list[int]
    old_rest: Sequence[int] = ()

    @property
    def stop(self) -> int:
        """Position after its last token."""
        return self.start + len(self.tokens)


class DocumentStates(StepCache):
    """
    Keys and values of documents. A pass reads every document from its first changed sentence on and replaces their
    states; those before stay.

    Args:
        sources: the documents' sources, which the first pass projects.

    Attributes:
        packed_source: the packed tokens of the sources.
        targets: keys and values of the target, `(B, H, P, K)`, by layer and attention kind.
        sources: those of the source, `(1, H, Y, K)`.
        read, whole: the tokens that the current pass reads, and all tokens of the documents, packed.
        length: P, which never shrinks; 0 until the first pass has projected the sources.
    """

    read: PackedDocuments
    whole: PackedDocuments

    def __init__(self, sources: Sources):
        super().__init__(DynamicCache(), DynamicCache())
        self.packed_source, self.length = PackedDocuments(sources.mask.bool(), sources.tags), 0
        self.targets: dict[tuple[int, str], States] = {}
        self.sources: dict[tuple[int, str], States] = {}

    def target(self, layer_idx: int, kind: str, keys: Tensor, values: Tensor) -> tuple:
        """Stores keys and values `(1, H, X, K)` of the tokens that a pass reads. Returns those that they may see: the
        same, as whole sentences are read, or for global attention those of the whole documents."""
        documents, self.length = self.whole.place.shape
        document, token = (index.to(keys.device) for index in self.read.index)
        stored = self.targets.get((layer_idx, kind), (keys[:, :, :0].expand(documents, -1, -1, -1),) * 2)
        if stored[0].shape[2] < self.length:
            gained = (0, 0, 0, self.length - stored[0].shape[2])
            stored = self.targets[layer_idx, kind] = tuple(nn.functional.pad(each, gained) for each in stored)
        for buffer, states in zip(stored, (keys, values), strict=True):
            buffer[document, :, token] = states[0].transpose(0, 1)
        if kind == "group":
            return keys, values
        return tuple(self.whole.pack(each.transpose(1, 2)).transpose(1, 2) for each in stored)

    def source(self, layer_idx: int, kind: str, project: Callable[[Tensor], States], states: Tensor) -> States:
        """Returns keys and values `(1, H, Y, K)` of the packed source, projected once."""
        if (layer_idx, kind) not in self.sources:
            self.sources[layer_idx, kind] = project(states)
        return self.sources[layer_idx, kind]


class JacobiDecoder:
    """
    Decodes the documents of a batch, with their sentences in parallel.

    Args:
        gives_up: whether documents that do not settle are continued token by token. This needs space for all their
            sentences, and sources in which every sentence is contiguous.
    """

    def __init__(self, decoder: TemplateDecoder, gives_up: bool = False):
        self.decoder, self.template, self.gives_up = decoder, decoder.template, gives_up
        self.source_lengths = [[n for n in row if n] for row in sentence_lengths(decoder.sources.tags).tolist()]
        # By document, the log-probability of every token and of the next one; empty unless recorded.
        self.log_probabilities: list[list[float]] = []
        self.states = DocumentStates(decoder.sources)

    def decode(self, prompts: Tensor) -> tuple[list[list[int]], list[int]]:
        """Returns the greedy documents that begin with prompts `(B, P)`, without the token that ends them, and the
        number of rounds that each took."""
        self.log_probabilities = [[0.0] * prompts.shape[1] * self.decoder.records for _ in prompts]
        documents, active, drafting_steps = prompts.tolist(), [*range(len(prompts))], None
        final, rounds = [prompts.shape[1]] * len(documents), [0] * len(documents)
        begin = dict.fromkeys(active, 0)
        while active:
            choices = self.verify(documents, begin, final)
            find = self.drafts if drafting_steps is None else self.moved
            opened = {row: find(row, documents[row], choices[row], final[row]) for row in active}
            repairs = self.decoder.steps - (drafting_steps or 0)
            if self.gives_up and drafting_steps is not None and self.is_unsettled(documents, opened, repairs):
                self.go_on(documents, {row: parts[0].stop - 1 for row, parts in opened.items() if parts})
                break
            active = [row for row, parts in opened.items() if parts]
            for row in active:
                final[row] = opened[row][0].stop
                rounds[row] += 1
            begin = {row: opened[row][0].start * (len(documents[row]) <= LONG) for row in active}
            self.extend({row: opened[row] for row in active})
            drafting_steps = self.decoder.steps if drafting_steps is None else drafting_steps
            for row in active:
                documents[row] = self.replaced(documents[row], opened[row])
        return documents, rounds

    def is_unsettled(self, documents: list[list[int]], moved: dict[int, list[OpenSentence]], repairs: int) -> bool:
        """Whether so much is left to repair, or repairs have taken so many steps, that decoding token by token is
        likely to be faster."""
        too_many = any(len(opened) > MAX_TO_REPAIR * len(self.source_lengths[row]) for row, opened in moved.items())
        too_long = repairs > PATIENCE * max(len(documents[row]) for row in moved)
        return too_many or (too_long and any(moved.values()))

    def go_on(self, documents: list[list[int]], final: dict[int, int]) -> None:
        """Decodes documents token by token; `final` has the number of their final tokens, by row."""
        rows, shortest = [*final], min(final.values())
        decoder = self.decoder.over(self.decoder.sources.of(rows), self.decoder.token_limits[rows])
        prompts = torch.tensor([documents[row][:shortest] for row in rows], device=self.decoder.device)
        for row, written in zip(rows, decode_documents(decoder, prompts, beams=1), strict=True):
            documents[row] = written.ids if self.template.end is None else written.ids[:-1]
            self.log_probabilities[row][shortest:] = written.log_probabilities[shortest : len(documents[row])]
        self.decoder.steps += decoder.steps

    def drafts(self, row: int, prompt: list[int], choices: list[int], final: int) -> list[OpenSentence]:
        """All sentences that the prompt has not finished."""
        starts, sentences = self.template.starts(prompt), len(self.source_lengths[row])
        opened, start, drafts = len(starts), len(prompt), []
        if self.template.eos_opens_next and opened > sentences:
            return []
        if self.template.eos_opens_next or prompt[-1] != self.template.eos_id:
            begin = starts[-1]
            drafts.append(OpenSentence(opened, begin, [*prompt[begin:], choices[final - 1]]))
            start = begin + max(*self.source_lengths[row][opened - 1 : opened], len(prompt) + 2 - begin, 0)
        first = self.template.eos_id if self.template.eos_opens_next else self.template.prefix[0]
        for number in range(opened + 1, sentences + 1):
            drafts.append(OpenSentence(number, start, [first]))
            start += self.source_lengths[row][number - 1]
        return drafts

    def moved(self, row: int, document: list[int], choices: list[int], final: int) -> list[OpenSentence]:
        """The sentences in which the model would have chosen another token, up to and including that token."""
        sentences: list[OpenSentence] = []
        starts = self.template.starts(document)
        for position in range(final - 1, len(document) - 1):
            decided = document[position] == self.template.eos_id and not self.template.eos_opens_next
            if decided or choices[position] == document[position + 1]:
                continue
            number = bisect_right(starts, position)
            if not sentences or sentences[-1].number != number:
                start = starts[number - 1]
                tokens = [*document[start : position + 1], choices[position]]
                old_rest = document[position + 2 : document.index(self.template.eos_id, position + 1) + 1]
                sentences.append(OpenSentence(number, start, tokens, old_rest))
        return sentences

    def replaced(self, document: list[int], sentences: list[OpenSentence]) -> list[int]:
        """The document with these sentences in place of those with the same numbers, or appended to it."""
        head = self.template.head
        starts = self.template.starts(document)
        parts = [document[a + head : b + head] for a, b in pairwise([*starts, len(document)])]
        # Nothing begins after the last `</s>`.
        parts = [part for part in parts if part]
        for sentence in sentences:
            parts[sentence.number - 1 : sentence.number] = [sentence.tokens[head:]]
        return [*document[:head], *(token for part in parts for token in part)]

    def verify(self, documents: list[list[int]], begin: dict[int, int], final: list[int]) -> list[list[int]]:
        """
        Reads documents from their first changed sentence on.

        Args:
            documents: all documents, `self.states` of which are up to date before the changed sentences.
            begin: where the first changed sentence begins, by row; other rows have none.
            final: numbers of final tokens, for all rows.

        Returns:
            For every token that is read inside a sentence, the token that the model would choose after it; -1 where
            that one is final, and elsewhere.
        """
        device, config = self.decoder.device, self.decoder.model.config

        def column(values: Sequence[int]) -> Tensor:
            return torch.tensor(values, device=device)[:, None]

        length = max(self.states.length, *map(len, documents))
        ids = torch.tensor([document + [0] * (length - len(document)) for document in documents], device=device)
        position = torch.arange(length, device=device).expand_as(ids)
        real = position < column([*map(len, documents)])
        is_read = real & (position >= column([begin.get(row, length) for row in range(len(documents))]))
        tags = read_group_tags(ids, config, is_target=True, attention_mask=real)
        place = sentence_positions(tags)
        positions = place if config.position_scope == "sentence" else position
        hidden_states = self._read(ids, is_read, real, tags, positions)

        number, words = progress_after(ids, tags, place, self.template)
        needed = is_read & (number <= column([*map(len, self.source_lengths)])) & (position + 1 >= column(final))
        if not self.template.eos_opens_next:
            needed &= ids != self.template.eos_id
        places = needed.nonzero(as_tuple=True)
        before = [places[0], *(field[places] for field in (number, words, position + 1, ids))]
        chosen = ids.new_empty(len(places[0]))
        scores = torch.zeros(len(chosen), device=device)
        records = self.decoder.records
        hidden_states = hidden_states[needed[is_read]]
        for chunk in logit_chunks(len(chosen), config.decoder_vocab_size, device):
            fields = (field[chunk] for field in before)
            _, best, *log_probabilities = self.decoder.best(hidden_states[chunk], ids[:0], 1, *fields, record=records)
            chosen[chunk] = best[:, 0]
            if records:
                scores[chunk] = log_probabilities[0][:, 0]
        if records:
            table = torch.zeros(ids.shape, device=device).index_put_(places, scores).tolist()
            for row in begin:
                self.log_probabilities[row][final[row] :] = table[row][final[row] - 1 : len(documents[row])]
        return torch.full_like(ids, -1).index_put_(places, chosen).tolist()

    def _read(self, ids: Tensor, is_read: Tensor, real: Tensor, tags: Tensor, positions: Tensor) -> Tensor:
        """Reads the tokens `is_read` of the `real` ones of documents `(B, P)` in one pass, and returns their decoder
        states `(X, D)`, one document after another."""
        states, source = self.states, self.states.packed_source
        states.read, states.whole = read, whole = PackedDocuments(is_read, tags), PackedDocuments(real, tags)
        return self.decoder.states(
            Sources(*map(source.pack, self.decoder.sources)),
            read.pack(ids),
            {"group": read.plan_by_sentence(read, True), "global": read.plan_by_document(whole, True)},
            read.pack(positions),
            states,
            source_mask={"group": read.plan_by_sentence(source), "global": read.plan_by_document(source)},
            group_tags=read.tags,
        )[0]

    def extend(
        self,
        opened: dict[int, list[OpenSentence]],
        beams: int = 1,
        ranking: Ranking = GREEDY,
    ) -> None:
        """Decodes sentences in parallel, in the context of the documents, until each is at its end or
        rejoins its old rest, which the next round verifies. A greedy search leaves a few long sentences open: they get
        their old rest or, as a draft, their end.

        Args:
            opened: their sentences, by the rows of the documents.
        """
        eos, head = self.template.eos_id, self.template.head
        places = [
            (document, sentence)
            for document, sentences in enumerate(opened.values())
            for sentence in sentences
            if sentence.tokens[-1] != eos or len(sentence.tokens) == head
        ]
        size = self.decoder.sentences_per_step(beams)
        for first in range(0, len(places), size):
            part = places[first : first + size]
            search = Search(SentenceRows(self.decoder, self.states, [*opened], part, beams), ranking)
            found = search.run(until=int(LEFT_OPEN * len(part)) if beams == 1 else 0)
            for (_, sentence), written in zip(part, found, strict=True):
                tokens = written.ids
                tokens = tokens if eos in tokens else [*tokens, *sentence.old_rest[len(tokens) :], eos]
                sentence.tokens += tokens[: tokens.index(eos) + 1]

    def search(self, prompts: Tensor, documents: list[list[int]], beams: int, ranking: Ranking) -> list[list[int]]:
        """
        Runs a beam search for every sentence that the prompts `(B, P)` have not finished, in the context of the other
        sentences of the settled documents. A document of one sentence is the same as from the beam search of
        Transformers.
        """
        opened = {row: self.unfinished(document, prompts.shape[1]) for row, document in enumerate(documents)}
        self.extend(opened, beams, ranking)
        return [self.replaced(document, opened[row]) for row, document in enumerate(documents)]

    def unfinished(self, document: list[int], given: int) -> list[OpenSentence]:
        """The sentences of a document that its first `given` tokens have not finished, from the first token on that
        is not given."""
        starts = self.template.starts(document)
        sentences = []
        for number, (start, end) in enumerate(pairwise([*starts, len(document)]), 1):
            # The `</s>` of a sentence may be the first token of the next one.
            end = min(end + self.template.head, len(document))
            if given < end and start + self.template.head < end:
                sentences.append(OpenSentence(number, start, document[start : max(given, start + 1)]))
        return sentences


class SentenceRows(Rows):
    """
    Sentences that grow token by token, each in the context of its document. Rows share one copy of their
    document and its source.

    Args:
        states: keys and values of documents.
        rows: which documents of the decoder's batch these are.
        sentences: the sentences to decode, each with the index of its document in `rows`, in ascending order.
        beams: N.
    """

    def __init__(
        self,
        decoder: TemplateDecoder,
        states: DocumentStates,
        rows: Sequence[int],
        sentences: Sequence[tuple[int, OpenSentence]],
        beams: int = 1,
    ):
        def column(values: list[int]) -> Tensor:
            return torch.tensor(values, device=decoder.device)

        self.decoder, self.number_of_documents, self.beams = decoder, len(rows), beams
        self.documents = column([document for document, _ in sentences])
        self.row = column(list(rows))[self.documents]
        self.number = column([sentence.number for _, sentence in sentences])
        self.start = column([sentence.start for _, sentence in sentences])
        self.read = column([len(sentence.tokens) - 1 for _, sentence in sentences])
        self.tokens = column([sentence.tokens[-1] for _, sentence in sentences])[:, None].expand(-1, beams)
        old_rests = [torch.tensor(sentence.old_rest, dtype=torch.long) for _, sentence in sentences]
        self.old_rest = pad_sequence(old_rests, batch_first=True, padding_value=-1).to(decoder.device)
        self.expected = self.old_rest[:, :0]
        around = decoder.template.head * len(decoder.template.prefix) + 1 + (decoder.template.end is not None)
        self.budget = int(decoder.token_limits[self.row].max()) + around
        source_places, self.source_mask = sentence_places(decoder.sources.tags[self.row], self.number)
        given = torch.arange(int(self.read.max()), device=decoder.device) + self.start[:, None]
        self.cache = SentenceCache(states, column(list(rows)), self.row, given, source_places, beams)
        self.context = torch.arange(states.length, device=decoder.device) < self.start[:, None]
        self._arrange()

    def _arrange(self) -> None:
        """Prepares what the rows of sentences share at every step, until a sentence leaves."""
        documents, context, row, self.row_number, self.row_start = (
            each.repeat_interleave(self.beams, 0)
            for each in (self.documents, self.context, self.row, self.number, self.start)
        )
        self.mask = ContextMask(context, context[:, :0], *rows_of_documents(documents, self.number_of_documents))
        source = self.mask._replace(document=self.decoder.sources.mask[row].bool())
        self.source_masks = {"group": self.source_mask[:, None, None], "global": source}
        # These are not read again, as the cache has their projections.
        self.sources, self.rows = self.decoder.sources.of(self.row[:1]), row

    def step(self, tokens: Tensor, count: int) -> tuple[Tensor, ...]:
        decoder, read = self.decoder, self.read.repeat_interleave(self.beams)
        self.cache.start(read)
        own = torch.arange(self.cache.length, device=decoder.device) <= read[:, None]
        hidden_states = decoder.states(
            self.sources,
            tokens.reshape(-1, 1),
            {"group": own[:, None, None], "global": self.mask._replace(own=own)},
            (read if decoder.model.config.position_scope == "sentence" else self.row_start + read)[:, None],
            self.cache,
            source_mask=self.source_masks,
            group_tags=self.row_number[:, None],
        )[:, -1]
        self.tokens, self.read = tokens, self.read + 1
        self.expected, self.old_rest = self.old_rest[:, :1], self.old_rest[:, 1:]
        last = tokens.flatten()
        progress = progress_after(last, self.row_number, read, decoder.template)
        return self.best(hidden_states, last[:, None], count, self.rows, *progress, self.row_start + read + 1, last)

    def ends(self, chosen: Tensor, parents: Tensor) -> Tensor:
        eos, end = self.decoder.template.eos_id, self.decoder.template.end
        if self.beams == 1:
            return (chosen == eos) | (chosen == self.expected).any(dim=1, keepdim=True)
        # A token that ends a document follows `</s>`, as if this were the only sentence.
        return (chosen if end is None else self.tokens.gather(1, parents)) == eos

    def follow(self, rows: Tensor) -> None:
        self.cache.follow(rows)

    def keep(self, items: Tensor) -> None:
        self.cache.keep(items)
        columns = ("documents", "row", "number", "start", "read", "tokens", "source_mask", "context", "old_rest")
        for name in columns:
            setattr(self, name, getattr(self, name)[items])
        self._arrange()


class SentenceCache(StepCache):
    """
    Keys and values of sentences that grow token by token, one per row, and of the documents around them.

    Args:
        states: keys and values of the documents.
        documents: those with sentences, `(B,)`.
        row: the document of each sentence, `(S,)`.
        given: positions in the documents of tokens that the sentences already have, `(S, L)`.
        source_places: positions of the tokens of the source sentences, `(S, J)`.
        beams: N.

    Attributes:
        place: where the next token of each row goes, `(R,)`.
        length: number of places in use.
    """

    def __init__(
        self,
        states: DocumentStates,
        documents: Tensor,
        row: Tensor,
        given: Tensor,
        source_places: Tensor,
        beams: int,
    ):
        super().__init__(DynamicCache(), DynamicCache())
        self.length, self.beams = given.shape[1], beams
        self.place = row.new_zeros(len(row) * beams)
        self.own: dict[tuple[int, str], States] = {}
        self.documents: dict[tuple[int, str], States] = {}
        self.sources: dict[tuple[int, str], States] = {}
        for key, each in states.targets.items():
            own = (_pick(one, row[:, None], given.clamp(max=states.length - 1)) for one in each)
            self.own[key] = tuple(one.repeat_interleave(beams, 0) for one in own)
            if key[1] == "global":
                self.documents[key] = tuple(one[documents.to(one.device)] for one in each)
        place, packed = states.packed_source.place, row.new_zeros(())
        places = {"group": place[row[:, None], source_places], "global": place[documents]}
        for key, each in states.sources.items():
            self.sources[key] = tuple(_pick(one, packed, places[key[1]]) for one in each)

    def start(self, place: Tensor) -> None:
        """Prepares for the next token of each row, which goes to its place `(R,)`."""
        self.place, self.length = place, self.length + 1
        for key, states in self.own.items():
            if states[0].shape[2] < self.length:
                self.own[key] = tuple(nn.functional.pad(each, (0, 0, 0, GROWS_BY)) for each in states)

    def target(self, layer_idx: int, kind: str, keys: Tensor, values: Tensor) -> tuple:
        """Stores keys and values `(R, H, 1, K)` of the new token, and returns all of the row, `(R, H, L, K)`; for
        global attention also the keys and values of the documents."""
        own, row = self.own[layer_idx, kind], torch.arange(len(keys), device=keys.device)
        for buffer, states in zip(own, (keys, values), strict=True):
            buffer[row, :, self.place.to(keys.device)] = states[:, :, 0]
        seen = tuple(buffer[:, :, : self.length] for buffer in own)
        if kind == "group":
            return seen
        return tuple(Context(*pair) for pair in zip(self.documents[layer_idx, kind], seen, strict=True))

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


def _pick(states: Tensor, documents: Tensor, places: Tensor) -> Tensor:
    """Picks states `(B, H, P, K)` at places `(S, L)` of documents `(S, 1)`, or of a single one: `(S, H, L, K)`."""
    index = documents.to(states.device), places.to(states.device)
    return states.transpose(1, 2)[index].transpose(1, 2).contiguous()
