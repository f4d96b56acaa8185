"""Forms of address in German documents, formal (*Sie*) or informal (*du*), and whether a document keeps to one.

A form counts where its spelling is unambiguous: *Sie*, *Ihnen* and *Ihr* after another word, where only the formal
address has a capital letter; *du*, *dich* and *euch* anywhere. *ihr*, which is also "her", never counts.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .bootstrap import ratio, ratio_interval
from .metrics import SEED, compare_statistics


SHARES = ("mixed", "as_reference")
FORMS = {
    "formal": re.compile(r"(?<=[\w,;)] )(?:Sie|Ihnen|Ihr|Ihre[mnrs]?)\b"),
    "informal": re.compile(r"\b(?:du|dich|dir|dein|deine[mnrs]?|euch|euer|eure[mnrs]?)\b", re.IGNORECASE),
}


def forms_of_address(sentence: str) -> set[str]:
    """Finds which of "formal" and "informal" occur in a sentence."""
    return {name for name, form in FORMS.items() if form.search(sentence)}


def consistency_of_address(documents: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> dict[str, Any]:
    """
    Counts forms of address in translations.

    Args:
        documents: sentences of every document.
        references: sentences of the reference of every document.

    Returns:
        `formal` and `informal`: numbers of sentences with such a form. `mixed`: share of documents with both forms,
        among those with a form in at least two sentences. `as_reference`: share of sentences with the form of their
        reference, among those where both have one form. Each share is a dictionary of `share`, `of` (their number) and
        `interval` (95 %, bootstrap over documents); share and interval are `None` if the number is 0.
    """
    forms = [forms_of_address(sentence) for document in documents for sentence in document]
    counts = {name: sum(name in each for each in forms) for name in FORMS}
    return {**counts, **{name: _share(each) for name, each in _counts(documents, references).items()}}


def compare_address(
    systems: Sequence[Sequence[Sequence[str]]],
    baselines: Sequence[Sequence[Sequence[str]]],
    references: Sequence[Sequence[str]],
) -> dict[str, Any]:
    """
    Tests whether the shares of two systems differ. Each system may have been trained with several seeds; translations
    of a document by all seeds stay together, because the tests draw and swap documents, not seeds.

    Args:
        systems, baselines: documents of each training of a system.
        references: sentences of the reference of every document.

    Returns:
        For `mixed` and `as_reference`: `difference`, `interval` and `p_value` from `compare_statistics`.

    Raises:
        ValueError: a system has no sentence that counts.
    """
    ours, theirs = ([_counts(documents, references) for documents in each] for each in (systems, baselines))
    differences = {}
    for name in SHARES:
        one, other = (np.sum([counts[name] for counts in each], axis=0) for each in (ours, theirs))
        if not (one[:, 1].any() and other[:, 1].any()):
            raise ValueError("One of the systems has no form of address: there is nothing to compare.")
        differences[name] = compare_statistics(one, other, ratio)
    return differences


def _counts(documents: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
    """Numerators and denominators of each share for every document, `(documents, 2)`."""
    counts: dict[str, list[tuple[int, int]]] = {name: [] for name in SHARES}
    for document, reference in zip(documents, references, strict=True):
        forms, expected = (list(map(forms_of_address, sentences)) for sentences in (document, reference))
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
