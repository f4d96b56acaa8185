"""Decodes the sentences of a document side by side: in as many steps as the longest sentence has, not the document.

Greedy decoding has one result, in which every token is the model's choice given all tokens before it. So all sentences
are drafted at once, each seeing what has been written so far of those before it. A single pass over the document then
tells for every token whether the model would choose it. The sentences in which it would not are decoded again, all at
once, from the first such token on, given the latest translations of the others, until the next token of each is the
one that was there before. What precedes the first such token of a document is final: it is what greedy decoding would
have written token by token, and every round makes it longer. The number of rounds depends on how much the words of one
sentence decide those of the next. If there are too many, the rest can be decoded token by token.

Positions count the tokens of the document. Where earlier sentences are not yet translated, their source lengths are
used instead.

Shape legend: B documents, P tokens of a prompt, T target tokens.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.utils import ModelOutput

from .beam_search import SHRINKS_AT, BeamSearch
from .document_decoding import decode_greedily
from .document_loss import logit_chunks
from .framed_decoder import FramedDecoder
from .group_tags import sentence_lengths
from .sentence_batch import OpenSentence, SentenceBatch


# Arguments of generate() that parallel decoding takes, and settings that it supports only at their neutral values.
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
    **dict.fromkeys(("do_sample", "output_scores", "output_logits", "renormalize_logits", "output_attentions"), False),
    **dict.fromkeys(("output_hidden_states", "token_healing", "low_memory", "remove_invalid_values"), False),
    **dict.fromkeys(("repetition_penalty", "encoder_repetition_penalty", "num_return_sequences", "guidance_scale"), 1),
    "num_beam_groups": 1,
    **dict.fromkeys(("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "prompt_lookup_num_tokens"), 0),
    "diversity_penalty": 0,
    **dict.fromkeys(("bad_words_ids", "begin_suppress_tokens", "sequence_bias", "watermarking_config"), None),
    **dict.fromkeys(("penalty_alpha", "stop_strings", "max_time", "cache_implementation", "dola_layers"), None),
    **dict.fromkeys(("force_words_ids", "constraints", "assistant_early_exit"), None),
    "exponential_decay_length_penalty": None,
}

# Repairs end after this many steps per token of the longest document, or when more than this share of a document's
# sentences remains to be repaired.
PATIENCE = 0.25
MAX_TO_REPAIR = 0.5

# Logits of beams in memory at a time (64M are 256 MB in float32).
BEAM_LOGITS = 2**26


@dataclass
class ParallelDocumentsOutput(ModelOutput):
    """
    Output of `generate(parallel_sentences=True, return_dict_in_generate=True)`.

    Args:
        sequences: documents `(B, T)`.
        rounds: how often sentences of each document were decoded greedily, `(B,)`; 1 if all drafts were kept.
        steps: number of decoding steps of all rounds together, and of what was decoded token by token after them.
    """

    sequences: torch.LongTensor | None = None
    rounds: torch.LongTensor | None = None
    steps: int | None = None


def other_than_neutral(config: GenerationConfig, arguments: dict[str, Any]) -> list[str]:
    """The names of settings and arguments that make the choice of a token depend on more than the model and what comes
    before it in the document, or that ask for more than documents."""
    refused = [name for name, neutral in NEUTRAL.items() if getattr(config, name, None) not in (None, neutral)]
    if config.early_stopping == "never" and config.num_beams not in (None, 1):
        refused.append("early_stopping")
    unused = {name: value for name, value in arguments.items() if name not in ARGUMENTS}
    refused += [name for name, value in unused.items() if not (value is None or value is False or value == [])]
    return sorted(refused)


class ParallelDecoder:
    """
    Decodes the documents of a batch, with their sentences side by side.

    Args:
        gives_up: whether documents that do not settle are continued token by token. This needs room for all their
            sentences, and sources in which every sentence is in one piece.
    """

    def __init__(self, decoder: FramedDecoder, gives_up: bool = False):
        self.decoder, self.template, self.gives_up = decoder, decoder.template, gives_up
        self.source_lengths = [[n for n in row if n] for row in sentence_lengths(decoder.source_tags).tolist()]
        # Keys and values of all documents in their current state, if the last check covered all of them.
        self.checked: EncoderDecoderCache | None = None

    def decode(self, prompts: Tensor) -> tuple[list[list[int]], list[int]]:
        """Returns the greedy documents that begin with prompts `(B, P)`, without the token that ends them, and the
        number of rounds that each took."""
        documents = prompts.tolist()
        rounds = [int(bool(drafts)) for drafts in self.draft(documents)]
        active = [row for row, drafted in enumerate(rounds) if drafted]
        final, drafting = [prompts.shape[1]] * len(documents), self.decoder.steps
        while active:
            cache, choices = self.check([documents[row] for row in active], active, [final[row] for row in active])
            pairs = zip(active, choices, strict=True)
            moved = {row: self.moved(documents[row], chosen, final[row]) for row, chosen in pairs}
            if self.gives_up and self.is_unsettled(documents, moved, self.decoder.steps - drafting):
                self.go_on(documents, {row: opened[0].context for row, opened in moved.items() if opened})
                break
            self.extend(cache, active, [*moved.values()], drafting=False)
            active = [row for row, opened in moved.items() if opened]
            self.checked = cache if not active and len(moved) == len(documents) else None
            for row in active:
                documents[row] = self.replaced(documents[row], moved[row])
                final[row] = moved[row][0].context + 1
                rounds[row] += 1
        return documents, rounds

    def draft(self, documents: list[list[int]]) -> list[list[OpenSentence]]:
        """Completes documents with drafts of all their sentences, and returns the drafts."""
        rows = [*range(len(documents))]
        cache, choices = self.check(documents, rows, [len(document) for document in documents])
        drafts = [self.drafts(row, documents[row], choices[row][len(documents[row]) - 1]) for row in rows]
        self.extend(cache, rows, drafts, drafting=True)
        for row in rows:
            documents[row] = self.replaced(documents[row], drafts[row])
        return drafts

    def is_unsettled(self, documents: list[list[int]], moved: dict[int, list[OpenSentence]], repairs: int) -> bool:
        """Tells whether so much is left to repair, or repairs have taken so long, that decoding token by token is
        likely to be faster."""
        most = [MAX_TO_REPAIR * len(self.source_lengths[row]) for row in moved]
        too_many = any(len(opened) > most for opened, most in zip(moved.values(), most, strict=True))
        too_long = repairs > PATIENCE * max(len(documents[row]) for row in moved)
        return too_many or (too_long and any(moved.values()))

    def go_on(self, documents: list[list[int]], final: dict[int, int]) -> None:
        """Decodes documents token by token; `final` has the number of their final tokens, by row."""
        rows, shortest = [*final], min(final.values())
        decoder = self.decoder.over(self.decoder.sources(rows), self.decoder.token_limits[rows])
        prompts = torch.tensor([documents[row][:shortest] for row in rows], device=self.decoder.device)
        for row, ids in zip(rows, decode_greedily(decoder, prompts), strict=True):
            documents[row] = ids if self.template.end is None else ids[:-1]
        self.decoder.steps += decoder.steps

    def drafts(self, row: int, prompt: list[int], chosen: int) -> list[OpenSentence]:
        """All sentences that the prompt has not finished; `chosen` is the token that follows it."""
        starts, sentences = self.template.starts(prompt), len(self.source_lengths[row])
        opened, start, drafts = len(starts), len(prompt), []
        if self.template.eos_opens_next and opened > sentences:
            return []
        if self.template.eos_opens_next or prompt[-1] != self.template.eos_id:
            begin = starts[-1]
            drafts.append(OpenSentence(opened, begin, [*prompt[begin:], chosen], len(prompt)))
            start = begin + max(*self.source_lengths[row][opened - 1 : opened], len(prompt) + 2 - begin, 0)
        first = self.template.eos_id if self.template.eos_opens_next else self.template.prefix[0]
        for number in range(opened + 1, sentences + 1):
            drafts.append(OpenSentence(number, start, [first], len(prompt)))
            start += self.source_lengths[row][number - 1]
        return drafts

    def moved(self, document: list[int], choices: list[int], final: int) -> list[OpenSentence]:
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
                sentences.append(OpenSentence(number, start, tokens, position + 1, old_rest))
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

    def check(
        self, documents: list[list[int]], rows: list[int], final: list[int]
    ) -> tuple[EncoderDecoderCache, list[list[int]]]:
        """Passes over documents once. Returns their keys and values and, for every token inside a sentence that is not
        final, the token that the model would choose after it (-1 elsewhere)."""
        device = self.decoder.device
        lengths = torch.tensor([len(document) for document in documents], device=device)[:, None]
        ids = pad_sequence([torch.tensor(document) for document in documents], batch_first=True).to(device)
        position = torch.arange(ids.shape[1], device=device).expand_as(ids)
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        # Positions in sentences follow from the ids; those in documents may have to be clamped.
        counted = position if self.decoder.model.config.position_scope == "document" else None
        hidden_states = self.decoder.states(
            self.decoder.sources(torch.tensor(rows, device=device)), ids, (position < lengths).long(), counted, cache
        )

        number, words = self.places(ids, position)
        sentences = torch.tensor([len(self.source_lengths[row]) for row in rows], device=device)[:, None]
        needed = (position < lengths) & (number <= sentences)
        needed &= position + 1 >= torch.tensor(final, device=device)[:, None]
        if not self.template.eos_opens_next:
            needed &= ids != self.template.eos_id
        document = torch.tensor(rows, device=device)[:, None].expand_as(ids)
        places = needed.nonzero(as_tuple=True)
        before = [field[places] for field in (document, number, words, position + 1, ids)]
        asked = (hidden_states[places], *before)
        chosen = ids.new_empty(len(places[0]))
        for chunk in logit_chunks(len(chosen), self.decoder.model.config.decoder_vocab_size):
            chosen[chunk] = self.decoder.scores(*(field[chunk] for field in asked)).argmax(dim=-1)
        return cache, torch.full_like(ids, -1).index_put_(places, chosen).tolist()

    def places(self, ids: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
        """What [`sentence_progress`] returns for the prefix that ends with each token of documents `(B, T)`."""
        if self.template.eos_opens_next:
            starts = (position == 0) | (ids == self.template.eos_id)
        else:
            starts = ids == self.template.prefix[0]
        words = position - (starts * position).cummax(dim=1).values
        return starts.cumsum(dim=1), words + 1 - self.template.head - len(self.template.prefix)

    def extend(
        self, cache: EncoderDecoderCache, rows: list[int], sentences: list[list[OpenSentence]], drafting: bool
    ) -> None:
        """Decodes sentences all at once, in the context of the documents in the cache, until each is at its end or its
        next token is the one that was there before: then it keeps its old rest, which the next round checks."""
        opened = [
            (document, sentence)
            for document, of_document in enumerate(sentences)
            for sentence in of_document
            if not self.is_closed(sentence)
        ]
        if not opened:
            return
        batch = SentenceBatch(self.decoder, cache, rows, opened, drafting=drafting)
        old_rests = [torch.tensor(sentence.old_rest, dtype=torch.long) for _, sentence in opened]
        old_rests = pad_sequence(old_rests, batch_first=True, padding_value=-1).to(self.decoder.device)
        for (_, sentence), rest in zip(opened, self.greedy(batch, old_rests), strict=True):
            sentence.tokens += rest
            if rest[-1] != self.template.eos_id:
                sentence.tokens += sentence.old_rest[len(rest) :]

    def greedy(self, batch: SentenceBatch, old_rests: Tensor) -> list[list[int]]:
        """The new tokens of sentences, until each is at its end or continues like its old rest `(S, L)`."""
        tokens, index = batch.tokens, torch.arange(len(batch.tokens), device=batch.tokens.device)
        read = alive = torch.ones_like(index, dtype=torch.bool)
        empty = torch.full_like(index, self.template.pad)
        decoded: list[Tensor] = []
        while True:
            tokens = batch.step(tokens, alive=read).argmax(dim=-1)
            new = tokens[:, 0].masked_fill(~alive, self.template.pad)
            as_before = (new[:, None] == old_rests[index, len(decoded) : len(decoded) + 1]).any(dim=-1)
            decoded.append(empty.scatter(0, index, new))
            # Others see the last token of a sentence one step later.
            read, alive = alive, alive & (new != self.template.eos_id)
            if not bool((alive & ~as_before).any()):
                return [
                    [token for token in line if token != self.template.pad]
                    for line in torch.stack(decoded, 1).tolist()
                ]
            rest = read.nonzero()[:, 0]
            if len(rest) <= len(index) * (1 - SHRINKS_AT):
                batch.keep(rest)
                tokens, index, read, alive = (each[rest] for each in (tokens, index, read, alive))

    def is_closed(self, sentence: OpenSentence) -> bool:
        """Tells whether the new token of a sentence is the `</s>` that closes it."""
        return sentence.tokens[-1] == self.template.eos_id and len(sentence.tokens) > self.template.head

    def search(
        self,
        prompts: Tensor,
        documents: list[list[int]],
        num_beams: int,
        length_penalty: float = 1.0,
        early_stopping: bool = False,
    ) -> list[list[int]]:
        """
        Runs a beam search for every sentence that the prompts `(B, P)` have not finished, in the context of the other
        sentences as they are. A document of one sentence comes out as from the beam search of Transformers.
        """
        cache = self.checked
        if cache is None:
            cache, _ = self.check(documents, [*range(len(documents))], [len(document) for document in documents])
        width = max(BEAM_LOGITS // (self.decoder.model.config.decoder_vocab_size * num_beams), 1)
        sentences = [self.unfinished(document, prompts.shape[1]) for document in documents]
        places = [(row, sentence) for row, opened in enumerate(sentences) for sentence in opened]
        for first in range(0, len(places), width):
            part = places[first : first + width]
            batch = SentenceBatch(self.decoder, cache, range(len(documents)), part, num_beams)
            found = BeamSearch(batch, length_penalty, early_stopping).run()
            for (_, sentence), tokens in zip(part, found, strict=True):
                sentence.tokens += tokens[: tokens.index(self.template.eos_id) + 1]
        return [self.replaced(*pair) for pair in zip(documents, sentences, strict=True)]

    def unfinished(self, document: list[int], given: int) -> list[OpenSentence]:
        """The sentences of a document that its first `given` tokens have not finished."""
        starts = self.template.starts(document)
        sentences = []
        for number, (start, end) in enumerate(pairwise([*starts, len(document)]), 1):
            # The `</s>` of a sentence may be the first token of the next one.
            end = min(end + self.template.head, len(document))
            if given < end and start + self.template.head < end:
                context = max(given - 1, start)
                sentences.append(OpenSentence(number, start, document[start : context + 1], context))
        return sentences
