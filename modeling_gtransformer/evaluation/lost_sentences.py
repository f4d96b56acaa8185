"""Sentences lost in translation, also without alignment to the source.

The output of a document is split into sentences and aligned with the reference sentences in order, to maximize
similarity. Reference sentences without a counterpart are missing. SEGALE (arXiv 2509.17249) detects under-translation
this way; the similarity in this module is chrF. Poor or joined translations are not missing. The count for the
reference itself is the error of the counter.
"""

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from itertools import product
from pathlib import Path

from sacrebleu.metrics import CHRF

from ..plain_text import Splitter, sentencex_splitter
from ..runtime.atomic_file import atomic_file, check_outputs
from ..runtime.json_line import json_line
from ..translation_options import option
from .report import ReportOptions, markdown, write_report
from .translations import read_sentences, read_translations


# Maximum distance of an alignment from the diagonal, besides the difference of lengths.
BAND = 10
# Counts of every document.
COUNTED = {"in": "references", "out": "output", "missing": "missing"}
# Possible numbers of aligned reference and output sentences.
BEADS = ((1, 1), (2, 1), (3, 1), (1, 2), (1, 3), (1, 0), (0, 1))


@dataclass(frozen=True)
class LostSentencesOptions(ReportOptions):
    """Options of `gtransformer evaluate lost-sentences`."""

    translations: list[str] = option(
        MISSING,
        "Translations by any systems: JSON lines, or text with a blank line or <d> between documents.",
        argument=True,
    )
    reference: str = option(MISSING, "Reference translations of the documents, sentence by sentence.")
    tgt_lang: str = option(MISSING, "Code of the target language for sentencex, e.g. de.")
    reference_column: str = option("target", "Column with the references.")
    translation_column: str = option("translation", "Column with the translations.")
    output: Path | None = option(None, "JSON-lines file for every document with its missing sentences.")


def evaluate_lost_sentences(options: LostSentencesOptions) -> dict[str, dict[str, int]]:
    """
    Prints and returns the numbers of sentences in, out and missing, for the reference and every system.

    Raises:
        ValueError: a system and the reference have different numbers of documents.
    """
    check_outputs([options.json, options.output], [options.reference, *options.translations])
    references = read_sentences(options.reference, options.reference_column)
    outputs = {"reference": references}
    for file in options.translations:
        outputs[file] = read_translations(file, options.translation_column).documents
        if len(outputs[file]) != len(references):
            raise ValueError(f"{file} has {len(outputs[file])} documents, {options.reference} {len(references)}.")
    splitter = sentencex_splitter(options.tgt_lang)
    compared = {
        name: [compare(*pair, splitter) for pair in zip(references, documents, strict=True)]
        for name, documents in outputs.items()
    }
    rows, counts = [["system", "sentences in", "out", "missing"]], {}
    for name, documents in compared.items():
        count = {key: sum(len(each[part]) for each in documents) for key, part in COUNTED.items()}
        missing = f"{count['missing']} ({100 * count['missing'] / count['in']:.1f} %)"
        rows.append([name, str(count["in"]), str(count["out"]), missing])
        counts[name] = count
    print(markdown(rows))
    if options.output:
        by_document = (dict(zip(compared, each, strict=True)) for each in zip(*compared.values(), strict=True))
        with atomic_file(options.output) as lines:
            lines.writelines(map(json_line, by_document))
    write_report("evaluate lost-sentences", options, {"counts": counts})
    return counts


def compare(references: Sequence[str], translation: Sequence[str], splitter: Splitter) -> dict[str, list]:
    """Compares a document with its `references`: returns the `output` sentences, and the numbers, from 0, of `missing`
    references."""
    output = [sentence.strip() for sentence in splitter(" ".join(filter(None, translation))) if sentence.strip()]
    return {"references": [*references], "output": output, "missing": missing_sentences(references, output)}


def missing_sentences(references: Sequence[str], output: Sequence[str]) -> list[int]:
    """Returns the numbers, from 0, of the reference sentences without a counterpart in the best alignment."""
    metric, band = CHRF(), BAND + abs(len(references) - len(output))
    # Similarity of the best alignment up to each pair of places, and its last bead.
    best: dict[tuple[int, int], tuple[float, tuple[int, int]]] = {(0, 0): (0.0, (0, 0))}
    for place in product(range(len(references) + 1), range(len(output) + 1)):
        if abs(place[0] - place[1]) > band:
            continue
        for bead in BEADS:
            start = place[0] - bead[0], place[1] - bead[1]
            if start not in best or start == place:
                continue
            reference = " ".join(references[start[0] : place[0]])
            hypothesis = " ".join(output[start[1] : place[1]])
            similarity = metric.sentence_score(hypothesis, [reference]).score if reference and hypothesis else 0.0
            # Weighted by the length of aligned text, so that joining two sentences gains nothing.
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
