"""Documents of any length through the model: cut into windows, translated in batches, put together again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import BatchFeature, PreTrainedModel
from transformers.generation import LogitsProcessor, LogitsProcessorList
from transformers.utils import logging
from transformers.utils.logging import tqdm

from .group_tags import group_tags
from .processing_gtransformer import GTransformerProcessor
from .segmentation import token_batches
from .sentence_streamer import SentenceStreamer
from .terminology import RequiredWordsLogitsProcessor, missing
from .token_scores import label_log_probabilities
from .windows import Capacity, Document, Window, next_windows, take_apart


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


def translate_documents(
    model: PreTrainedModel,
    processor: GTransformerProcessor,
    documents: Sequence[list[str]],
    segment_tokens: int = 512,
    max_tokens: int = 4096,
    segment_sentences: int | None = None,
    carried_sentences: int = 0,
    confidence: bool = False,
    required: Sequence[Sequence[list[str]]] | None = None,
    progress: bool = False,
    on_sentence: Callable[[int, int, str], None] | None = None,
    **generate_arguments: Any,
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
        required: of every sentence what its translation must contain. Where something is missing, the window is
            translated once more under that constraint; what is missing even then is named in a warning.
        progress: show a progress bar.
        on_sentence: called with the numbers of document and sentence, from 0, and the translation, as soon as this is
            certain, in order. Then windows are translated one by one, and at once under the constraint of what is
            required.
        generate_arguments: for `model.generate`.
    """
    capacity = Capacity(model, segment_tokens, segment_sentences, generate_arguments)
    translator = _Translator(model, processor, capacity, confidence, generate_arguments)
    required = required or [[[]] * len(document) for document in documents]
    state = [
        take_apart(document, number, processor, capacity, needed)
        for number, (document, needed) in enumerate(zip(documents, required, strict=True), 1)
    ]

    total = sum(len(document.parts) for document in state)
    with tqdm(total=total, desc="Translating", unit=" sentences", disable=not progress) as bar:
        while windows := list(next_windows(state, processor, capacity, carried_sentences)):
            if on_sentence is not None:
                windows = windows[:1]
            lengths = [len(window.source) for window in windows]
            order = sorted(range(len(windows)), key=lengths.__getitem__, reverse=True)
            done: dict[int, Any] = {}
            for batch in token_batches(lengths, order, max([max_tokens, *lengths])):
                rows = [windows[index] for index in batch]
                tell = None if on_sentence is None else _Teller(state, rows[0], processor, on_sentence)
                done |= zip(batch, translator.translate(state, rows, tell), strict=True)
                bar.update(sum(window.stop - window.new for window in rows))
            for index, window in enumerate(windows):  # those of a document in their order
                document, (translations, scores) = state[window.document], done[index]
                document.translations += translations
                document.scores += scores
                document.windows.append(window.stop - window.new)
    return [_put_together(document, processor, confidence) for document in state]


