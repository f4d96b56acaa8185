"""Aligned words of sentences and translations that are given."""

from modeling_gtransformer.segment_plan import PlannedDocument, SegmentLimits
from modeling_gtransformer.segment_translation import SegmentTranslator
from modeling_gtransformer.sentence import Sentence
from modeling_gtransformer.word_alignment import align_parts


def align_words(model, processor, pairs):
    """The alignments that a model gives to pairs of a sentence and its translation, each a document of its own."""
    limits = SegmentLimits(model, processor, 512, 1, {})
    documents = [PlannedDocument([Sentence(source, is_aligned=True)], processor, limits) for source, _ in pairs]
    segments = [document.segments[0] for document in documents]
    encoded = SegmentTranslator(model, processor, limits, False, {}).encode(segments)
    for segment, (_, translation) in zip(segments, pairs, strict=True):
        [segment.parts[0].target] = processor.encode_sentences([translation], True) if translation else [[]]
        segment.parts[0].text = translation
    places = [(segment.parts[0], row, 1) for row, segment in enumerate(segments)]
    align_parts(model, processor, places, encoded.encoder_outputs)
    return [document.parts[0][0].alignment for document in documents]
