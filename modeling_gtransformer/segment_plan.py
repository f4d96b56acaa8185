"""Plans segments, the inputs of the model, so that no source or translation is truncated."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import repeat
from typing import Any

from transformers import PreTrainedModel

from .processing_gtransformer import GTransformerProcessor
from .segmentation import segment, split_long_sentence
from .sentence import Alignment, Sentence, TranslatedDocument, TranslatedSentence


# Maximum number of positions of a sentence and of its translation, even in models without a limit, because the longest
# sentence of a batch determines the number of decoding steps.
MAX_SENTENCE_POSITIONS = 512


@dataclass(eq=False)
class Part:
    """
    A sentence, or a part of a long one, that the model translates as one sentence.

    Attributes:
        sentence: the sentence that contains the part.
        source_text, ids: text and token ids of the source.
        required: strings that the translation must contain.
        separator: text between the previous part of the sentence and this one; `None` for the first part.
        target, text: token ids and text of the translation.
        log_probability, tokens: sum over the tokens of the translation, in nats, and their number.
        missing: strings of `required` that the translation lacks.
        is_changed: whether a required string was inserted into the generated translation.
        alignment: weights between the words of source and translation.
        alternatives: texts of other hypotheses.
    """

    sentence: Sentence
    source_text: str
    ids: list[int]
    required: Sequence[str] = ()
    separator: str | None = None
    target: list[int] = field(default_factory=list)
    text: str = ""
    log_probability: float = 0.0
    tokens: int = 0
    missing: list[str] = field(default_factory=list)
    is_changed: bool = False
    alignment: Alignment | None = None
    alternatives: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Segment:
    """Parts of a document that the model translates as one input, and their source ids."""

    parts: list[Part]
    source: list[int]

    @property
    def sentences(self) -> int:
        """Number of sentences that begin in the segment."""
        return sum(part.separator is None for part in self.parts)


class SegmentLimits:
    """
    Limits of a segment: up to `sentences` sentences, and fewer than `tokens` tokens in the source and in a target of
    the usual length. The target fits the model's positions even if every translation has its maximum length.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: GTransformerProcessor,
        tokens: int,
        sentences: int | None,
        generate_arguments: dict[str, Any],
    ):
        settings = {**vars(model.generation_config), **generate_arguments}
        self.factor, self.constant = (settings.get(name) or 0 for name in ("max_length_a", "max_length_b"))
        self.template_tokens, self.target_ratio = processor.sentence_tokens, processor.target_ratio
        # A model of another class has learned document positions.
        learned = model.config.max_position_embeddings
        self.positions = min(getattr(model.config, "max_sentence_tokens", learned), MAX_SENTENCE_POSITIONS)
        self.document_positions = getattr(model.config, "max_document_tokens", learned)
        self.tokens, self.sentences = min(tokens, self.document_positions), sentences

    def max_length(self, tokens: int) -> int:
        """Returns the maximum number of positions that a sentence or its translation may take."""
        return max(tokens, self.token_limit(tokens) + 1) + self.template_tokens

    def token_limit(self, tokens: int) -> int:
        """Returns the maximum number of tokens in the translation of a sentence of `tokens` tokens."""
        return int(self.factor * tokens + self.constant)

    def cost(self, tokens: int) -> int:
        """Returns the tokens of the longer side of a sentence, or more if its maximum length takes a larger share of
        the model's positions."""
        share = self.tokens / self.document_positions
        usual = max(tokens, math.ceil(tokens * self.target_ratio)) + self.template_tokens
        return max(usual, math.ceil(self.max_length(tokens) * share))


