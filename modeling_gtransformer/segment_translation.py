"""Translates batches of segments: generates, checks for what translations must contain, and scores."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from transformers import BatchFeature, PreTrainedModel
from transformers.generation import LogitsProcessor, LogitsProcessorList
from transformers.utils import logging

from .group_tags import read_group_tags
from .packed_weights import packed_weights
from .processing_gtransformer import GTransformerProcessor
from .segment_plan import Segment, SegmentLimits
from .sentence_streamer import SentenceStreamer
from .terminology import RequiredWordsLogitsProcessor, missing
from .token_scores import label_log_probabilities


logger = logging.get_logger(__name__)

# The sum of the log-probabilities of a sentence, and its number of tokens.
Score = tuple[float, int]


class SegmentTranslator:
    """
    Translates batches of segments.

    Args:
        limits: limits of the lengths of sentences and their translations.
        confidence: whether translations are scored, with one more forward pass.
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

    def translate(self, segments: list[Segment]) -> list[tuple[list[list[int]], list[Score]]]:
        """Returns, for every segment, the word ids of its new sentences and, if asked for, their scores. A segment
        that lacks what it must contain is translated again under that constraint."""
        rows = self.generate(segments)
        lacking = [index for index, lacks in enumerate(self.missing(segments, rows)) if any(lacks)]
        again = [segments[index] for index in lacking]
        if again:
            constrained = self.generate(again, [self.required_words(again)])
            for index, row in zip(lacking, constrained, strict=True):
                rows[index] = row
            self.warn_of_missing(again, constrained)
        return self.finished(segments, rows)

    def stream(
        self, segment: Segment, on_part: Callable[[int, list[int]], None]
    ) -> tuple[list[list[int]], list[Score]]:
        """Translates a single segment, under the constraint from the start. `on_part` is called with the number and
        the word ids of each part of the document as soon as it is certain, and again with all of them at the end."""
        observers = [self.required_words([segment])]
        if not self.generate_arguments.get("parallel_sentences"):
            observers.append(
                SentenceStreamer(
                    lambda number, words: on_part(segment.start + number, words),
                    segment.stop - segment.start,
                    self.processor.target_template,
                    start=segment.carried,
                )
            )
        rows = self.generate([segment], observers)
        self.warn_of_missing([segment], rows)
        [(translations, scores)] = self.finished([segment], rows)
        for part, words in enumerate(translations, segment.new):
            on_part(part, words)
        return translations, scores

    def required_words(self, segments: list[Segment]) -> LogitsProcessor | None:
        """Logits processor that forces the required words into the translations; `None` if nothing is required."""
        required = [segment.document.required[segment.start : segment.stop] for segment in segments]
        if not any(words for sentences in required for words in sentences):
            return None
        limits = [
            [self.limits.token_limit(len(words)) for words in segment.document.parts[segment.start : segment.stop]]
            for segment in segments
        ]
        return RequiredWordsLogitsProcessor(self.processor, required, limits)

    def generate(
        self, segments: list[Segment], observers: list[LogitsProcessor | None] | None = None
    ) -> list[list[int]]:
        """Returns the generated ids of every segment; the observers are logits processors for this call."""
        arguments, prompt = dict(self.generate_arguments), self.prompt(segments)
        present = [observer for observer in observers or [] if observer is not None]
        # Decoding sentences side by side supports no constraint, and no prefixes of unequal lengths.
        is_constrained = any(isinstance(observer, RequiredWordsLogitsProcessor) for observer in present)
        if is_constrained or "decoder_attention_mask" in prompt:
            arguments["parallel_sentences"] = False
        if present:
            given = arguments.pop("logits_processor", None) or []
            arguments["logits_processor"] = LogitsProcessorList([*given, *present])
        return self.model.generate(**self.inputs(segments), **prompt, **arguments).tolist()

    def inputs(self, segments: list[Segment]) -> BatchFeature:
        rows = [segment.source for segment in segments]
        padded = self.processor.pad({"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]})
        return BatchFeature(padded).to(self.model.device)

    def prompt(self, segments: list[Segment]) -> dict[str, Tensor]:
        """Arguments of `generate` for the parts carried over; prefixes of unequal lengths are padded on the left."""
        if not any(segment.carried for segment in segments):
            return {}
        # An empty prefix starts as generation does.
        start = [self.processor.target_template.start]
        prefixes = [self.processor.build_target(segment.prefix) or start for segment in segments]
        longest = max(map(len, prefixes))
        ids = [[self.processor.pad_token_id] * (longest - len(prefix)) + prefix for prefix in prefixes]
        prompt = {"decoder_input_ids": torch.tensor(ids, device=self.model.device)}
        if min(map(len, prefixes)) < longest:
            mask = [[0] * (longest - len(prefix)) + [1] * len(prefix) for prefix in prefixes]
            prompt["decoder_attention_mask"] = torch.tensor(mask, device=self.model.device)
        return prompt

    def new_sentences(self, segments: list[Segment], rows: list[list[int]]) -> list[list[list[int]]]:
        """The word ids of those sentences of generated rows that are not carried over."""
        sentences = self.processor.split_sentences(rows)
        return [words[segment.carried :] for words, segment in zip(sentences, segments, strict=True)]

    def missing(self, segments: list[Segment], rows: list[list[int]]) -> list[list[list[str]]]:
        """For every new sentence of every segment, what its translation must contain but does not."""
        result = []
        for segment, sentences in zip(segments, self.new_sentences(segments, rows), strict=True):
            required = segment.document.required[segment.new : segment.stop]
            texts = self.processor.decode_sentences(sentences) if any(required) else [""] * len(required)
            result.append([missing(words, text) for words, text in zip(required, texts, strict=True)])
        return result

    def warn_of_missing(self, segments: list[Segment], rows: list[list[int]]) -> None:
        for segment, lacking in zip(segments, self.missing(segments, rows), strict=True):
            document = segment.document
            for part, absent in enumerate(lacking, segment.new):
                if absent:
                    place = document.places[document.sentence_of(part)]
                    logger.warning(f"{place}: its translation lacks {', '.join(absent)}.")

    def finished(self, segments: list[Segment], rows: list[list[int]]) -> list[tuple[list[list[int]], list[Score]]]:
        """Translations and scores of generated rows, after a check that no sentence is missing."""
        translations = self.new_sentences(segments, rows)
        for segment, words in zip(segments, translations, strict=True):
            if len(words) != segment.stop - segment.new:
                raise RuntimeError(f"{segment.stop - segment.new} sentences have {len(words)} translations.")
        if not self.confidence:
            return [(words, []) for words in translations]
        scores = self.scores(segments, rows)
        return [
            (words, row[segment.carried :]) for segment, words, row in zip(segments, translations, scores, strict=True)
        ]

    def scores(self, segments: list[Segment], rows: list[list[int]]) -> list[list[Score]]:
        """For every sentence of every row, the summed log-probability of its words and `</s>`, and their number."""
        output = self.processor.pad({"decoder_input_ids": rows})["decoder_input_ids"].to(self.model.device)
        read, labels = output[:, :-1], output[:, 1:]
        # A token belongs to the sentence of the token that it is predicted from; those of the template are given.
        tags = read_group_tags(read, self.model.config, is_target=True)
        template = self.processor.target_template
        added = [token for token in (*template.prefix, template.pad, template.end) if token is not None]
        asked = (tags > 0) & ~torch.isin(labels, torch.tensor(added, device=labels.device))
        inputs = self.inputs(segments)
        labels = labels.masked_fill(~asked, -100)
        scores = label_log_probabilities(self.model, labels, decoder_input_ids=read, **inputs)
        tags = tags * asked
        sentences = scores.new_zeros(len(output), int(tags.max()) + 1)
        sums = sentences.scatter_add(1, tags, scores)[:, 1:]
        counts = sentences.scatter_add(1, tags, asked.to(scores))[:, 1:].long()
        return [
            [(total, number) for total, number in zip(*pair, strict=True) if number]
            for pair in zip(sums.tolist(), counts.tolist(), strict=True)
        ]