@dataclass
class _Translator:
    """Windows in, word ids of their new sentences and scores of these out."""

    model: PreTrainedModel
    processor: GTransformerProcessor
    capacity: Capacity
    confidence: bool
    generate_arguments: dict

    def translate(
        self, state: list[Document], windows: list[Window], tell: "_Teller | None" = None
    ) -> list[tuple[list[list[int]], list[tuple[float, int]]]]:
        """Given `tell`, of a single window, whose parts it is told of as they come."""
        rows = self._generate(state, windows, constrained=tell is not None, tell=tell)
        lacking = [index for index, lacks in enumerate(self._missing(state, windows, rows)) if any(lacks)]
        again = [windows[index] for index in lacking]
        if again:
            if tell is None:
                for index, row in zip(lacking, self._generate(state, again, constrained=True), strict=True):
                    rows[index] = row
            self._warn(state, again, [rows[index] for index in lacking])
        translations = self._new_sentences(windows, rows)
        if tell is not None:
            for part, ids in enumerate(translations[0], windows[0].new):
                tell(part, ids)
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

    def _generate(
        self,
        state: list[Document],
        windows: list[Window],
        constrained: bool = False,
        tell: "_Teller | None" = None,
    ) -> list[list[int]]:
        prefixes = [self.processor.build_source(state[w.document].translations[w.start : w.new]) for w in windows]
        arguments = dict(self.generate_arguments)
        required = [state[w.document].required[w.start : w.stop] for w in windows]
        observers: list[LogitsProcessor] = []
        if constrained and any(words for window in required for words in window):
            limits = [
                [self.capacity.limit(len(words)) for words in state[w.document].parts[w.start : w.stop]]
                for w in windows
            ]
            observers.append(RequiredWordsLogitsProcessor(self.processor, required, limits))
            arguments["parallel_sentences"] = False
        if tell is not None and not arguments.get("parallel_sentences"):
            [window] = windows
            ids = self.processor.bos_token_id, self.processor.eos_token_id
            observers.append(
                SentenceStreamer(
                    lambda number, words: tell(window.start + number, words),
                    window.stop - window.start,
                    *ids,
                    start=window.new - window.start,
                )
            )
        if observers:
            given = arguments.pop("logits_processor", None) or []
            arguments["logits_processor"] = LogitsProcessorList([*given, *observers])
        prompt = _prompt(prefixes, self.processor, self.model.device)
        return self.model.generate(**self._inputs(windows), **prompt, **arguments).tolist()

    def _inputs(self, windows: list[Window]) -> BatchFeature:
        rows = [window.source for window in windows]
        padded = self.processor.pad({"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]})
        return BatchFeature(padded).to(self.model.device)

    def _padded(self, rows: list[list[int]]) -> Tensor:
        return self.processor.pad({"decoder_input_ids": rows})["decoder_input_ids"].to(self.model.device)

    def _new_sentences(self, windows: list[Window], rows: list[list[int]]) -> list[list[list[int]]]:
        sentences = self.processor.split_sentences(rows)
        return [words[window.new - window.start :] for words, window in zip(sentences, windows, strict=True)]

    def _missing(self, state: list[Document], windows: list[Window], rows: list[list[int]]) -> list[list[list[str]]]:
        """Of every new sentence of every window what its translation must contain and does not."""
        result = []
        for window, sentences in zip(windows, self._new_sentences(windows, rows), strict=True):
            required = state[window.document].required[window.new : window.stop]
            texts = self.processor.decode_sentences(sentences) if any(required) else [""] * len(required)
            result.append([missing(words, text) for words, text in zip(required, texts, strict=True)])
        return result

    def _warn(self, state: list[Document], windows: list[Window], rows: list[list[int]]) -> None:
        for window, lacking in zip(windows, self._missing(state, windows, rows), strict=True):
            document = state[window.document]
            for part, absent in enumerate(lacking, window.new):
                if absent:
                    sentence = document.glue[: part + 1].count(None)
                    logger.warning(
                        f"Document {document.number}, sentence {sentence}: its translation lacks {', '.join(absent)}."
                    )


class _Teller:
    """Tells of the sentences of a document when the last of their parts is there, each once."""

    def __init__(
        self,
        state: list[Document],
        window: Window,
        processor: GTransformerProcessor,
        on_sentence: Callable[[int, int, str], None],
    ):
        self.document, self.number = state[window.document], window.document
        self.processor = processor
        self.on_sentence = on_sentence
        self.parts = list(self.document.translations)

    def __call__(self, part: int, words: list[int]) -> None:
        """Part `part` of the document has these word ids."""
        if part < len(self.parts):
            return  # told already
        self.parts.append(words)
        glue = self.document.glue
        if glue[part + 1 : part + 2] in ([], [None]):
            first = max(index for index in range(part + 1) if glue[index] is None)
            texts = self.processor.decode_sentences(self.parts[first:])
            sentence = "".join((between or "") + text for between, text in zip(glue[first:], texts, strict=False))
            self.on_sentence(self.number, glue[: part + 1].count(None) - 1, sentence)


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


def _put_together(document: Document, processor: GTransformerProcessor, confidence: bool) -> TranslatedDocument:
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
