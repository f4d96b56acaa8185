"""The record that goes through all layers: a sentence to translate, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain


# For every word of a translation, the weights of the words of its source; they sum to 1.
Alignment = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Sentence:
    """
    A sentence of a document.

    Attributes:
        text: the source.
        place: its place in warnings, such as "letter.docx, sentence 3".
        is_translated: whether the model translates it; if not, it is copied and gives no context.
        required: strings that the translation must contain.
        is_aligned: whether to align its words with those of the translation.
    """

    text: str
    place: str = ""
    is_translated: bool = True
    required: Sequence[str] = ()
    is_aligned: bool = False


@dataclass(frozen=True)
class TranslatedSentence:
    """
    A sentence with its translation.

    Attributes:
        source: the sentence.
        text: its translation.
        ids: token ids of the translation; none if the sentence was copied.
        confidence: mean log-probability of these tokens and `</s>`, in nats, if it was asked for.
        alignment: weights between the words of both, if they were asked for and there are words.
        alternatives: texts of other hypotheses, as many as were asked for, or none if the sentence was copied.
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
    """

    sentences: list[TranslatedSentence]
    segments: list[int]

    @property
    def texts(self) -> list[str]:
        return [sentence.text for sentence in self.sentences]

    @property
    def warnings(self) -> list[str]:
        return [warning for sentence in self.sentences for warning in sentence.warnings]

    @classmethod
    def joined(cls, documents: Sequence["TranslatedDocument"]) -> "TranslatedDocument":
        """The documents of a file as one."""
        return cls(
            [*chain.from_iterable(document.sentences for document in documents)],
            [*chain.from_iterable(document.segments for document in documents)],
        )


def sentences_of(document: Sequence[Sentence | str], name: str) -> list[Sentence]:
    """The records of a document. Texts are translated, with nothing required; warnings name them by their numbers."""
    return [
        Sentence(sentence, f"{name}, sentence {number}") if isinstance(sentence, str) else sentence
        for number, sentence in enumerate(document, 1)
    ]
