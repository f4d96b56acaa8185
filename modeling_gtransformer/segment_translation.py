"""Translates batches of segments: encodes them once, generates, checks for required strings, scores and aligns."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.generation import LogitsProcessor, LogitsProcessorList
from transformers.utils import ModelOutput

from .document_loss import sentence_log_probabilities
from .packed_weights import packed_weights
from .processing_gtransformer import GTransformerProcessor
from .replacement import with_required
from .segment_plan import Part, Segment, SegmentLimits
from .target_sentences import SentenceStreamer
from .terminology import missing
from .word_alignment import align_parts


@dataclass(frozen=True)
class EncodedSegments:
    """Source ids and mask `(B, S)` of segments, and what the encoder made of them."""

    input_ids: Tensor
    attention_mask: Tensor
    encoder_outputs: ModelOutput


class SegmentTranslator:
    """
    Translates batches of segments.

    Args:
        limits: limits of the lengths of sentences and their translations.
        confidence: whether translations are scored.
        generate_arguments: arguments of `model.generate`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: GTransformerProcessor,
        limits: SegmentLimits,
        confidence: bool,
        generate_arguments: dict[str, Any],
    ):
        self.model, self.processor, self.limits = model, processor, limits
        self.confidence, self.generate_arguments = confidence, generate_arguments

    def packed_weights(self) -> AbstractContextManager[None]:
        """Packed weights for several batches, unless the arguments or the generation config of the model refuse them;
        `generate` alone would pack them anew for each."""
        config = self.model.generation_config
        asked = self.generate_arguments.get("pack_weights", getattr(config, "pack_weights", None))
        return packed_weights(self.model, asked is not False)

    def translate(self, segments: Sequence[Segment]) -> None:
        """Translates the parts of all segments."""
        encoded = self.encode(segments)
        self._fill(segments, encoded)
        self._finish(segments, encoded)

    def stream(self, segment: Segment, on_part: Callable[[Part], None]) -> None:
        """Translates the parts of one segment. `on_part` is called with each of them in order, as soon as it is
        certain."""
        certain = iter(enumerate(segment.parts, 1))
        encoded = self.encode([segment])

        def report(_: int, ids: list[int]) -> None:
            number, part = next(certain)
            self._set_translation([part], [ids])
            self._replace([(part, 0, number)], encoded)
            on_part(part)

        is_parallel = self.generate_arguments.get("parallel_sentences")
        streamer = SentenceStreamer(report, len(segment.parts), self.processor.target_template)
        self._fill([segment], encoded, [] if is_parallel else [streamer])
        self._finish([segment], encoded)
        for _, part in certain:
            on_part(part)

    @torch.no_grad()
    def encode(self, segments: Sequence[Segment]) -> EncodedSegments:
        """Runs the encoder; nothing else does so for these segments."""
        rows = [segment.source for segment in segments]
        padded = self.processor.pad({"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]})
        inputs = {name: values.to(self.model.device) for name, values in padded.items()}
        return EncodedSegments(**inputs, encoder_outputs=self.model.get_encoder()(**inputs))

    def generate(self, encoded: EncodedSegments, observers: Sequence[LogitsProcessor] = ()) -> Tensor:
        """Generates ids `(B, T)` for segments. The observers are logits processors for this call."""
        arguments = dict(self.generate_arguments)
        if observers:
            given = arguments.pop("logits_processor", None) or []
            arguments["logits_processor"] = LogitsProcessorList([*given, *observers])
        return self.model.generate(**vars(encoded), **arguments)

    def _fill(
        self, segments: Sequence[Segment], encoded: EncodedSegments, observers: Sequence[LogitsProcessor] = ()
    ) -> None:
        """Generates the translations of all parts, after which none may be missing, and sets their alternatives."""
        hypotheses = self.processor.split_sentences(self.generate(encoded, observers))
        number = len(hypotheses) // len(segments)
        sentences = hypotheses[::number]
        for segment, targets in zip(segments, sentences, strict=True):
            if len(targets) != len(segment.parts):
                raise RuntimeError(f"{len(segment.parts)} sentences have {len(targets)} translations.")
        pairs = [
            (part, target)
            for segment, targets in zip(segments, sentences, strict=True)
            for part, target in zip(segment.parts, targets, strict=True)
            if not part.target  # those of a stream stay as it has reported them
        ]
        self._set_translation([part for part, _ in pairs], [target for _, target in pairs])
        for first, segment in zip(range(0, len(hypotheses), number), segments, strict=True):
            texts = [self.processor.decode_sentences(each) for each in hypotheses[first + 1 : first + number]]
            for index, part in enumerate(segment.parts):
                part.alternatives = [each[index] for each in texts]

    def _set_translation(self, parts: Sequence[Part], targets: list[list[int]]) -> None:
        for part, target, text in zip(parts, targets, self.processor.decode_sentences(targets), strict=True):
            part.target, part.text, part.missing = target, text, missing(part.required, text)

    def _finish(self, segments: Sequence[Segment], encoded: EncodedSegments) -> None:
        """Adds what translations lack, scores them, and aligns the words of those that need it."""
        places = [
            (part, row, number) for row, segment in enumerate(segments) for number, part in enumerate(segment.parts, 1)
        ]
        self._replace([place for place in places if place[0].missing], encoded)
        if self.confidence:
            self._score(segments, encoded)
        self._align([place for place in places if place[0].sentence.is_aligned], encoded)

    def _replace(self, places: Sequence[tuple[Part, int, int]], encoded: EncodedSegments) -> None:
        """Puts required strings that translations lack in their places."""
        places = [place for place in places if place[0].missing]
        self._align(places, encoded)
        for part, _, _ in places:
            text = with_required(part.source_text, part.text, part.alignment, part.required, part.sentence.terms)
            part.alignment = None
            if text != part.text:
                part.text, part.missing, part.is_changed = text, missing(part.required, text), True
                [part.target] = self.processor.encode_sentences([text], is_target=True)

    def _score(self, segments: Sequence[Segment], encoded: EncodedSegments) -> None:
        """Scores all translations in one pass of the decoder, as they are after replacements."""
        rows = [self.processor.build_target([part.target for part in segment.parts]) for segment in segments]
        sequences = self.processor.pad({"decoder_input_ids": rows})["decoder_input_ids"].to(self.model.device)
        tags = encoded.encoder_outputs.group_tags * encoded.attention_mask.bool()
        scores, tokens = sentence_log_probabilities(
            self.model,
            sequences,
            self.processor.target_template,
            encoder_outputs=(encoded.encoder_outputs[0], tags),
            attention_mask=encoded.attention_mask,
        )
        for segment, of_segment, numbers in zip(segments, scores.tolist(), tokens.tolist(), strict=True):
            # Beyond the last sentence of a document, its scores are padded.
            for part, total, number in zip(segment.parts, of_segment, numbers, strict=False):
                part.log_probability, part.tokens = total, number

    def _align(self, places: Sequence[tuple[Part, int, int]], encoded: EncodedSegments) -> None:
        """Aligns the words of parts by cross-attention to the states that the encoder gave."""
        if places:
            align_parts(self.model, self.processor, places, encoded.encoder_outputs)
