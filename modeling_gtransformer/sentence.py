"""Records of all layers: sentences and documents, before and after translation."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain


# Minimum difference in nats per token between typical and actual confidence for a warning.
FAR_BELOW = 0.5
# For every word of a translation, the weights of the words of its source. They sum to 1.
Alignment = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Sentence:
    """
    A sentence of a document.

    Attributes:
        text: the source.
        place: its place in warnings, such as "letter.docx, sentence 3".
        is_translated: whether the model reads and translates it, or it is copied.
        required: strings that the translation must contain.
        terms: words of the source, in order, by their required translation.
        is_aligned: whether to align words of source and translation.
    """

    text: str
    place: str = ""
    is_translated: bool = True
    required: Sequence[str] = ()
    terms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_aligned: bool = False


@dataclass(frozen=True)
class TranslatedSentence:
    """
    A sentence with its translation.

    Attributes:
        source: the sentence.
        text: its translation.
        ids: token ids of the translation; empty for copied sentences.
        confidence: mean log-probability of these tokens and `</s>`, in nats, if requested.
        alignment: weights between the words of source and translation, if requested and available.
        alternatives: texts of the requested number of other hypotheses; empty for copied sentences.
        warnings: messages about this translation, each with its place.
    """

    source: Sentence
    text: str
    ids: Sequence[int] = ()
    confidence: float | None = None
    alignment: Alignment | None = None
    alternatives: Sequence[str] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class TranslatedDocument:
    """
    The sentences of a document with their translations.

    Attributes:
        sentences: one for every source sentence, in order.
        segments: number of sentences in each segment that the model translated as one input.
        log_probability, tokens: sum over the generated tokens, in nats, and their number; 0 without scoring.
        typical_confidence: mean log-probability of tokens on texts like the training data, if available.
    """

    sentences: list[TranslatedSentence]
    segments: list[int]
    log_probability: float = 0.0
    tokens: int = 0
    typical_confidence: float | None = None

    @property
    def texts(self) -> list[str]:
        return [sentence.text for sentence in self.sentences]

    @property
    def warnings(self) -> list[str]:
        """Messages about the document, if its confidence is far below the typical confidence, and its sentences."""
        typical = self.typical_confidence
        warnings = [warning for sentence in self.sentences for warning in sentence.warnings]
        if typical is not None and self.log_probability < (typical - FAR_BELOW) * self.tokens:
            place, count = re.subn(r", sentence \d+", "", self.sentences[0].source.place)
            name = place if count else "The document"
            confidence = self.log_probability / self.tokens
            doubt = (
                f"{name}: the translation is doubtful, perhaps because the text is unlike the model's training data "
                f"(mean log-probability of a token {confidence:.2f}, typically {typical:.2f})."
            )
            return [doubt, *warnings]
        return warnings

    @classmethod
    def joined(cls, documents: Sequence["TranslatedDocument"]) -> "TranslatedDocument":
        """Concatenates documents."""
        return cls(
            [*chain.from_iterable(document.sentences for document in documents)],
            [*chain.from_iterable(document.segments for document in documents)],
            sum(document.log_probability for document in documents),
            sum(document.tokens for document in documents),
            next((document.typical_confidence for document in documents), None),
        )


def sentences_of(document: Sequence[Sentence | str], name: str) -> list[Sentence]:
    """Makes records from the texts of a document, with their numbers as places in warnings."""
    return [
        Sentence(sentence, f"{name}, sentence {number}") if isinstance(sentence, str) else sentence
        for number, sentence in enumerate(document, 1)
    ]
