"""Documents of any length through the model: cut into windows, translated in batches, put together again."""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import BatchFeature, PreTrainedModel
from transformers.generation import LogitsProcessorList
from transformers.utils import logging
from transformers.utils.logging import tqdm

from .group_tags import group_tags
from .processing_gtransformer import GTransformerProcessor
from .segmentation import segment, sentence_cost, split_long_sentence, token_batches
from .terminology import RequiredWordsLogitsProcessor, Terminology, missing
from .token_scores import label_log_probabilities


logger = logging.get_logger(__name__)


@dataclass(frozen=True)
class TranslatedDocument:
    """The translation of a document.

    `sentences` are as many as the document has; `segments` the numbers of sentences that the model translated at once;
    `confidences`, if asked for, the mean log-probability of each sentence's tokens, in nats.
    """

    sentences: list[str]
    segments: list[int]
    confidences: list[float] | None = None


@dataclass
class _Document:
    """A document on its way: its sentences, or parts of them, and what has been translated so far."""

    number: int
    parts: list[list[int]]  # word ids
    glue: list[str | None]  # what stands before a part in its sentence; None for the first part
    required: list[list[str]]  # what the translation of a part must contain
    windows: list[int] = field(default_factory=list)  # parts that were new in each window
    translations: list[list[int]] = field(default_factory=list)
    scores: list[tuple[float, int]] = field(default_factory=list)  # sum of log-probabilities, tokens


@dataclass(frozen=True)
class _Window:
    """Parts `start` to `stop` of a document, of which those before `new` are translated already."""

    document: int
    start: int
    new: int
    stop: int
    source: list[int]


def translate_documents(
    model: PreTrainedModel,
    processor: GTransformerProcessor,
    documents: Sequence[list[str]],
    segment_tokens: int = 512,
    max_tokens: int = 4096,
    segment_sentences: int | None = None,
    carried_sentences: int = 0,
    confidence: bool = False,
    terminology: Terminology | None = None,
    progress: bool = False,
    **generate_arguments,
) -> list[TranslatedDocument]:
    """
    Translates documents in windows of fewer than `segment_tokens` source tokens, cut at sentence borders, whose
    translations fit the model's positions. A sentence that does not is translated in parts, which is announced.

    Args:
        max_tokens: source tokens in a batch, padding included.
        segment_sentences: most sentences in a window; 1 for a model that was trained on single sentences.
        carried_sentences: so many sentences of a window open the next one as well, with their translations as a forced
            prefix, so that its first sentences have a context, too. Windows of a document then wait for each other.
        confidence: score the translations, with one more forward pass.
        terminology: says what the translation of a sentence must contain. Where something is missing, the window is
            translated once more under that constraint; what is missing even then is named in a warning.
        progress: show a progress bar.
        generate_arguments: for `model.generate`.
    """
    capacity = _Capacity(model, segment_tokens, segment_sentences, generate_arguments)
    translator = _Translator(model, processor, capacity, terminology is not None, confidence, generate_arguments)
    state = [
        _taken_apart(document, number, processor, capacity, terminology)
        for number, document in enumerate(documents, 1)
    ]

    total = sum(len(document.parts) for document in state)
    with tqdm(total=total, desc="Translating", unit=" sentences", disable=not progress) as bar:
        while windows := list(_next_windows(state, processor, capacity, carried_sentences)):
            lengths = [len(window.source) for window in windows]
            order = sorted(range(len(windows)), key=lengths.__getitem__, reverse=True)
            done: dict[int, Any] = {}
            for batch in token_batches(lengths, order, max([max_tokens, *lengths])):
                rows = [windows[index] for index in batch]
                done |= zip(batch, translator.translate(state, rows), strict=True)
                bar.update(sum(window.stop - window.new for window in rows))
            for index, window in enumerate(windows):  # those of a document in their order
                document, (translations, scores) = state[window.document], done[index]
                document.translations += translations
                document.scores += scores
                document.windows.append(window.stop - window.new)
    return [_put_together(document, processor, confidence) for document in state]


