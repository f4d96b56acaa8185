"""Translates documents of any length: cuts them into segments, and translates batches of segments."""

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

from transformers import PreTrainedModel
from transformers.utils.logging import tqdm

from .processing_gtransformer import GTransformerProcessor
from .segment_plan import Part, PlannedDocument, Segment, SegmentLimits
from .segment_translation import SegmentTranslator
from .segmentation import longest_first_batches
from .sentence import Sentence, TranslatedDocument, TranslatedSentence, sentences_of
from .translation_options import TranslationOptions


Result = TypeVar("Result")


def batch_tokens(model: PreTrainedModel, num_beams: int | None = None) -> int:
    """Returns the source tokens of a batch: 16,384 divided by the number of beams, the model's own by default, but at
    least 4,096, because small batches are slow."""
    return max(16_384 // (num_beams or model.generation_config.num_beams or 1), 4_096)


def result_of(steps: Generator[int, None, Result]) -> Result:
    """Runs all steps and returns their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def translate_documents(
    model: PreTrainedModel,
    processor: GTransformerProcessor,
    documents: Sequence[Sequence[Sentence | str]],
    **options: Any,
) -> list[TranslatedDocument]:
    """Runs [`translate_in_steps`] to the end and returns its result."""
    return result_of(translate_in_steps(model, processor, documents, **options))


def translate_in_steps(
    model: PreTrainedModel,
    processor: GTransformerProcessor,
    documents: Sequence[Sequence[Sentence | str]],
    segment_tokens: int = 512,
    max_tokens: int | None = None,
    segment_sentences: int | None = None,
    confidence: bool = False,
    alternatives: int = 0,
    on_sentence: Callable[[TranslatedSentence], None] | None = None,
    progress: bool = False,
    **generate_arguments: Any,
) -> Generator[int, None, list[TranslatedDocument]]:
    """
    Translates documents, a batch of segments per step.

    Segments end at sentence boundaries, have fewer than `segment_tokens` source tokens, and leave space for their
    translations. The model translates a longer sentence in parts, with a warning.

    Args:
        documents: lists of sentences, or of their texts.
        on_sentence: called with every sentence in order, as soon as its translation is final. A step then translates
            one segment.
        progress: whether to show a progress bar.
        generate_arguments: arguments of `model.generate`. [`TranslationOptions`] documents the remaining arguments.

    Yields:
        Number of sentences that begin in the batch.

    Returns:
        The translated documents.

    Raises:
        ValueError: an option is out of bounds, or the arguments of `generate` request unaligned or several outputs.
    """
    if generate_arguments.get("align_sentences") is False:
        raise ValueError("align_sentences=False is an argument of generate() only: documents are aligned by sentence.")
    for name, only in (("num_return_sequences", 1), ("return_dict_in_generate", False)):
        if generate_arguments.get(name, only) not in (None, only):
            raise ValueError(f"{name} is an argument of generate() only: a document has one translation, as text.")
    num_beams = generate_arguments.get("num_beams")
    if alternatives:
        num_beams = max(num_beams or model.generation_config.num_beams or 1, alternatives + 1)
        several = {"num_return_sequences": alternatives + 1, "parallel_sentences": False}
        generate_arguments |= {"num_beams": num_beams, **several}
    TranslationOptions(
        segment_tokens=segment_tokens,
        max_tokens=max_tokens,
        segment_sentences=segment_sentences,
        num_beams=num_beams,
        alternatives=alternatives,
    )
    max_tokens = max_tokens or batch_tokens(model, num_beams)
    limits = SegmentLimits(model, processor, segment_tokens, segment_sentences, generate_arguments)
    records = [sentences_of(document, f"Document {number}") for number, document in enumerate(documents, 1)]
    planned = [PlannedDocument(document, processor, limits) for document in records]
    typical = processor.typical_confidence
    is_scored = confidence or typical is not None
    translator = SegmentTranslator(model, processor, is_scored, generate_arguments)
    if on_sentence is None:
        steps = _in_batches(planned, translator, max_tokens)
    else:
        steps = chain.from_iterable(_streamed(document, translator, on_sentence) for document in planned)
    total = sum(segment.sentences for document in planned for segment in document.segments)
    bar = tqdm(total=total, desc="Translating", unit=" sentences", disable=not progress)
    with translator.packed_weights(), bar:
        for begun in steps:
            bar.update(begun)
            yield begun
    return [document.finished(confidence, typical) for document in planned]


def _in_batches(planned: Sequence[PlannedDocument], translator: SegmentTranslator, max_tokens: int) -> Iterator[int]:
    """Translates the segments of all documents in batches, longest first."""
    segments = [segment for document in planned for segment in document.segments]
    for batch in longest_first_batches([len(segment.source) for segment in segments], max_tokens):
        rows: list[Segment] = [segments[index] for index in batch]
        translator.translate(rows)
        yield sum(segment.sentences for segment in rows)


def _streamed(
    document: PlannedDocument, translator: SegmentTranslator, on_sentence: Callable[[TranslatedSentence], None]
) -> Iterator[int]:
    """Translates the segments of a document one by one. Reports each sentence once, after its last part."""
    reported = 0

    def report(done: Part | None = None) -> None:
        nonlocal reported
        while reported < len(document.parts):
            parts = document.parts[reported]
            if parts and parts[-1] is not done:
                break
            on_sentence(document.translated(reported))
            reported += 1

    report()  # copied sentences before the first segment
    for segment in document.segments:
        translator.stream(segment, report)
        yield segment.sentences
