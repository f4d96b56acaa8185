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

from .numbers_and_codes import form_in
from .packed_weights import packed_weights
from .processing_gtransformer import GTransformerProcessor
from .segment_plan import Part, Segment, SegmentLimits
from .target_sentences import SentenceStreamer
from .terminology import RequiredWordsLogitsProcessor, missing
from .word_alignment import align_parts


@dataclass(frozen=True)
class EncodedSegments:
    """Source ids and mask `(B, S)` of segments, and what the encoder made of them."""

    input_ids: Tensor
    attention_mask: Tensor
    encoder_outputs: ModelOutput

    def rows(self, index: list[int]) -> "EncodedSegments":
        """Some of the segments."""
        outputs = {name: value[index] for name, value in self.encoder_outputs.items() if isinstance(value, Tensor)}
        encoder_outputs = type(self.encoder_outputs)(**outputs)
        return EncodedSegments(self.input_ids[index], self.attention_mask[index], encoder_outputs)


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
        """Translates the parts of all segments. A segment that lacks a required string is translated again under that
        constraint."""
        encoded = self.encode(segments)
        self._fill(segments, encoded)
        lacking = [index for index, segment in enumerate(segments) if any(part.missing for part in segment.parts)]
        if lacking:
            again, encoded_again = [segments[index] for index in lacking], encoded.rows(lacking)
            self._fill(again, encoded_again, [self.required_words(again)])
        self._align(segments, encoded)

    def stream(self, segment: Segment, on_part: Callable[[Part], None]) -> None:
        """Translates the parts of one segment. `on_part` is called with each of them in order, as soon as it is
        certain. From the first part that lacks a required string on, the parts are translated again."""
        reported: list[Part] = []
        is_lacking = False

        def report(number: int, ids: list[int]) -> None:
            nonlocal is_lacking
            part = segment.parts[number]
            self._set_translation([part], [ids])
            is_lacking = is_lacking or bool(part.missing)
            if not is_lacking:
                reported.append(part)
                on_part(part)

        in_parallel = self.generate_arguments.get("parallel_sentences")
        streamer = SentenceStreamer(report, len(segment.parts), self.processor.target_template)
        encoded = self.encode([segment])
        self._fill([segment], encoded, [] if in_parallel else [streamer])
        if any(part.missing for part in segment.parts):
            final = [dict(vars(part)) for part in reported]
            self._fill([segment], encoded, [self.required_words([segment])])
            for part, values in zip(reported, final, strict=True):
                vars(part).update(values)
        self._align([segment], encoded)
        for part in segment.parts[len(reported) :]:
            on_part(part)

    @torch.no_grad()
    def encode(self, segments: Sequence[Segment]) -> EncodedSegments:
        """Runs the encoder; nothing else does so for these segments."""
        rows = [segment.source for segment in segments]
        padded = self.processor.pad({"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]})
        inputs = {name: values.to(self.model.device) for name, values in padded.items()}
        return EncodedSegments(**inputs, encoder_outputs=self.model.get_encoder()(**inputs))

    def generate(self, encoded: EncodedSegments, observers: Sequence[LogitsProcessor] = ()) -> Any:
        """Returns what `generate` of the model returns for segments: ids `(B, T)` or, if translations are scored, a
        [`DocumentsOutput`]. The observers are logits processors for this call."""
        arguments = dict(self.generate_arguments)
        if any(isinstance(observer, RequiredWordsLogitsProcessor) for observer in observers):
            arguments["parallel_sentences"] = False  # the constraint reads what was written before
        if observers:
            given = arguments.pop("logits_processor", None) or []
            arguments["logits_processor"] = LogitsProcessorList([*given, *observers])
        if self.confidence:
            arguments["sentence_scores"] = True
        return self.model.generate(**vars(encoded), **arguments)

    def required_words(self, segments: Sequence[Segment]) -> LogitsProcessor:
        """Logits processor that forces the required strings into the translations: numbers, which languages write
        differently, in the form of an earlier translation if it had them, otherwise in that of the source."""
        required = [
            [[form_in(part.text, words) or words for words in part.required] for part in segment.parts]
            for segment in segments
        ]
        limits = [[self.limits.token_limit(len(part.ids)) for part in segment.parts] for segment in segments]
        return RequiredWordsLogitsProcessor(self.processor, required, limits)

    def _fill(
        self, segments: Sequence[Segment], encoded: EncodedSegments, observers: Sequence[LogitsProcessor] = ()
    ) -> None:
        """Generates the translations of all parts, after which none may be missing, and sets their scores and
        alternatives."""
        output = self.generate(encoded, observers)
        rows = output.sequences if self.confidence else output
        hypotheses = self.processor.split_sentences(rows.tolist())
        number = len(hypotheses) // len(segments)
        sentences = hypotheses[::number]
        for segment, targets in zip(segments, sentences, strict=True):
            if len(targets) != len(segment.parts):
                raise RuntimeError(f"{len(segment.parts)} sentences have {len(targets)} translations.")
        parts = [part for segment in segments for part in segment.parts]
        self._set_translation(parts, [target for targets in sentences for target in targets])
        for first, segment in zip(range(0, len(hypotheses), number), segments, strict=True):
            texts = [self.processor.decode_sentences(each) for each in hypotheses[first + 1 : first + number]]
            for index, part in enumerate(segment.parts):
                part.alternatives = [each[index] for each in texts]
        if self.confidence:
            best = (each[::number].tolist() for each in (output.sentence_scores, output.sentence_tokens))
            scores = zip(segments, *best, strict=True)
            for segment, log_probabilities, tokens in scores:
                # Beyond the last sentence of a document, its scores are padded.
                for part, total, number in zip(segment.parts, log_probabilities, tokens, strict=False):
                    part.log_probability, part.tokens = total, number

    def _set_translation(self, parts: Sequence[Part], targets: list[list[int]]) -> None:
        for part, target, text in zip(parts, targets, self.processor.decode_sentences(targets), strict=True):
            part.target, part.text, part.missing = target, text, missing(part.required, text)

    def _align(self, segments: Sequence[Segment], encoded: EncodedSegments) -> None:
        """Aligns the words of those parts that need it, by cross-attention to the states that the encoder gave."""
        places = [
            (part, row, number)
            for row, segment in enumerate(segments)
            for number, part in enumerate(segment.parts, 1)
            if part.sentence.is_aligned
        ]
        if places:
            align_parts(self.model, self.processor, places, encoded.encoder_outputs)
