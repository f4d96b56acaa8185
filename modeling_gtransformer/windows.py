"""Windows of documents: so many sentences as the model translates at once, planned so that nothing is cut short."""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from transformers import PreTrainedModel
from transformers.utils import logging

from .processing_gtransformer import GTransformerProcessor
from .segmentation import segment, sentence_cost, split_long_sentence


logger = logging.get_logger(__name__)


@dataclass
class Document:
    """A document on its way: its sentences, or parts of them, and what has been translated so far."""

    number: int
    parts: list[list[int]]  # word ids
    glue: list[str | None]  # what stands before a part in its sentence; None for the first part
    required: list[list[str]]  # what the translation of a part must contain
    windows: list[int] = field(default_factory=list)  # parts that were new in each window
    translations: list[list[int]] = field(default_factory=list)
    scores: list[tuple[float, int]] = field(default_factory=list)  # sum of log-probabilities, tokens


@dataclass(frozen=True)
class Window:
    """Parts `start` to `stop` of a document, of which those before `new` are translated already."""

    document: int
    start: int
    new: int
    stop: int
    source: list[int]


class Capacity:
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


def take_apart(
    sentences: list[str],
    number: int,
    processor: GTransformerProcessor,
    capacity: Capacity,
    required: Sequence[list[str]],
) -> Document:
    """The word ids of a document's sentences; too long ones in parts. What is required of such a sentence is required
    of the part that has it or, a term of a glossary, of its last part."""

    def fits(text: str) -> bool:
        return capacity.longest(len(processor.encode_sentences([text])[0])) <= capacity.positions

    document = Document(number, [], [], [])
    for position, words in enumerate(processor.encode_sentences(sentences), 1):
        if capacity.longest(len(words)) <= capacity.positions:
            document.parts.append(words)
            document.glue.append(None)
            document.required.append(required[position - 1])
            continue
        gaps, parts = zip(*split_long_sentence(sentences[position - 1].strip(), fits), strict=True)
        logger.warning(
            f"Document {number}, sentence {position} has {len(words)} tokens, and its translation may have more than "
            f"fit the {capacity.positions} positions of the model: it is translated in {len(parts)} parts."
        )
        document.parts += processor.encode_sentences(parts)
        document.glue += [None, *gaps[1:]]
        of_parts: list[list[str]] = [[] for _ in parts]
        for needed in required[position - 1]:
            of_parts[next((index for index, part in enumerate(parts) if needed in part), -1)].append(needed)
        document.required += of_parts
    return document


def next_windows(
    state: list[Document], processor: GTransformerProcessor, capacity: Capacity, carried_sentences: int
) -> Iterator[Window]:
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
            yield Window(index, new - carried, new, stop, source)
