"""Translates documents of any length: cuts them into segments, translates these in batches and reassembles them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from transformers import PreTrainedModel
from transformers.utils.logging import tqdm

from .processing_gtransformer import GTransformerProcessor
from .segment_plan import PendingDocument, Segment, SegmentLimits, next_segments, take_documents_apart
from .segment_translation import SegmentTranslator
from .segmentation import longest_first_batches


# Least and greatest values of settings.
RANGES = {
    "segment_tokens": (1, math.inf),
    "max_tokens": (1, math.inf),
    "segment_sentences": (1, math.inf),
    "carried_sentences": (0, math.inf),
    "num_beams": (1, 100),
}


def check_ranges(settings: Mapping[str, float | None], ranges: Mapping[str, tuple[float, float]] = RANGES) -> None:
    """
    Refuses settings that are outside their ranges.

    Raises:
        ValueError: a setting is outside its range; `None` is in every range.
    """
    for name, value in settings.items():
        least, greatest = ranges[name]
        if value is not None and not least <= value <= greatest:
            bounds = f"at least {least}" if greatest == math.inf else f"between {least} and {greatest}"
            raise ValueError(f"{name} must be {bounds}, not {value}.")


def batch_tokens(num_beams: int) -> int:
    """Source tokens of a batch: 16,384 divided by the number of beams, but at least 4,096, as few rows are slow."""
    return max(16_384 // num_beams, 4_096)


@dataclass(frozen=True)
class TranslatedDocument:
    """
    The translation of a document.

    Attributes:
        sentences: the translation of every sentence.
        segments: numbers of sentences that the model translated at once.
        confidences: if asked for, the mean log-probability of each sentence's tokens, in nats.
    """

    sentences: list[str]
    segments: list[int]
    confidences: list[float] | None = None

    @classmethod
    def joined(cls, parts: Sequence["TranslatedDocument"]) -> "TranslatedDocument":
        """Joins several translations into one, such as those of the documents in a file."""
        has_confidences = any(part.confidences is not None for part in parts)
        return cls(
            [sentence for part in parts for sentence in part.sentences],
            [size for part in parts for size in part.segments],
            [score for part in parts for score in part.confidences or []] if has_confidences else None,
        )


def translate_documents(
    model: PreTrainedModel,
    processor: GTransformerProcessor,
    documents: Sequence[list[str]],
    segment_tokens: int = 512,
    max_tokens: int | None = None,
    segment_sentences: int | None = None,
    carried_sentences: int = 0,
    confidence: bool = False,
    required: Sequence[Sequence[list[str]]] | None = None,
    places: Sequence[Sequence[str]] | None = None,
    progress: bool = False,
    on_sentence: Callable[[int, int, str], None] | None = None,
    **generate_arguments: Any,
) -> list[TranslatedDocument]:
    """
    Translates documents in segments of fewer than `segment_tokens` source tokens, cut at sentence borders, whose
    translations fit the model's positions. A sentence that does not fit is translated in parts, which is announced.

    Args:
        max_tokens: source tokens in a batch, padding included; by default 16,384 divided by the number of beams,
            but not below 4,096.
        segment_sentences: most sentences in a segment; 1 for a model that was trained on single sentences.
        carried_sentences: how many of the last sentences of a segment also open the next one, with their translations
            as a forced prefix, so that its first sentences have context, too. The segments of a document then wait for
            each other.
        confidence: whether to score the translations, which takes one more forward pass.
        required: for every sentence, what its translation must contain. Where something is missing, the segment is
            translated again under that constraint; a warning names what is still missing.
        places: for every sentence, the name of its place in warnings; by default "Document 1, sentence 1".
        progress: whether to show a progress bar.
        on_sentence: called in order with the numbers of document and sentence, from 0, and the translation, as soon as
            this is certain. Segments are then translated one by one, and under the constraint of what is required from
            the start.
        generate_arguments: arguments of `model.generate`.

    Raises:
        ValueError: a setting is outside its range, or the arguments ask for anything but one aligned translation.
    """
    if generate_arguments.get("align_sentences") is False:
        raise ValueError("Documents are translated sentence by sentence: only generate() takes align_sentences=False.")
    for name, only in (("num_return_sequences", 1), ("return_dict_in_generate", False)):
        if generate_arguments.get(name, only) not in (None, only):
            raise ValueError(f"A document gets one translation, as text: only generate() takes {name}.")
    check_ranges(
        {
            "segment_tokens": segment_tokens,
            "max_tokens": max_tokens,
            "segment_sentences": segment_sentences,
            "carried_sentences": carried_sentences,
            "num_beams": generate_arguments.get("num_beams"),
        }
    )
    num_beams = generate_arguments.get("num_beams") or model.generation_config.num_beams or 1
    limits = SegmentLimits(model, processor, segment_tokens, segment_sentences, generate_arguments)
    translator = SegmentTranslator(model, processor, limits, confidence, generate_arguments)
    pending = take_documents_apart(documents, processor, limits, places, required)
    total = sum(len(document.parts) for document in pending)
    at_once = None if on_sentence is None else 1
    with (
        translator.packed_weights(),
        tqdm(total=total, desc="Translating", unit=" sentences", disable=not progress) as bar,
    ):
        while segments := list(islice(next_segments(pending, processor, limits, carried_sentences), at_once)):
            if on_sentence is None:
                _translate_in_batches(segments, translator, max_tokens or batch_tokens(num_beams), bar)
            else:
                [segment] = segments
                tell = SentenceTeller(segment.document, processor, on_sentence)
                _note(segment, *translator.stream(segment, tell))
                bar.update(segment.stop - segment.new)
    return [_put_together(document, processor, confidence) for document in pending]


def _translate_in_batches(
    segments: Sequence[Segment], translator: SegmentTranslator, max_tokens: int, bar: tqdm
) -> None:
    """Translates segments that do not depend on each other."""
    done: dict[int, Any] = {}
    for batch in longest_first_batches([len(segment.source) for segment in segments], max_tokens):
        rows = [segments[index] for index in batch]
        done |= zip(batch, translator.translate(rows), strict=True)
        bar.update(sum(segment.stop - segment.new for segment in rows))
    for index, segment in enumerate(segments):  # those of a document in order
        _note(segment, *done[index])


def _note(segment: Segment, translations: list[list[int]], scores: list[tuple[float, int]]) -> None:
    """Adds the translations and scores of a segment to its document."""
    segment.document.translations += translations
    segment.document.scores += scores
    segment.document.segments.append(segment.stop - segment.new)


class SentenceTeller:
    """Reports every sentence of a document once, as soon as the last of its parts is translated."""

    def __init__(
        self,
        document: PendingDocument,
        processor: GTransformerProcessor,
        on_sentence: Callable[[int, int, str], None],
    ):
        self.document, self.processor, self.on_sentence = document, processor, on_sentence
        self.parts = list(document.translations)

    def __call__(self, part: int, words: list[int]) -> None:
        """Takes the word ids of a part of the document."""
        if part < len(self.parts):
            return  # already reported
        self.parts.append(words)
        separator = self.document.separator
        if separator[part + 1 : part + 2] in ([], [None]):
            first = next(index for index in range(part, -1, -1) if separator[index] is None)
            texts = self.processor.decode_sentences(self.parts[first:])
            sentence = "".join((between or "") + text for between, text in zip(separator[first:], texts, strict=False))
            self.on_sentence(self.document.number, self.document.sentence_of(part), sentence)


def _put_together(document: PendingDocument, processor: GTransformerProcessor, confidence: bool) -> TranslatedDocument:
    """Joins the sentences of a document, some of which may have been translated in parts."""
    sentences: list[str] = []
    scores: list[tuple[float, int]] = []
    for text, separator, score in zip(
        processor.decode_sentences(document.translations),
        document.separator,
        document.scores or [(0.0, 0)] * len(document.parts),
        strict=True,
    ):
        if separator is None:
            sentences.append(text)
            scores.append(score)
        else:
            sentences[-1] += separator + text
            scores[-1] = (scores[-1][0] + score[0], scores[-1][1] + score[1])
    segments, first = [], 0
    for size in document.segments:
        new_sentences = document.separator[first : first + size].count(None)
        first += size
        if new_sentences:
            segments.append(new_sentences)
    return TranslatedDocument(
        sentences, segments, [total / number for total, number in scores] if confidence else None
    )
