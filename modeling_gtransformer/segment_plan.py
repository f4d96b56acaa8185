"""Plans the segments of documents that the model translates next, so that nothing is cut short."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from transformers import PreTrainedModel
from transformers.utils import logging

from .processing_gtransformer import GTransformerProcessor
from .segmentation import segment, split_long_sentence


logger = logging.get_logger(__name__)


@dataclass
class PendingDocument:
    """
    A document in progress: its sentences, or parts of long ones, and what has been translated so far.

    Attributes:
        number: its place among the documents, from 0.
        places: for every sentence, the name of its place in warnings.
        parts: word ids of each part.
        separator: what is before a part in its sentence; `None` for the first part of a sentence.
        required: strings that the translation of each part must contain.
        segments: the number of new parts in each segment.
        translations: word ids of the translations of the parts that are done.
        scores: for each of these, the sum of log-probabilities and the number of tokens.
    """

    number: int
    places: Sequence[str]
    parts: list[list[int]] = field(default_factory=list)
    separator: list[str | None] = field(default_factory=list)
    required: list[list[str]] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)
    translations: list[list[int]] = field(default_factory=list)
    scores: list[tuple[float, int]] = field(default_factory=list)

    def sentence_of(self, part: int) -> int:
        """The number of the sentence that a part belongs to, from 0."""
        return self.separator[: part + 1].count(None) - 1


@dataclass(frozen=True, eq=False)
class Segment:
    """
    Parts `start` to `stop` of a document, which go through the model at once. Those before `new` are carried over:
    they have already been translated.
    """

    document: PendingDocument
    start: int
    new: int
    stop: int
    source: list[int]

    @property
    def carried(self) -> int:
        """Number of parts that are carried over."""
        return self.new - self.start

    @property
    def prefix(self) -> list[list[int]]:
        """Translations of the parts that are carried over."""
        return self.document.translations[self.start : self.new]


class SegmentLimits:
    """Limits of a segment: at most `sentences` new sentences; fewer than `tokens` tokens of the source, and of a
    target of the usual length; and no more target tokens than the model has positions, even if every translation is
    as long as it may be."""

    def __init__(
        self,
        model: PreTrainedModel,
        processor: GTransformerProcessor,
        tokens: int,
        sentences: int | None,
        generate_arguments: dict,
    ):
        settings = {**vars(model.generation_config), **generate_arguments}
        self.factor, self.constant = (settings.get(name) or 0 for name in ("max_length_a", "max_length_b"))
        self.template, self.target_ratio = processor.sentence_tokens, processor.target_ratio
        # Maximum numbers of tokens of a sentence, and of a document where positions count from its start.
        # Other models, such as the mBART of the demo, have learned positions from the start of what they read.
        learned = model.config.max_position_embeddings
        self.positions = getattr(model.config, "max_sentence_tokens", learned)
        self.document_positions = getattr(model.config, "max_document_tokens", learned)
        self.tokens, self.sentences = min(tokens, self.document_positions), sentences

    def longest(self, words: int) -> int:
        """Positions that a sentence may need: its own, or those of its translation and the end of the document."""
        return max(words + self.template, self.token_limit(words) + self.template + 1)

    def token_limit(self, words: int) -> int:
        """Maximum number of words in the translation of a sentence of this many words."""
        return int(self.factor * words + self.constant)

    def cost(self, words: int) -> int:
        """Number of tokens that a sentence counts as: that of its longer side, or more where positions are scarcer."""
        share = self.tokens / self.document_positions
        usual = max(words, math.ceil(words * self.target_ratio)) + self.template
        return max(usual, math.ceil(self.longest(words) * share))


def name_sentences(sentences: Sequence[str], document: str) -> list[str]:
    """Names the places of the sentences of a document for warnings."""
    return [f"{document}, sentence {number}" for number in range(1, len(sentences) + 1)]


def take_documents_apart(
    documents: Sequence[list[str]],
    processor: GTransformerProcessor,
    limits: SegmentLimits,
    places: Sequence[Sequence[str]] | None,
    required: Sequence[Sequence[list[str]]] | None = None,
) -> list[PendingDocument]:
    """
    Takes documents apart before anything is translated.

    Args:
        places: for every sentence, the name of its place; by default "Document 1, sentence 1".
        required: for every sentence, what its translation must contain.
    """
    places = places or [name_sentences(document, f"Document {n}") for n, document in enumerate(documents, 1)]
    required = required or [[[]] * len(document) for document in documents]
    return [
        take_apart(document, number, processor, limits, needed, where)
        for number, (document, needed, where) in enumerate(zip(documents, required, places, strict=True))
    ]


def take_apart(
    sentences: list[str],
    number: int,
    processor: GTransformerProcessor,
    limits: SegmentLimits,
    required: Sequence[list[str]],
    places: Sequence[str],
) -> PendingDocument:
    """Takes a document apart into the word ids of its sentences, or of parts of those that are too long. What such a
    sentence requires is required of the part that contains it or, as with terms of a glossary, of the last part."""

    def fits(text: str) -> bool:
        return limits.longest(len(processor.encode_sentences([text])[0])) <= limits.positions

    document = PendingDocument(number, places)
    for position, words in enumerate(processor.encode_sentences(sentences)):
        if limits.longest(len(words)) <= limits.positions:
            document.parts.append(words)
            document.separator.append(None)
            document.required.append(required[position])
            continue
        separators, parts = zip(*split_long_sentence(sentences[position].strip(), fits), strict=True)
        logger.warning(
            f"{places[position]} has {len(words)} tokens, and it or its translation may not fit the "
            f"{limits.positions} positions of the model: it is translated in {len(parts)} parts."
        )
        document.parts += processor.encode_sentences(parts)
        document.separator += [None, *separators[1:]]
        of_parts: list[list[str]] = [[] for _ in parts]
        for needed in required[position]:
            of_parts[next((index for index, part in enumerate(parts) if needed in part), -1)].append(needed)
        document.required += of_parts
    return document


def next_segments(
    documents: list[PendingDocument], processor: GTransformerProcessor, limits: SegmentLimits, carried_sentences: int
) -> Iterator[Segment]:
    """Yields the segments that can be translated now: all segments of all documents or, where they continue each
    other, the next one of each."""
    for document in documents:
        done = len(document.translations)
        if done == len(document.parts):
            continue
        costs = [limits.cost(len(words)) for words in document.parts]
        carried = min(carried_sentences, done)
        # Carried sentences take at most half of a segment.
        while carried and sum(costs[done - carried : done]) > limits.tokens / 2:
            carried -= 1
        cuts = segment(costs[done:], limits.tokens - sum(costs[done - carried : done]), limits.sentences)
        for cut in cuts[:1] if carried_sentences else cuts:
            new, stop = done + cut.start, done + cut.stop
            source = processor.build_source(document.parts[new - carried : stop])
            yield Segment(document, new - carried, new, stop, source)