class _Capacity:
    """How much a window takes: at most `sentences` new sentences, fewer than `tokens` tokens of the source, and of the
    target no more than the model has positions, however long the translations become."""

    def __init__(self, model: PreTrainedModel, tokens: int, sentences: int | None, generate_arguments: dict):
        settings = {**vars(model.generation_config), **generate_arguments}
        self.factor, self.constant = (settings.get(name) or 0 for name in ("max_length_a", "max_length_b"))
        self.positions = sys.maxsize
        if getattr(model.config, "position_embedding_type", "learned") == "learned":
            self.positions = model.config.max_position_embeddings
        self.tokens, self.sentences = min(tokens, self.positions), sentences

    def longest(self, words: int) -> int:
        """Positions that a sentence may need: its own, or those of its translation and the end of the document."""
        return max(sentence_cost(words), sentence_cost(self.limit(words)) + 1)

    def limit(self, words: int) -> int:
        """Most words of the translation."""
        return int(self.factor * words + self.constant)

    def cost(self, words: int) -> int:
        """Tokens of a sentence; more of them if it is rather the positions that its translation may fill up."""
        share = self.tokens / self.positions
        return max(sentence_cost(words), math.ceil(self.longest(words) * share))


def _taken_apart(
    sentences: list[str],
    number: int,
    processor: GTransformerProcessor,
    capacity: _Capacity,
    terminology: Terminology | None,
) -> _Document:
    """The word ids of a document's sentences; too long ones in parts."""

    def fits(text: str) -> bool:
        return capacity.longest(len(processor.encode_sentences([text])[0])) <= capacity.positions

    document = _Document(number, [], [], [])
    texts: list[str] = []
    for position, words in enumerate(processor.encode_sentences(sentences), 1):
        if capacity.longest(len(words)) <= capacity.positions:
            document.parts.append(words)
            document.glue.append(None)
            texts.append(sentences[position - 1])
            continue
        gaps, parts = zip(*split_long_sentence(sentences[position - 1].strip(), fits), strict=True)
        logger.warning(
            f"Document {number}, sentence {position} has {len(words)} tokens, and its translation may have more than "
            f"fit the {capacity.positions} positions of the model: it is translated in {len(parts)} parts."
        )
        document.parts += processor.encode_sentences(parts)
        document.glue += [None, *gaps[1:]]
        texts += parts
    document.required = [terminology.required(text) if terminology else [] for text in texts]
    return document


def _next_windows(
    state: list[_Document], processor: GTransformerProcessor, capacity: _Capacity, carried_sentences: int
) -> Iterator[_Window]:
    """What can be translated now: all windows of all documents, or the next one of each if it continues another."""
    for index, document in enumerate(state):
        done = len(document.translations)
        costs = [capacity.cost(len(words)) for words in document.parts]
        carried = min(carried_sentences, done)
        # What is carried over takes at most half of a window.
        while carried and sum(costs[done - carried : done]) > capacity.tokens / 2:
            carried -= 1
        cuts = segment(costs[done:], capacity.tokens - sum(costs[done - carried : done]), capacity.sentences)
        for cut in cuts[:1] if carried_sentences else cuts:
            new, stop = done + cut.start, done + cut.stop
            source = processor.build_source(document.parts[new - carried : stop])
            yield _Window(index, new - carried, new, stop, source)


