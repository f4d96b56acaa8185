"""Finds sentences that a translation has lost, although output sentences are not aligned with source sentences.

The output is cut into sentences and aligned with the reference sentences, in order, so that aligned sentences are as
similar as possible (chrF). A sentence is missing if its reference is aligned with nothing. Badly
translated sentences are not missing, and neither are joined ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from sacrebleu.metrics import CHRF

from ..plain_text import Splitter


# Numbers of reference and output sentences that may belong together.
BEADS = ((1, 1), (2, 1), (3, 1), (1, 2), (1, 3), (1, 0), (0, 1))


@dataclass(frozen=True)
class Paragraph:
    """
    A translated paragraph.

    Attributes:
        references: reference translation of each of its sentences.
        output: the sentences that a system wrote.
        missing: numbers, from 0, of the sentences that the output lacks.
    """

    references: list[str]
    output: list[str]
    missing: list[int]


def compare_paragraph(references: Sequence[str], text: str, splitter: Splitter) -> Paragraph:
    """Finds out which sentences a translated text has lost."""
    output = [sentence.strip() for sentence in splitter(text) if sentence.strip()]
    return Paragraph(list(references), output, missing_sentences(references, output))


def missing_sentences(references: Sequence[str], output: Sequence[str]) -> list[int]:
    """Finds the reference sentences, by number from 0, that the best alignment pairs with nothing."""
    metric = CHRF()
    # Similarity of the best alignment up to each pair of places, and the bead that leads there.
    best: dict[tuple[int, int], tuple[float, tuple[int, int]]] = {(0, 0): (0.0, (0, 0))}
    for place in product(range(len(references) + 1), range(len(output) + 1)):
        for bead in BEADS:
            start = place[0] - bead[0], place[1] - bead[1]
            if start not in best or start == place:
                continue
            reference = " ".join(references[start[0] : place[0]])
            hypothesis = " ".join(output[start[1] : place[1]])
            similarity = metric.sentence_score(hypothesis, [reference]).score if reference and hypothesis else 0.0
            # Weighted by the length of aligned text, so that two sentences count as much apart as joined.
            total = best[start][0] + similarity * (len(reference) + len(hypothesis))
            if place not in best or total > best[place][0]:
                best[place] = total, bead
    missing, place = [], (len(references), len(output))
    while place != (0, 0):
        bead = best[place][1]
        place = place[0] - bead[0], place[1] - bead[1]
        if bead == (1, 0):
            missing.append(place[0])
    return missing[::-1]
