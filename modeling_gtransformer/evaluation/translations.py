"""Translated documents of any system: JSON lines, aligned or decoded freely, or text."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..corpora.corpus import DOCUMENT_LINE, read_documents, read_lines
from ..corpora.corpus_files import has_columns
from ..segmentation import segment
from .metrics import compare_scores, document_statistics


@dataclass(frozen=True)
class SentenceCounts:
    """
    Counts of sentences of a translation.

    Attributes:
        source: number of source sentences.
        written: number of output sentences with text.
        missing: number of sentences that segments lack. In aligned translations, these are sentences without text.
            Otherwise, it is a lower bound, because a split sentence may hide a lost one.
    """

    source: int
    written: int
    missing: int

    def __str__(self) -> str:
        return f"{self.source} sentences in, {self.written} out, {self.missing} missing"


@dataclass(frozen=True)
class Translations:
    """
    Translations of documents by a system.

    Attributes:
        documents: lists of sentences or, if not `aligned`, lists of segments, one string each.
        segments: numbers of source sentences in the segments of every document; `None` if unknown.
        aligned: whether every source sentence has one sentence.
        counts: sentences in, out and missing.
    """

    documents: list[list[str]]
    segments: list[list[int]] | None
    aligned: bool
    counts: SentenceCounts

    def cut(self, segments: list[list[int]]) -> "Translations":
        """Returns the translations in other segments. Freely decoded ones keep their segments."""
        return replace(self, segments=segments) if self.aligned else self


def read_translations(
    file: str | Path, column: str = "translation", plain: Callable[[str], str] = str
) -> Translations:
    """
    Reads the translations of a file, in a format of [`read_sentences`].

    Args:
        column: column with the list of sentences.
        plain: converts a sentence to plain text, for example by detokenization.

    Raises:
        ValueError: the file has problems, or only some of its documents were decoded freely.
    """
    records = _records(str(file), column, blank_ok=True)
    sentences = [list(map(plain, record[column])) for record in records]
    segments = _field(records, "segments", file)
    translated = _field(records, "translated_segments", file)
    if translated and not segments:
        raise ValueError(f"{file}: freely decoded documents lack the field 'segments': translate them again.")
    written = translated or segments or [[len(document)] for document in sentences]
    cut = [_cut(*each, f"{file}, document {n}") for n, each in enumerate(zip(sentences, written, strict=True), 1)]
    return Translations(
        sentences if translated is None else [[" ".join(segment) for segment in document] for document in cut],
        segments,
        translated is None,
        _count(segments or written, cut),
    )


def in_common_segments(*translations: Translations) -> list[Translations]:
    """
    Returns translations of one corpus in common segments: those of a freely decoding system, if there is one. Several
    such systems keep their own.
    """
    [segments, *_] = [each.segments for each in translations if not each.aligned] or [translations[0].segments]
    return [each.cut(segments) if segments else each for each in translations]


def compare_translations(
    ours: Sequence[Translations], theirs: Sequence[Translations], references: list[list[str]], tokenize: str = "13a"
) -> dict[str, dict[str, Any]]:
    """
    Compares two systems, each with a translation per seed, by every score of both; per segment only if their segments
    are the same.
    """
    one, other = (
        [document_statistics(t.documents, references, t.segments, tokenize, t.aligned) for t in side]
        for side in (ours, theirs)
    )
    if [each.segments for each in ours] != [each.segments for each in theirs]:
        for statistics in one:
            statistics.pop("d-BLEU/segment", None)
    return compare_scores(one, other, tokenize)


def read_sentences(file: str, column: str) -> list[list[str]]:
    """
    Reads the sentences of documents.

    Args:
        file: JSON lines or a table with a document per record, or text with a sentence per line and `<d>` lines
            between documents. In text without `<d>`, blank lines separate documents.
        column: column with the list of sentences; ignored for text.

    Raises:
        ValueError: lists the problems of the file.
    """
    return [record[column] for record in _records(file, column, blank_ok=False)]


def read_aligned(file: str, column: str, references: list[list[str]]) -> list[list[str]]:
    """
    Reads translations with one sentence for every reference sentence.

    Raises:
        ValueError: they have other documents or sentences, or were decoded freely.
    """
    translations = read_translations(file, column)
    if not translations.aligned or list(map(len, translations.documents)) != list(map(len, references)):
        raise ValueError(
            f"{file} does not have one sentence for every sentence of the references, document by document."
        )
    return translations.documents


def _records(file: str, column: str, blank_ok: bool) -> list[dict[str, Any]]:
    if not has_columns(file) and Path(file).is_file():
        problems: list[str] = []
        lines = [line for _, line in read_lines(file, problems)]
        if problems:
            raise ValueError(problems[0])
        if DOCUMENT_LINE not in lines:
            return [{column: list(document)} for has_text, document in itertools.groupby(lines, bool) if has_text]
    return [document.record for document in read_documents([file], [column], blank_ok)]


def segment_sizes(
    processor, sources: Sequence[list[str]], targets: Sequence[list[str]], segment_tokens: int
) -> list[list[int]]:
    """Cuts documents as in training and in the paper, by the longer side of every sentence, and returns the numbers of
    sentences in their segments.

    Raises:
        ValueError: the two sides have different documents or sentences.
    """
    if list(map(len, sources)) != list(map(len, targets)):
        raise ValueError(
            f"{len(sources)} source documents of {sum(map(len, sources))} sentences and {len(targets)} target "
            f"documents of {sum(map(len, targets))} are not parallel."
        )
    sizes = []
    for source, target in zip(sources, targets, strict=True):
        *_, costs = encode_pairs(processor, source, target)
        sizes.append([part.stop - part.start for part in segment(costs, segment_tokens)])
    return sizes


def encode_pairs(
    processor, source: list[str], target: list[str]
) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """Encodes the sentences of both sides to token ids, with the number of tokens of each pair in a segment."""
    ids = processor.encode_sentences(source), processor.encode_sentences(target, is_target=True)
    return *ids, [max(len(s), len(t)) + processor.sentence_tokens for s, t in zip(*ids, strict=True)]


def _field(records: list[dict[str, Any]], name: str, file: str | Path) -> list[list[int]] | None:
    """Reads a field of all documents; `None` if any lacks it."""
    present = [name in record for record in records]
    if name == "translated_segments" and any(present) != all(present):
        raise ValueError(
            f"{file}: only some documents were decoded freely: translate all of them with the same options."
        )
    if not all(present):
        return None
    fields = [record[name] for record in records]
    for number, field in enumerate(fields, 1):
        if not isinstance(field, list) or not all(type(size) is int and size >= 0 for size in field):
            raise ValueError(f"{file}, document {number}: {name} must be numbers of sentences, not {field!r}.")
    return fields


def _cut(sentences: list[str], sizes: list[int], name: str) -> list[list[str]]:
    """Cuts a document into segments. Raises `ValueError`, with its name, if its number of sentences differs."""
    if sum(sizes) != len(sentences):
        raise ValueError(f"{name} has {len(sentences)} sentences, its segments {sum(sizes)}: translate it again.")
    rest = iter(sentences)
    return [list(itertools.islice(rest, size)) for size in sizes]


def _count(sizes: list[list[int]], documents: list[list[list[str]]]) -> SentenceCounts:
    source = list(itertools.chain(*sizes))
    written = [sum(bool(sentence.strip()) for sentence in segment) for document in documents for segment in document]
    missing = [max(size - found, 0) for size, found in zip(source, written, strict=True)]
    return SentenceCounts(sum(source), sum(written), sum(missing))
