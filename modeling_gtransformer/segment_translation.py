"""Translates batches of segments: encodes, generates, inserts required strings, scores and aligns."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.generation import LogitsProcessor, LogitsProcessorList

from .document_loss import sentence_log_probabilities
from .packed_weights import packed_weights
from .processing_gtransformer import GTransformerProcessor
from .replacement import with_required
from .segment_plan import Part, Segment
from .sentence_attention import similar_lengths
from .target_sentences import SentenceScoreRecorder, SentenceStreamer
from .terminology import missing
from .word_alignment import align_parts


# Source ids and mask `(B, S)` of segments, and the outputs of the encoder, as arguments of `generate`.
EncodedSegments = dict[str, Any]


class SegmentTranslator:
    """
    Translates batches of segments.

    Args:
        confidence: whether to score translations.
        generate_arguments: arguments of `model.generate`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: GTransformerProcessor,
        confidence: bool,
        generate_arguments: dict[str, Any],
    ):
        self.model, self.processor = model, processor
        self.confidence, self.generate_arguments = confidence, generate_arguments

    @property
    def device(self) -> torch.device:
        """Where inputs go: for an offloaded model, whose weights are on no device, the CPU."""
        device = self.model.device
        return torch.device("cpu") if device.type == "meta" else device

    def packed_weights(self) -> AbstractContextManager[None]:
        """Packs weights once for several batches, unless `pack_weights` is false in the arguments or the generation
        config. Without it, every call of `generate` packs them."""
        config = self.model.generation_config
        requested = self.generate_arguments.get("pack_weights", getattr(config, "pack_weights", None))
        return packed_weights(self.model, requested is not False)

    def translate(self, segments: Sequence[Segment]) -> None:
        encoded = self.encode(segments)
        self._fill(segments, encoded)
        self._finish(segments, encoded)

    def stream(self, segment: Segment, on_part: Callable[[Part], None]) -> None:
        """Translates the parts of one segment. Calls `on_part` with each part in order, as soon as it is final."""
        certain = iter(enumerate(segment.parts, 1))
        encoded = self.encode([segment])

        def report(_: int, ids: list[int]) -> None:
            number, part = next(certain)
            self._set_translation(part, ids)
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
        """Runs the encoder once on every segment, in batches of similar length, because padding costs as much as
        tokens. Generation, scoring and alignment share its outputs."""
        rows = [segment.source for segment in segments]
        padded = self.processor.pad({"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]})
        inputs = {name: values.to(self.device) for name, values in padded.items()}
        lengths = torch.tensor([len(row) for row in rows])
        order, outputs = lengths.argsort(stable=True), dict[str, Tensor]()
        for run in similar_lengths(lengths[order]):
            part = order[run]
            # Padding may be on either side.
            columns = padded["attention_mask"][part].any(dim=0).nonzero()[:, 0]
            used = slice(int(columns[0]), int(columns[-1]) + 1)
            encoded = self.model.get_encoder()(
                **{name: values[part, used] for name, values in inputs.items()},
                output_attentions=False,
                output_hidden_states=False,
                return_dict=True,
            )
            for name, values in encoded.items():
                whole = outputs.setdefault(name, values.new_zeros(*padded["input_ids"].shape, *values.shape[2:]))
                whole[part, used] = values
        return {**inputs, "encoder_outputs": type(encoded)(**outputs)}

    def generate(self, encoded: EncodedSegments, observers: Sequence[LogitsProcessor] = ()) -> Tensor:
        """Generates ids `(B, T)` for segments, with additional logits processors."""
        given = self.generate_arguments.get("logits_processor") or []
        processors = LogitsProcessorList([*given, *observers])
        return self.model.generate(**encoded, **{**self.generate_arguments, "logits_processor": processors})

    def _fill(
        self, segments: Sequence[Segment], encoded: EncodedSegments, observers: Sequence[LogitsProcessor] = ()
    ) -> None:
        """Generates the translations and alternatives of all parts."""
        recorder = SentenceScoreRecorder()
        observers = [*observers, *[recorder] * self.confidence]
        hypotheses = self.processor.split_sentences(self.generate(encoded, observers))
        number = len(hypotheses) // len(segments)
        for row, segment in enumerate(segments):
            best, *others = hypotheses[row * number : (row + 1) * number]
            if len(best) != len(segment.parts):
                count = f"{len(segment.parts)} sentences have {len(best)} translations"
                raise ValueError(f"{count}: raise or omit max_new_tokens, max_length and max_time.")
            if recorder.sums:
                self._set_scores(segment, recorder.sums[row])
            texts = map(self.processor.decode_sentences, others)
            for part, target, *alternatives in zip(segment.parts, best, *texts, strict=True):
                part.alternatives = alternatives
                if not part.target:  # a stream has already set it, perhaps with required strings
                    self._set_translation(part, target)

    def _set_translation(self, part: Part, target: list[int]) -> None:
        [part.text] = self.processor.decode_sentences([target])
        part.target, part.missing = target, missing(part.required, part.text)

    def _finish(self, segments: Sequence[Segment], encoded: EncodedSegments) -> None:
        """Inserts required strings, and scores and aligns translations if requested."""
        places = [
            (part, row, number) for row, segment in enumerate(segments) for number, part in enumerate(segment.parts, 1)
        ]
        self._replace(places, encoded)
        if self.confidence:
            unscored = {row for part, row, _ in places if part.is_changed or not part.tokens}
            self._score(sorted(unscored), segments, encoded)
        aligned = [place for place in places if place[0].sentence.is_aligned]
        align_parts(self.model, self.processor, aligned, encoded["encoder_outputs"])

    def _replace(self, places: Sequence[tuple[Part, int, int]], encoded: EncodedSegments) -> None:
        places = [place for place in places if place[0].missing]
        align_parts(self.model, self.processor, places, encoded["encoder_outputs"])
        for part, _, _ in places:
            text = with_required(part.source_text, part.text, part.alignment, part.required, part.sentence.terms)
            part.alignment = None
            if text != part.text:
                part.text, part.missing, part.is_changed = text, missing(part.required, text), True
                [part.target] = self.processor.encode_sentences([text], is_target=True)

    def _score(self, rows: list[int], segments: Sequence[Segment], encoded: EncodedSegments) -> None:
        """Scores the translations of these rows of the batch, including inserted strings, in a pass of the decoder."""
        if not rows:
            return
        targets = [self.processor.build_target([part.target for part in segments[row].parts]) for row in rows]
        sequences = self.processor.pad({"decoder_input_ids": targets})["decoder_input_ids"].to(self.device)
        mask = encoded["attention_mask"][rows]
        states, tags = encoded["encoder_outputs"][0][rows], encoded["encoder_outputs"].group_tags[rows]
        scores, tokens = sentence_log_probabilities(
            self.model,
            sequences,
            self.processor.target_template,
            encoder_outputs=(states, tags * mask.bool()),
            attention_mask=mask,
        )
        for row, of_segment, numbers in zip(rows, scores.tolist(), tokens.tolist(), strict=True):
            sums = [*zip(of_segment, numbers, strict=True)]
            self._set_scores(segments[row], sums[: len(segments[row].parts)])  # shorter documents are padded

    @staticmethod
    def _set_scores(segment: Segment, sums: list[tuple[float, int]]) -> None:
        for part, (total, number) in zip(segment.parts, sums, strict=True):
            part.log_probability, part.tokens = total, number
