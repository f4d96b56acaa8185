"""Formality of German translations: formal (*Sie*) or informal (*du*), and consistency within documents.

Only unambiguous spellings count. *Sie*, *Ihnen* and *Ihr* count after another word, where only formal address is
capitalized. *du*, *dich* and *euch* count anywhere. *ihr* never counts, because it also means "her".
"""

import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from typing import Any

import numpy as np

from ..runtime.atomic_file import check_outputs
from ..translation_options import option
from .metrics import SEED, compare_statistics, ratio, ratio_interval
from .report import ReportOptions, write_report
from .translations import read_aligned, read_sentences


SHARES = {"mixed": "documents that mix them", "as_reference": "sentences as in the reference"}
FORMS = {
    "formal": re.compile(r"(?<=[\w,;)] )(?:Sie|Ihnen|Ihr|Ihre[mnrs]?)\b"),
    "informal": re.compile(r"\b(?:du|dich|dir|dein|deine[mnrs]?|euch|euer|eure[mnrs]?)\b", re.IGNORECASE),
}


@dataclass(frozen=True)
class FormalityOptions(ReportOptions):
    """Options of `gtransformer evaluate formality`."""

    translations: list[str] = option(
        MISSING,
        "German translations with the sentences of the references, one file per seed.",
        argument=True,
    )
    reference: str = option(MISSING, "Reference translations of the documents.")
    baseline: list[str] = option([], "Translations by a system to compare with, one file per seed.")
    reference_column: str = option("target", "Column with the references.")
    translation_column: str = option("translation", "Column with the translations.")


def evaluate_formality(options: FormalityOptions) -> dict[str, Any]:
    """
    Prints and returns the forms of address of the references and of every file (`scores`). With a baseline,
    `differences` compares two systems: all translations with all of the baseline, one file per seed.

    Raises:
        ValueError: a file does not have the sentences of the references.
    """
    files = [*options.translations, *options.baseline]
    check_outputs([options.json], [options.reference, *files])
    references = read_sentences(options.reference, options.reference_column)
    documents = {file: read_aligned(file, options.translation_column, references) for file in files}
    rows = {"reference": references, **documents}
    results: dict[str, Any] = {"scores": {name: formality_scores(row, references) for name, row in rows.items()}}
    print(_table(results["scores"]))
    if options.baseline:
        ours, theirs = ([documents[file] for file in side] for side in (options.translations, options.baseline))
        results["differences"] = compare_formality(ours, theirs, references)
        for name, label in SHARES.items():
            row = results["differences"][name]
            low, high = row["interval"]
            difference = f"{row['difference']:+.1%}, 95 % [{low:+.1%}, {high:+.1%}], p = {row['p_value']:.4f}"
            print(f"{label}, against the baseline: {difference}")
    write_report("evaluate formality", options, results)
    return results


def _table(scores: dict[str, dict[str, Any]]) -> str:
    lines = [f"{'formal':>8} {'informal':>8}   documents that mix them     sentences as in the reference"]
    for name, score in scores.items():
        shares = "   ".join(f"{_percentage(score[kind]):>26}" for kind in SHARES)
        lines.append(f"{score['formal']:8} {score['informal']:8} {shares}   {name}")
    return "\n".join(lines)


def _percentage(share: dict[str, Any]) -> str:
    if share["share"] is None:
        return "none"
    low, high = share["interval"]
    return f"{share['share']:.1%} [{low:.1%}, {high:.1%}] of {share['of']}"


def formality_of(sentence: str) -> set[str]:
    """Returns the forms in a sentence: "formal", "informal", both or none."""
    return {name for name, form in FORMS.items() if form.search(sentence)}


def formality_scores(documents: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> dict[str, Any]:
    """
    Counts the forms of address in translations.

    Args:
        documents: sentences of every document.
        references: reference sentences of every document.

    Returns:
        `formal` and `informal`: numbers of sentences with such a form. `mixed`: share of documents with both forms,
        among documents with a form in at least two sentences. `as_reference`: share of sentences with the form of
        their reference, among pairs with one form each. Each share is a dictionary of `share`, `of` (its denominator)
        and `interval` (95 %, bootstrap over documents). Share and interval are `None` if the denominator is 0.
    """
    forms = [formality_of(sentence) for document in documents for sentence in document]
    counts = {name: sum(name in each for each in forms) for name in FORMS}
    return {**counts, **{name: _share(each) for name, each in _counts(documents, references).items()}}


def compare_formality(
    systems: Sequence[Sequence[Sequence[str]]],
    baselines: Sequence[Sequence[Sequence[str]]],
    references: Sequence[Sequence[str]],
) -> dict[str, Any]:
    """
    Tests whether the shares of two systems differ.

    Args:
        systems, baselines: documents of each training of a system.
        references: reference sentences of every document.

    Returns:
        For `mixed` and `as_reference`: `difference`, `interval` and `p_value` from `compare_statistics`.

    Raises:
        ValueError: a system has no sentence that counts.
    """
    ours, theirs = ([_counts(documents, references) for documents in each] for each in (systems, baselines))
    differences = {}
    for name in SHARES:
        one, other = ([counts[name] for counts in system] for system in (ours, theirs))
        if not all(np.sum(system, axis=(0, 1))[1] for system in (one, other)):
            raise ValueError("A system has no form of address: there is nothing to compare.")
        differences[name] = compare_statistics(one, other, ratio)
    return differences


def _counts(documents: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
    """Counts numerator and denominator of each share for every document, `(documents, 2)`."""
    counts: dict[str, list[tuple[int, int]]] = {name: [] for name in SHARES}
    for document, reference in zip(documents, references, strict=True):
        forms, expected = (list(map(formality_of, sentences)) for sentences in (document, reference))
        addressing = [each for each in forms if each]
        is_counted = len(addressing) >= 2
        counts["mixed"].append((is_counted and len(set.union(*addressing)) == 2, is_counted))
        pairs = [each for each in zip(forms, expected, strict=True) if len(each[0]) == len(each[1]) == 1]
        counts["as_reference"].append((sum(ours == theirs for ours, theirs in pairs), len(pairs)))
    return {name: np.array(each, dtype=float) for name, each in counts.items()}


def _share(counts: np.ndarray) -> dict[str, Any]:
    present = counts[counts[:, 1] > 0]
    share, interval = ratio_interval(present, np.random.default_rng(SEED)) if len(present) else (None, None)
    return {"share": share, "of": int(present[:, 1].sum()), "interval": interval}
