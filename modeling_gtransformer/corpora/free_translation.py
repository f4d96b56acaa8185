"""Free translation: the model chooses the number of sentences, like the paper's Transformer on documents.

Only d-BLEU can score such documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedModel
from transformers.utils import logging
from transformers.utils.logging import tqdm

from ..document_translation import batch_tokens
from ..processing_gtransformer import GTransformerProcessor
from ..segment_plan import PlannedDocument, Segment, SegmentLimits
from ..segment_translation import SegmentTranslator
from ..segmentation import longest_first_batches
from ..sentence import Sentence, sentences_of


logger = logging.get_logger(__name__)


@dataclass
class FreeTranslation:
    """
    A freely translated document.

    Attributes:
        segments: numbers of source sentences translated together.
        translations: output sentences of each segment; one empty sentence without output.
        warnings: places of segments without an end.
    """

    segments: list[int] = field(default_factory=list)
    translations: list[list[str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, sentences: int, written: Sequence[str]) -> None:
        """Adds the output for a segment. A segment without the start of a sentence continues the previous one."""
        if sentences:
            self.segments.append(sentences)
            self.translations.append([])
        self.translations[-1] = [each for each in (*self.translations[-1], *written) if each] or [""]


def translate_freely(
    model: PreTrainedModel,
    processor: GTransformerProcessor,
    documents: Sequence[Sequence[Sentence | str]],
    segment_tokens: int = 512,
    max_tokens: int | None = None,
    segment_sentences: int | None = None,
    progress: bool = False,
    **generate_arguments: Any,
) -> list[FreeTranslation]:
    """
    Translates documents in the segments of [`translate_documents`], with its arguments and length limits, but the
    model chooses the number of sentences of each segment. Warnings name segments without an end.

    Raises:
        ValueError: the model has no token that ends a document.
    """
    end = processor.target_template.end
    if end is None:
        raise ValueError(
            "The model has no token that ends a document, only EOS of a sentence: it cannot decode freely."
        )
    arguments = {**generate_arguments, "align_sentences": False}
    limits = SegmentLimits(model, processor, segment_tokens, segment_sentences, arguments)
    translator = SegmentTranslator(model, processor, confidence=False, generate_arguments=arguments)
    planned = [
        PlannedDocument(sentences_of(document, f"Document {number}"), processor, limits)
        for number, document in enumerate(documents, 1)
    ]
    segments = [segment for document in planned for segment in document.segments]
    written: dict[Segment, list[str]] = {}
    endless: set[Segment] = set()
    sizes = [len(segment.source) for segment in segments]
    max_tokens = max_tokens or batch_tokens(model, generate_arguments.get("num_beams"))
    with (
        translator.packed_weights(),
        tqdm(total=len(segments), desc="Translating", unit=" segments", disable=not progress) as bar,
    ):
        for batch in longest_first_batches(sizes, max_tokens):
            of_batch = [segments[index] for index in batch]
            rows = translator.generate(translator.encode(of_batch)).tolist()
            endless |= {segment for segment, row in zip(of_batch, rows, strict=True) if end not in row}
            written |= zip(of_batch, processor.batch_decode_sentences(rows), strict=True)
            bar.update(len(batch))
    translations = [FreeTranslation() for _ in documents]
    for document, translation in zip(planned, translations, strict=True):
        for segment in document.segments:
            translation.add(segment.sentences, written[segment])
            if segment in endless:
                place = segment.parts[0].sentence.place
                translation.warnings.append(f"{place}: the translation reached the maximum length without an end.")
                logger.warning(translation.warnings[-1])
    return translations