class PlannedDocument:
    """
    The parts of every sentence of a document, none for copied sentences, and its segments.

    Raises:
        ValueError: a sentence has no tokens, or one of its characters exceeds the model's positions.
    """

    def __init__(self, sentences: Sequence[Sentence], processor: GTransformerProcessor, limits: SegmentLimits):
        self.sentences = sentences
        texts = [sentence.text for sentence in sentences if sentence.is_translated]
        encoded = iter(processor.encode_sentences(texts))
        self.parts = [
            parts_of(sentence, next(encoded), processor, limits) if sentence.is_translated else []
            for sentence in sentences
        ]
        parts = [part for of_sentence in self.parts for part in of_sentence]
        cuts = segment([limits.cost(len(part.ids)) for part in parts], limits.tokens, limits.sentences)
        self.segments = [
            Segment(parts[cut], processor.build_source([part.ids for part in parts[cut]])) for cut in cuts
        ]
        self.positions, self.processor = limits.positions, processor

    def translated(self, number: int, confidence: bool = False) -> TranslatedSentence:
        """Returns a sentence by its number, from 0, after the translation of all its parts."""
        sentence, parts = self.sentences[number], self.parts[number]
        if not parts:
            return TranslatedSentence(sentence, sentence.text.strip())
        warnings = []
        if len(parts) > 1:
            warnings.append(
                f"{sentence.place} has {sum(len(part.ids) for part in parts)} tokens. It was translated in "
                f"{len(parts)} parts, because it or its translation may exceed the {self.positions} positions of a "
                "sentence."
            )
        known = reduce(lambda text, words: text.replace(words, " "), sentence.required, sentence.text)
        if unknown := self.processor.unknown_words(known, {token for part in parts for token in part.ids}):
            warnings.append(f"{sentence.place} has words unknown to the model: {', '.join(unknown)}.")
        if missing := [words for part in parts for words in part.missing]:
            warnings.append(f"{sentence.place}: its translation lacks {', '.join(missing)}.")
        return TranslatedSentence(
            sentence,
            _joined(parts, [part.text for part in parts]),
            [token for part in parts for token in part.target],
            sum(part.log_probability for part in parts) / sum(part.tokens for part in parts) if confidence else None,
            parts[0].alignment if len(parts) == 1 else None,
            [_joined(parts, texts) for texts in zip(*(part.alternatives for part in parts), strict=True)],
            warnings,
        )

    def finished(self, confidence: bool, typical_confidence: float | None = None) -> TranslatedDocument:
        """Returns the document after the translation of all segments."""
        generated = [part for segment in self.segments for part in segment.parts if not part.is_changed]
        return TranslatedDocument(
            [self.translated(number, confidence) for number in range(len(self.sentences))],
            [each.sentences for each in self.segments if each.sentences],
            sum(part.log_probability for part in generated),
            sum(part.tokens for part in generated),
            typical_confidence,
        )


def _joined(parts: Sequence[Part], texts: Sequence[str]) -> str:
    return "".join((part.separator or "") + text for part, text in zip(parts, texts, strict=True))


def parts_of(
    sentence: Sentence, ids: list[int], processor: GTransformerProcessor, limits: SegmentLimits
) -> list[Part]:
    """Splits a sentence with these ids into parts that fit the model. Each required string belongs to the part that
    contains its source, or to the last part."""

    def fits(text: str) -> bool:
        return limits.max_length(len(processor.encode_sentences([text])[0])) <= limits.positions

    if limits.max_length(len(ids)) <= limits.positions:
        return [Part(sentence, sentence.text, ids, sentence.required)]
    separators, texts = zip(*split_long_sentence(sentence.text.strip(), fits), strict=True)
    required: list[list[str]] = [[] for _ in texts]
    left, terms = [text.lower() for text in texts], {words: iter(of) for words, of in sentence.terms.items()}
    for words in sentence.required:
        source = next(terms.get(words, iter(())), words).lower()
        index = next((index for index, text in enumerate(left) if source in text), -1)
        left[index] = left[index].replace(source, " ", 1)
        required[index].append(words)
    encoded = processor.encode_sentences(texts)
    return [*map(Part, repeat(sentence), texts, encoded, required, [None, *separators[1:]])]
