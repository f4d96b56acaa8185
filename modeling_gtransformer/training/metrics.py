"""BLEU and chrF of sentence-aligned documents, and whether the difference of two systems is significant.

Scores are sacrebleu's, with its signatures. What a "document" is differs between papers, so the score says it: d-BLEU
is computed per whole document, and per segment of a document where the translation was made in segments (which is what
the paper reports, with segments of at most 512 tokens).
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import datasets
import evaluate
import numpy as np
from sacrebleu.metrics import BLEU, CHRF


Documents = Sequence[Sequence[str]]


@dataclass(frozen=True)
class View:
    """One way of scoring documents: the metric, and the strings that it compares."""

    scorer: Any
    unit: str
    strings_of: Callable[[Sequence[str], Sequence[int]], list[str]]  # (sentences, sizes of the segments) -> strings


def _sentences(sentences: Sequence[str], _: Sequence[int]) -> list[str]:
    return list(sentences)


def _segments(sentences: Sequence[str], sizes: Sequence[int]) -> list[str]:
    borders = np.cumsum([0, *sizes])
    return [" ".join(sentences[a:b]) for a, b in itertools.pairwise(borders)]


def _document(sentences: Sequence[str], _: Sequence[int]) -> list[str]:
    return [" ".join(sentences)]


def _views(tokenize: str, with_segments: bool) -> Iterator[tuple[str, View]]:
    yield "s-BLEU", View(BLEU(tokenize=tokenize), "sentences", _sentences)
    if with_segments:
        yield "d-BLEU/segment", View(BLEU(tokenize=tokenize), "segments of documents", _segments)
    yield "d-BLEU/document", View(BLEU(tokenize=tokenize), "whole documents", _document)
    yield "chrF", View(CHRF(), "sentences", _sentences)


def score_documents(
    hypotheses: Documents,
    references: Documents,
    segments: Sequence[Sequence[int]] | None = None,
    tokenize: str = "13a",
) -> dict[str, dict[str, Any]]:
    """
    Scores of sentence-aligned documents.

    Args:
        hypotheses: documents as lists of sentences.
        references: likewise, with as many sentences each.
        segments: numbers of sentences in the segments of every document; without them there is no d-BLEU per segment.
        tokenize: sacrebleu's tokenizer for BLEU.

    Returns:
        By name (s-BLEU, d-BLEU/segment, d-BLEU/document, chrF): `score` in points of 100, `unit` (what was compared as
        one string), `units` (how many of them) and sacrebleu's `signature`.

    Raises:
        ValueError: the documents are not aligned.
    """
    sizes = _checked(hypotheses, references, segments)
    scores = {}
    for name, view in _views(tokenize, segments is not None):
        hypothesis, reference = (_strings(view, documents, sizes) for documents in (hypotheses, references))
        score = view.scorer.corpus_score(hypothesis, [reference]).score
        signature = view.scorer.get_signature().format()
        scores[name] = {"score": score, "unit": view.unit, "units": len(reference), "signature": signature}
    return scores


def compare_systems(
    hypotheses: Documents,
    baseline: Documents,
    references: Documents,
    segments: Sequence[Sequence[int]] | None = None,
    tokenize: str = "13a",
    trials: int = 2000,
    seed: int = 12345,
) -> dict[str, dict[str, Any]]:
    """
    Significance of the difference of two systems. Sentences of a document are not independent, so whole documents are
    drawn and swapped.

    Args:
        trials: of each of the two tests.

    Returns:
        By name of the score: `difference` (system minus baseline), `p_value` (two-sided approximate randomization: the
        outputs of the two systems for a document are swapped at random) and `interval` (95 % of the difference by
        paired bootstrap over documents).
    """
    sizes = _checked(hypotheses, references, segments)
    _checked(baseline, references, segments)
    rng = np.random.default_rng(seed)
    swapped = rng.integers(2, size=(trials, len(references)))
    drawn = rng.multinomial(len(references), np.full(len(references), 1 / len(references)), size=trials)
    results = {}
    for name, view in _views(tokenize, segments is not None):
        ours, theirs = (_statistics(view, documents, references, sizes) for documents in (hypotheses, baseline))

        def difference(a: np.ndarray, b: np.ndarray, score=view.scorer._compute_score_from_stats) -> float:
            return score(a.tolist()).score - score(b.tolist()).score

        observed = difference(ours.sum(0), theirs.sum(0))
        shuffled = [
            difference(a, b)
            for a, b in zip(
                (1 - swapped) @ ours + swapped @ theirs, swapped @ ours + (1 - swapped) @ theirs, strict=True
            )
        ]
        bootstrap = [difference(a, b) for a, b in zip(drawn @ ours, drawn @ theirs, strict=True)]
        # A trial may equal the observed difference up to rounding, and the observed one counts as a trial.
        extreme = np.sum(np.abs(shuffled) >= abs(observed) - 1e-9)
        results[name] = {
            "difference": observed,
            "p_value": float((extreme + 1) / (trials + 1)),
            "interval": np.percentile(bootstrap, [2.5, 97.5]).tolist(),
        }
    return results


def _strings(view: View, documents: Documents, sizes: Sequence[Sequence[int]]) -> list[str]:
    return [text for document, size in zip(documents, sizes, strict=True) for text in view.strings_of(document, size)]


def _statistics(
    view: View, hypotheses: Documents, references: Documents, sizes: Sequence[Sequence[int]]
) -> np.ndarray:
    """Sufficient statistics of the score, summed over each document: `(documents, statistics)`."""
    return np.array(
        [
            np.sum(
                view.scorer._extract_corpus_statistics(_strings(view, [h], [s]), [_strings(view, [r], [s])]), axis=0
            )
            for h, r, s in zip(hypotheses, references, sizes, strict=True)
        ]
    )


def _checked(
    hypotheses: Documents, references: Documents, segments: Sequence[Sequence[int]] | None
) -> Sequence[Sequence[int]]:
    """The sizes of the segments, one per document if none are given, after checking that all is aligned."""
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} documents to score, but {len(references)} reference documents.")
    sizes = [[len(reference)] for reference in references] if segments is None else segments
    for number, (hypothesis, reference, size) in enumerate(zip(hypotheses, references, sizes, strict=True), 1):
        if not len(hypothesis) == len(reference) == sum(size):
            raise ValueError(
                f"Document {number} has {len(hypothesis)} sentences, its reference {len(reference)}"
                + (f", its segments {sum(size)}." if segments is not None else ".")
            )
    return sizes


class DocumentTranslationMetric(evaluate.Metric):
    """The scores as a metric of the `evaluate` library, which loads this file from its path, without network:
    `evaluate.load(metrics.__file__).compute(predictions=documents, references=documents)`."""

    def _info(self) -> evaluate.MetricInfo:
        documents = datasets.Sequence(datasets.Value("string"))
        return evaluate.MetricInfo(
            description=score_documents.__doc__,
            citation="",
            features=datasets.Features({"predictions": documents, "references": documents}),
        )

    def _compute(self, predictions: Documents, references: Documents, **kwargs) -> dict[str, dict[str, Any]]:
        return score_documents(predictions, references, **kwargs)