@dataclass
class _Translator:
    """Windows in, word ids of their new sentences and scores of these out."""

    model: PreTrainedModel
    processor: GTransformerProcessor
    capacity: _Capacity
    check: bool
    confidence: bool
    generate_arguments: dict

    def translate(
        self, state: list[_Document], windows: list[_Window]
    ) -> list[tuple[list[list[int]], list[tuple[float, int]]]]:
        rows = self._generate(state, windows)
        if self.check:
            lacking = [index for index, lacks in enumerate(self._missing(state, windows, rows)) if any(lacks)]
            again = [windows[index] for index in lacking]
            if again:
                for index, row in zip(lacking, self._generate(state, again, constrained=True), strict=True):
                    rows[index] = row
                self._warn(state, again, [rows[index] for index in lacking])
        translations = self._new_sentences(windows, rows)
        for window, words in zip(windows, translations, strict=True):
            if len(words) != window.stop - window.new:
                raise RuntimeError(f"{window.stop - window.new} sentences have {len(words)} translations.")
        if not self.confidence:
            return [(words, []) for words in translations]
        scores = _scores(self.model, self.processor, self._inputs(windows), self._padded(rows))
        return [
            (words, row[window.new - window.start :])
            for window, words, row in zip(windows, translations, scores, strict=True)
        ]

    def _generate(self, state: list[_Document], windows: list[_Window], constrained: bool = False) -> list[list[int]]:
        prefixes = [self.processor.build_source(state[w.document].translations[w.start : w.new]) for w in windows]
        arguments = dict(self.generate_arguments)
        if constrained:
            required = [state[w.document].required[w.start : w.stop] for w in windows]
            limits = [
                [self.capacity.limit(len(words)) for words in state[w.document].parts[w.start : w.stop]]
                for w in windows
            ]
            given = arguments.pop("logits_processor", None) or []
            constraint = RequiredWordsLogitsProcessor(self.processor, required, limits)
            arguments |= {"parallel_sentences": False, "logits_processor": LogitsProcessorList([*given, constraint])}
        prompt = _prompt(prefixes, self.processor, self.model.device)
        return self.model.generate(**self._inputs(windows), **prompt, **arguments).tolist()

    def _inputs(self, windows: list[_Window]) -> BatchFeature:
        rows = [window.source for window in windows]
        padded = self.processor.pad({"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]})
        return BatchFeature(padded).to(self.model.device)

    def _padded(self, rows: list[list[int]]) -> Tensor:
        return self.processor.pad({"decoder_input_ids": rows})["decoder_input_ids"].to(self.model.device)

    def _new_sentences(self, windows: list[_Window], rows: list[list[int]]) -> list[list[list[int]]]:
        sentences = self.processor.split_sentences(rows)
        return [words[window.new - window.start :] for words, window in zip(sentences, windows, strict=True)]

    def _missing(self, state: list[_Document], windows: list[_Window], rows: list[list[int]]) -> list[list[list[str]]]:
        """Of every new sentence of every window what its translation must contain and does not."""
        return [
            [
                missing(required, text) if required else []
                for required, text in zip(
                    state[window.document].required[window.new : window.stop],
                    self.processor.decode_sentences(sentences),
                    strict=True,
                )
            ]
            for window, sentences in zip(windows, self._new_sentences(windows, rows), strict=True)
        ]

    def _warn(self, state: list[_Document], windows: list[_Window], rows: list[list[int]]) -> None:
        for window, lacking in zip(windows, self._missing(state, windows, rows), strict=True):
            document = state[window.document]
            for part, absent in enumerate(lacking, window.new):
                if absent:
                    sentence = document.glue[: part + 1].count(None)
                    logger.warning(
                        f"Document {document.number}, sentence {sentence}: its translation lacks {', '.join(absent)}."
                    )


def _prompt(prefixes: list[list[int]], processor: GTransformerProcessor, device) -> dict[str, Tensor]:
    """Forced prefixes as arguments of `generate`; those of unequal lengths are padded on the left."""
    longest = max(map(len, prefixes))
    if not longest:
        return {}
    # One that is empty starts as generation does.
    prefixes = [prefix or [processor.bos_token_id] for prefix in prefixes]
    ids = [[processor.pad_token_id] * (longest - len(prefix)) + prefix for prefix in prefixes]
    prompt = {"decoder_input_ids": torch.tensor(ids, device=device)}
    if min(map(len, prefixes)) < longest:
        prompt["decoder_attention_mask"] = prompt["decoder_input_ids"].ne(processor.pad_token_id).long()
    return prompt


def _scores(
    model: PreTrainedModel, processor: GTransformerProcessor, inputs: BatchFeature, output: Tensor
) -> list[list[tuple[float, int]]]:
    """For every sentence of every row the sum of the log-probabilities of its words and `</s>`, and their number."""
    tags = group_tags(output, processor.bos_token_id, processor.eos_token_id)
    asked = (tags > 0) & (output != processor.bos_token_id)
    labels = output.masked_fill(~asked, -100)[:, 1:]
    scores = label_log_probabilities(model, labels, decoder_input_ids=output[:, :-1], **inputs)
    tags = tags[:, 1:] * asked[:, 1:]
    sentences = scores.new_zeros(len(output), int(tags.max()) + 1)
    sums = sentences.scatter_add(1, tags, scores)[:, 1:]
    counts = sentences.scatter_add(1, tags, asked[:, 1:].to(scores))[:, 1:].long()
    return [
        [(total, number) for total, number in zip(*pair, strict=True) if number]
        for pair in zip(sums.tolist(), counts.tolist(), strict=True)
    ]


def _put_together(document: _Document, processor: GTransformerProcessor, confidence: bool) -> TranslatedDocument:
    """The text of the sentences, of which some were translated in parts."""
    sentences: list[str] = []
    scores: list[tuple[float, int]] = []
    for text, glue, score in zip(
        processor.decode_sentences(document.translations),
        document.glue,
        document.scores or [(0.0, 0)] * len(document.parts),
        strict=True,
    ):
        if glue is None:
            sentences.append(text)
            scores.append(score)
        else:
            sentences[-1] += glue + text
            scores[-1] = (scores[-1][0] + score[0], scores[-1][1] + score[1])
    segments, first = [], 0
    for size in document.windows:
        new_sentences = document.glue[first : first + size].count(None)
        first += size
        if new_sentences:
            segments.append(new_sentences)
    return TranslatedDocument(
        sentences, segments, [total / number for total, number in scores] if confidence else None
    )
