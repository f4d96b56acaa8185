"""Free translation: the model chooses the number of sentences, like the paper's Transformer on documents. Only d-BLEU
can score such documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel
from transformers.utils import logging
from transformers.utils.logging import tqdm

from ..document_translation import batch_tokens
from ..processing_gtransformer import GTransformerProcessor
from ..segment_plan import PlannedDocument, Segment, SegmentLimits
from ..segment_translation import SegmentTranslator
from ..segmentation import longest_first_batches
from ..sentence import sentences_of
from ..translation_options import TranslationOptions


logger = logging.get_logger(__name__)


@dataclass(frozen=True)
class FreeTranslation:
    """
    A freely translated document.

    Attributes:
        segments: numbers of source sentences that the model translated at once.
        translations: the sentences that the model wrote for each segment; one empty sentence if it wrote none.
    """

    segments: list[int]
    translations: list[list[str]]


def translate_freely(
    model: PreTrainedModel,
    processor: GTransformerProcessor,
    documents: Sequence[list[str]],
    segment_tokens: int = 512,
    max_tokens: int | None = None,
    segment_sentences: int | None = None,
    progress: bool = False,
    **generate_arguments: Any,
) -> list[FreeTranslation]:
    """
    Translates documents in the segments of [`translate_documents`], with the same arguments, but the model chooses how
    many sentences it writes for each segment. A segment has no more tokens than it could have with aligned sentences;
    a warning counts the segments that reach this limit without an end.

    Raises:
        ValueError: a setting is out of its range, or the model has no token that ends a document.
    """
    num_beams = generate_arguments.get("num_beams")
    TranslationOptions(
        segment_tokens=segment_tokens,
        max_tokens=max_tokens,
        segment_sentences=segment_sentences,
        num_beams=num_beams,
    )
    if processor.target_template.end is None:
        raise ValueError(
            "This model has no token that ends a document, only the </s> of a sentence: it cannot decode freely."
        )
    arguments = {**generate_arguments, "align_sentences": False}
    limits = SegmentLimits(model, processor, segment_tokens, segment_sentences, arguments)
    translator = SegmentTranslator(model, processor, limits, confidence=False, generate_arguments=arguments)
    planned = [
        PlannedDocument(sentences_of(document, f"Document {number}"), processor, limits)
        for number, document in enumerate(documents, 1)
    ]
    segments = [(number, segment) for number, document in enumerate(planned) for segment in document.segments]
    max_tokens = max_tokens or batch_tokens(num_beams or model.generation_config.num_beams or 1)
    written = _write([segment for _, segment in segments], translator, max_tokens, progress)
    translations = [FreeTranslation([], []) for _ in documents]
    for index, (number, segment) in enumerate(segments):
        _note(segment, written[index], translations[number])
    return translations


def _write(
    segments: list[Segment], translator: SegmentTranslator, max_tokens: int, progress: bool
) -> dict[int, list[str]]:
    """Decodes segments, by their numbers; a warning counts those that did not come to an end."""
    written: dict[int, list[str]] = {}
    endless, processor = 0, translator.processor
    with (
        translator.packed_weights(),
        tqdm(total=len(segments), desc="Translating", unit=" segments", disable=not progress) as bar,
    ):
        for batch in longest_first_batches([len(segment.source) for segment in segments], max_tokens):
            rows_of_batch = [segments[index] for index in batch]
            rows = translator.generate(rows_of_batch, translator.encode(rows_of_batch))
            endless += sum(processor.target_template.end not in row for row in rows)
            written |= zip(batch, processor.batch_decode_sentences(rows), strict=True)
            bar.update(len(batch))
    if endless:
        logger.warning(
            f"{endless} of {len(segments)} segments did not come to an end: they are cut off where aligned ones "
            "would have to end."
        )
    return written


def _note(segment: Segment, sentences: list[str], translation: FreeTranslation) -> None:
    """Adds the output for a segment; a segment that begins no sentence continues the segment before it."""
    if segment.sentences:
        translation.segments.append(segment.sentences)
        translation.translations.append([])
    written = [sentence for sentence in (*translation.translations[-1], *sentences) if sentence]
    translation.translations[-1] = written or [""]
