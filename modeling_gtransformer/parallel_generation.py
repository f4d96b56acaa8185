"""Decoding the sentences of a document side by side: as many steps as its longest sentence, not as the document.

Greedy decoding has one result in which every token is the model's choice given all tokens before it. So all sentences
are drafted at once, each seeing what is written of those before it so far. A single pass over the document then tells
for every token whether the model would choose it. The sentences in which it would not are decoded again, at once, from
the first such token on, given the last translations of the others, until the next token of each is the one that stood
there. What stands before the first such token of a document is final: it is what greedy decoding would have written
token by token, and every round makes it longer. How many rounds it takes depends on how far one word decides the next
sentence's.

Positions count the tokens of the document. Where earlier sentences are not translated yet, their source stands in.

Shape legend: B documents, T target tokens, R sentences decoded at a time, N beams, F tokens decoded in a round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.utils import ModelOutput

from .document_loss import CHUNK_LOGITS
from .group_tags import sentence_lengths


# Arguments of generate() that parallel decoding takes, and settings that it knows in their neutral position only.
ARGUMENTS = {
    "input_ids",
    "inputs_embeds",
    "attention_mask",
    "group_tags",
    "encoder_outputs",
    "decoder_input_ids",
    "labels",
}
NEUTRAL = {
    **dict.fromkeys(("do_sample", "output_scores", "output_logits", "renormalize_logits"), False),
    **dict.fromkeys(("output_attentions", "output_hidden_states"), False),
    **dict.fromkeys(("repetition_penalty", "encoder_repetition_penalty", "num_return_sequences", "guidance_scale"), 1),
    **dict.fromkeys(("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "prompt_lookup_num_tokens"), 0),
    **dict.fromkeys(("bad_words_ids", "begin_suppress_tokens", "sequence_bias", "watermarking_config"), None),
    **dict.fromkeys(("penalty_alpha", "stop_strings", "max_time", "cache_implementation", "dola_layers"), None),
    **dict.fromkeys(("force_words_ids", "constraints", "assistant_early_exit"), None),
    **dict.fromkeys(("token_healing", "low_memory"), False),
    **{"num_beam_groups": 1, "diversity_penalty": 0},
}

# Logits of beams in memory at a time (64M are 256 MB in float32).
BEAM_LOGITS = 2**26

# The score of hypotheses that do not exist; finite, as in the beam search of Transformers.
IMPOSSIBLE = -1.0e9


@dataclass
class ParallelDocumentsOutput(ModelOutput):
    """
    What `generate(parallel_sentences=True, return_dict_in_generate=True)` returns.

    Args:
        sequences: documents `(B, T)`.
        rounds: how often sentences of each document were decoded greedily, `(B,)`; 1 if all drafts stood.
        steps: decoding steps of all rounds together; sequential decoding takes one per token.
    """

    sequences: torch.LongTensor | None = None
    rounds: torch.LongTensor | None = None
    steps: int | None = None


def refuse_what_is_sequential(config: GenerationConfig, arguments: dict[str, Any]) -> None:
    """Raise `ValueError` for whatever makes the choice of a token depend on more than the document before it."""
    refused = [name for name, neutral in NEUTRAL.items() if getattr(config, name, None) not in (None, neutral)]
    if config.early_stopping == "never" and config.num_beams not in (None, 1):
        refused.append("early_stopping")
    unused = {name: value for name, value in arguments.items() if name not in ARGUMENTS}
    refused += [name for name, value in unused.items() if not (value is None or value is False or value == [])]
    if refused:
        raise ValueError(f"parallel_sentences cannot be combined with {', '.join(sorted(refused))}.")


@dataclass
class OpenSentence:
    """
    A sentence that is being decoded.

    Attributes:
        number: its group tag.
        start: the position of its `<s>` in the document.
        tokens: from `<s>` on. The last one is new, those before it stand in the document.
        context: how many tokens of the document it sees, its own included.
        old_rest: what stood behind the token that the new one replaces.
    """

    number: int
    start: int
    tokens: list[int]
    context: int
    old_rest: Sequence[int] = ()


class ParallelDecoder:
    """
    Decodes documents with the model and the frame (a `GroupTagLogitsProcessor`) of `generate`.

    Args:
        processors: logits processors that look at the scores alone, applied before the frame.
        source_states: of the encoder, `(B, S, D)`.
        source_mask: 1 for source tokens, 0 for padding, `(B, S)`.
        source_tags: `(B, S)`.
    """

    def __init__(self, model, frame, processors, source_states: Tensor, source_mask: Tensor, source_tags: Tensor):
        self.model, self.frame, self.processors = model, frame, processors
        self.source_states, self.source_mask, self.source_tags = source_states, source_mask, source_tags
        self.source_lengths = [[n for n in row if n] for row in sentence_lengths(source_tags).tolist()]
        self.device = source_states.device
        self.steps = 0

    def decode(self, prompts: Tensor) -> tuple[list[list[int]], list[int]]:
        """The greedy documents that begin with prompts `(B, P)`, without the token that ends them, and the number of
        rounds that each took."""
        documents = prompts.tolist()
        final, rounds = [prompts.shape[1]] * len(documents), [0] * len(documents)
        active = list(range(len(documents)))
        while active:
            cache, choices = self.check([documents[row] for row in active], active, [final[row] for row in active])
            sentences = []
            for row, chosen in zip(active, choices, strict=True):
                if rounds[row] == 0:
                    sentences.append(self.drafts(row, documents[row], chosen[len(documents[row]) - 1]))
                    continue
                sentences.append(self.moved(documents[row], chosen, final[row]))
                if sentences[-1]:
                    final[row] = sentences[-1][0].context + 1
            self.extend(cache, active, sentences, drafting=rounds[active[0]] == 0)
            for row, moved in zip(active, sentences, strict=True):
                documents[row] = self.replaced(documents[row], moved)
                rounds[row] += bool(moved)
            active = [row for row, moved in zip(active, sentences, strict=True) if moved]
        return documents, rounds

    def drafts(self, row: int, prompt: list[int], chosen: int) -> list[OpenSentence]:
        """All sentences that the prompt has not finished; `chosen` is the token that follows it."""
        opened, start, sentences = prompt.count(self.frame.bos_token_id), len(prompt), []
        if prompt[-1] != self.frame.eos_token_id:
            begin = self.last_start(prompt, len(prompt))
            sentences.append(OpenSentence(opened, begin, [*prompt[begin:], chosen], len(prompt)))
            start = begin + max(*self.source_lengths[row][opened - 1 : opened], len(prompt) + 2 - begin, 0)
        for number in range(opened + 1, len(self.source_lengths[row]) + 1):
            sentences.append(OpenSentence(number, start, [self.frame.bos_token_id], len(prompt)))
            start += self.source_lengths[row][number - 1]
        return sentences

    def moved(self, document: list[int], choices: list[int], final: int) -> list[OpenSentence]:
        """The sentences in which the model would have chosen another token, up to that one."""
        sentences: list[OpenSentence] = []
        for position in range(final - 1, len(document) - 1):
            if document[position] == self.frame.eos_token_id or choices[position] == document[position + 1]:
                continue
            start = self.last_start(document, position + 1)
            if not sentences or sentences[-1].start != start:
                number = document[: start + 1].count(self.frame.bos_token_id)
                tokens = [*document[start : position + 1], choices[position]]
                old_rest = document[position + 2 : document.index(self.frame.eos_token_id, position + 1) + 1]
                sentences.append(OpenSentence(number, start, tokens, position + 1, old_rest))
        return sentences

    def last_start(self, document: list[int], end: int) -> int:
        """The position of the last `<s>` before the end."""
        return max(position for position in range(end) if document[position] == self.frame.bos_token_id)

    def replaced(self, document: list[int], sentences: list[OpenSentence]) -> list[int]:
        """The document with sentences in the place of those with their numbers, or behind them all."""
        starts = [position for position, token in enumerate(document) if token == self.frame.bos_token_id]
        parts = [document[start:end] for start, end in zip(starts, [*starts[1:], len(document)], strict=True)]
        for sentence in sentences:
            parts[sentence.number - 1 : sentence.number] = [sentence.tokens]
        return [token for part in parts for token in part]

    def check(
        self, documents: list[list[int]], rows: list[int], final: list[int]
    ) -> tuple[EncoderDecoderCache, list[list[int]]]:
        """One pass over documents: their keys and values, and for every token that is not final, inside of a sentence,
        the token that the model would choose after it (elsewhere -1)."""
        lengths = torch.tensor([len(document) for document in documents], device=self.device)[:, None]
        ids = pad_sequence([torch.tensor(document) for document in documents], batch_first=True).to(self.device)
        position = torch.arange(ids.shape[1], device=self.device).expand_as(ids)
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        hidden_states = self.model.model(
            decoder_input_ids=ids,
            decoder_attention_mask=(position < lengths).long(),
            decoder_position_ids=self.clamp_positions(position),
            encoder_outputs=(self.source_states[rows], self.source_tags[rows]),
            attention_mask=self.source_mask[rows],
            past_key_values=cache,
        ).last_hidden_state

        opens = ids == self.frame.bos_token_id
        needed = (position < lengths) & (ids != self.frame.eos_token_id)
        needed &= position + 1 >= torch.tensor(final, device=self.device)[:, None]
        document = torch.tensor(rows, device=self.device)[:, None].expand_as(ids)
        words = position - (opens * position).cummax(dim=1).values
        places = needed.nonzero(as_tuple=True)
        before = [field[places] for field in (document, opens.cumsum(dim=1), words, position + 1, ids)]
        size = max(CHUNK_LOGITS // self.model.config.vocab_size, 1)
        chosen = [
            self.scores(*parts).argmax(dim=-1)
            for parts in zip(*(field.split(size) for field in (hidden_states[places], *before)), strict=True)
        ]
        return cache, torch.full_like(ids, -1).index_put_(places, torch.cat(chosen)).tolist()

    def scores(self, hidden_states: Tensor, *before: Tensor, normalize: bool = False) -> Tensor:
        """Scores `(R, V)` of the tokens after decoder states `(R, D)`, framed by what is before them."""
        logits = (self.model.lm_head(hidden_states) + self.model.final_logits_bias).float()
        return self.frame.mask(self.processors(None, logits.log_softmax(dim=-1) if normalize else logits), *before)

    def clamp_positions(self, positions: Tensor) -> Tensor:
        """Drafts may run past the last learned position: the final sentences do not."""
        if self.model.config.position_embedding_type != "learned":
            return positions
        return positions.clamp(max=self.model.config.max_position_embeddings - 1)

    def masks(self, group: Tensor, document: Tensor) -> dict[str, Tensor]:
        """Masks `(B, 1, R, S)` of both attention kinds for the model, of booleans `(B, R, S)`."""
        masks = {"group": group[:, None], "global": document[:, None]}
        if self.model.config._attn_implementation == "sdpa":
            return masks
        least = torch.finfo(self.model.dtype).min
        return {kind: mask.logical_not().to(self.model.dtype) * least for kind, mask in masks.items()}

    def extend(
        self, cache: EncoderDecoderCache, rows: list[int], sentences: list[list[OpenSentence]], drafting: bool
    ) -> None:
        """Decode sentences, all at once, each in the context of the documents in the cache, until each is at its
        end or its next token is the one that stood there: then it keeps its old rest, which the next round checks."""
        eos, pad = self.frame.eos_token_id, self.frame.pad_token_id
        sentences = [[sentence for sentence in opened if sentence.tokens[-1] != eos] for opened in sentences]
        if not any(sentences):
            return
        lanes = Lanes(self, cache, rows, sentences, drafting)
        tokens, alive = lanes.tokens, lanes.tokens != pad
        decoded: list[Tensor] = []
        as_before = torch.zeros_like(alive)
        while bool((alive & ~as_before).any()):
            tokens = lanes.step(tokens).argmax(dim=-1).masked_fill(~alive, pad)
            as_before = (tokens[..., None] == lanes.old_rest[..., len(decoded) : len(decoded) + 1]).any(dim=-1)
            decoded.append(tokens)
            alive &= tokens != eos
        for opened, words in zip(sentences, torch.stack(decoded, dim=2).tolist(), strict=True):
            for sentence, line in zip(opened, words, strict=False):
                rest = [token for token in line if token != pad]
                sentence.tokens += rest
                if rest[-1] != eos:
                    sentence.tokens += sentence.old_rest[len(rest) :]

    def search(
        self,
        prompts: Tensor,
        documents: list[list[int]],
        num_beams: int,
        length_penalty: float = 1.0,
        early_stopping: bool = False,
    ) -> list[list[int]]:
        """
        A beam search for every sentence of documents that the prompts `(B, P)` have not finished, each in the context
        of the others as they stand. A document of one sentence comes out as from the beam search of Transformers.
        """
        rows = list(range(len(documents)))
        cache, _ = self.check(documents, rows, [len(document) for document in documents])
        sentences = [self.unfinished(document, prompts.shape[1]) for document in documents]
        width = max(BEAM_LOGITS // (self.model.config.vocab_size * num_beams * len(rows)), 1)
        length = cache.get_seq_length()
        for first in range(0, max(map(len, sentences)), width):
            part = [opened[first : first + width] for opened in sentences]
            self.search_sentences(cache, rows, part, num_beams, length_penalty, early_stopping)
            for layer in cache.self_attention_cache.layers:
                layer.keys, layer.values = layer.keys[:, :, :length], layer.values[:, :, :length]
        return [self.replaced(*pair) for pair in zip(documents, sentences, strict=True)]

    def unfinished(self, document: list[int], given: int) -> list[OpenSentence]:
        """The sentences of a document that its first tokens, which are given, have not finished."""
        starts = [position for position, token in enumerate(document) if token == self.frame.bos_token_id]
        sentences = []
        for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(document)], strict=True), 1):
            if end > given:
                context = max(given - 1, start)
                sentences.append(OpenSentence(number, start, document[start : context + 1], context))
        return sentences

    def search_sentences(
        self,
        cache: EncoderDecoderCache,
        rows: list[int],
        sentences: list[list[OpenSentence]],
        num_beams: int,
        length_penalty: float,
        early_stopping: bool,
    ) -> None:
        """Give every sentence the best hypothesis of a beam search of its own."""
        eos = self.frame.eos_token_id
        lanes = Lanes(self, cache, rows, [[s for s in opened for _ in range(num_beams)] for opened in sentences])
        tokens = lanes.tokens.unflatten(1, (-1, num_beams))
        real = tokens[..., 0] != self.frame.pad_token_id
        first = torch.arange(num_beams, device=self.device) == 0
        running = torch.where(first, 0.0, IMPOSSIBLE).expand(tokens.shape)
        finished, is_finished = torch.full_like(running, IMPOSSIBLE), torch.zeros_like(tokens, dtype=torch.bool)
        written = tokens.new_empty(*tokens.shape, 0)
        best, improvable = written, real
        # No sentence is longer; the bound matters where fewer hypotheses exist than beams.
        for length in range(1, int(self.frame.word_limits.max()) + 3):
            if not bool((improvable & real).any()):
                break
            scores = lanes.step(tokens.flatten(1), normalize=True).unflatten(1, tokens.shape[1:])
            total = (running[..., None] + scores).flatten(2)
            candidates, index = total.topk(2 * num_beams, dim=-1)
            parent, chosen = index // scores.shape[-1], index % scores.shape[-1]
            # What follows </s> stands for the end of the document, if this were the only sentence.
            ends = tokens.gather(2, parent) == eos
            grown = torch.cat([_pick(written, parent), chosen[..., None]], dim=-1)

            running, kept = (candidates + ends * IMPOSSIBLE).topk(num_beams, dim=-1)
            just_finished = ends & (torch.arange(2 * num_beams, device=self.device) < num_beams)
            closed = ~improvable | (is_finished.all(dim=-1) & early_stopping)
            hypotheses = candidates / length**length_penalty + (~just_finished | closed[..., None]) * IMPOSSIBLE
            finished, places = torch.cat([finished, hypotheses], dim=-1).topk(num_beams, dim=-1)
            is_finished = torch.cat([is_finished, just_finished], dim=-1).gather(2, places)
            best = _pick(torch.cat([nn.functional.pad(best, (0, 1), value=eos), grown], dim=2), places)

            lanes.follow(parent.gather(2, kept))
            written, tokens = _pick(grown, kept), chosen.gather(2, kept)
            worst = torch.where(is_finished, finished[..., -1:], IMPOSSIBLE)
            improvable = improvable & (running[..., :1] / length**length_penalty > worst).any(dim=-1)
            improvable &= ~(is_finished.all(dim=-1) & early_stopping)
        for opened, words in zip(sentences, best[:, :, 0].tolist(), strict=True):
            for sentence, rest in zip(opened, words, strict=False):
                sentence.tokens += rest[: rest.index(eos) + 1]


def _pick(table: Tensor, index: Tensor) -> Tensor:
    """`(B, R, N, T)` at `(B, R, M)`: `(B, R, M, T)`."""
    return table.gather(2, index[..., None].expand(*index.shape, table.shape[-1]))


class Lanes:
    """Sentences that are decoded side by side. Their keys and values go into the cache of their document, in the order
    of decoding, and a mask tells which of them each may see: what stood there and what it has written itself; drafts
    also what the sentences before them have written so far."""

    def __init__(
        self,
        decoder: ParallelDecoder,
        cache: EncoderDecoderCache,
        rows: list[int],
        sentences: list[list[OpenSentence]],
        drafting: bool = False,
    ):
        self.decoder, self.cache, self.drafting = decoder, cache, drafting
        empty = OpenSentence(1, 0, [decoder.frame.pad_token_id], 0)
        width = max(map(len, sentences))
        filled = [[*opened, *[empty] * (width - len(opened))] for opened in sentences]

        def table(field) -> Tensor:
            return torch.tensor([[field(sentence) for sentence in opened] for opened in filled], device=decoder.device)

        self.tokens = table(lambda sentence: sentence.tokens[-1])
        longest = max(len(sentence.old_rest) for opened in filled for sentence in opened)
        self.old_rest = table(lambda sentence: [*sentence.old_rest, *[-1] * (longest - len(sentence.old_rest))])
        self.number, self.start = table(lambda sentence: sentence.number), table(lambda sentence: sentence.start)
        self.words = table(lambda sentence: len(sentence.tokens) - 1)
        self.rows = torch.tensor(rows, device=decoder.device)
        position = torch.arange(cache.get_seq_length(), device=decoder.device)
        self.document = position < table(lambda sentence: sentence.context)[..., None]
        self.sentence = self.document & (position >= self.start[..., None])
        self.source = decoder.source_mask[self.rows, None].bool()
        self.source_sentence = decoder.source_tags[self.rows, None] == self.number[..., None]
        self.written = self.earlier = self.document[..., :0]

    def step(self, tokens: Tensor, normalize: bool = False) -> Tensor:
        """Read the next token `(B, R)` of every sentence: the framed scores `(B, R, V)` of the one after it."""
        decoder = self.decoder
        itself = torch.eye(tokens.shape[1], dtype=torch.bool, device=tokens.device).expand(len(tokens), -1, -1)
        self.written = context = torch.cat([self.written, itself], dim=-1)
        if self.drafting:
            open_before = torch.ones_like(itself).tril() & (tokens != decoder.frame.pad_token_id)[:, None]
            self.earlier = context = torch.cat([self.earlier, itself | open_before], dim=-1)
        hidden_states = decoder.model.model(
            decoder_input_ids=tokens,
            decoder_attention_mask=decoder.masks(
                torch.cat([self.sentence, self.written], dim=-1), torch.cat([self.document, context], dim=-1)
            ),
            decoder_position_ids=decoder.clamp_positions(self.start + self.words),
            decoder_group_tags=self.number,
            encoder_outputs=(decoder.source_states[self.rows], decoder.source_tags[self.rows]),
            attention_mask=decoder.masks(self.source_sentence, self.source),
            past_key_values=self.cache,
        ).last_hidden_state
        decoder.steps += 1
        rows = self.rows[:, None].expand_as(tokens)
        before = (rows, self.number, self.words, self.start + self.words + 1, tokens)
        states = (states.flatten(0, 1) for states in (hidden_states, *before))
        scores = decoder.scores(*states, normalize=normalize)
        self.words = self.words + 1
        return scores.view(*tokens.shape, -1)

    def follow(self, parents: Tensor) -> None:
        """Let beams go on from others, `(B, R, N)`: what these have written is what they see."""
        first = torch.arange(parents.shape[1], device=parents.device)[:, None] * parents.shape[2]
        index = (first + parents).flatten(1)[..., None]
        self.written = self.written.gather(1, index.expand(-1, -1, self.written.shape[-1]))
