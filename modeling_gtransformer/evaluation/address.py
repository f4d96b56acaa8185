"""Forms of address in German documents, formal (*Sie*) or informal (*du*), and whether a document keeps to one.

A form counts where its spelling tells what it is: *Sie*, *Ihnen* and *Ihr* behind another word, where only the formal
address has a capital letter; *du*, *dich* and *euch* anywhere. *ihr*, which is also "her", never counts.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .bootstrap import SEED, ratio_interval


FORMS = {
    "formal": re.compile(r"(?<=[\w,;)] )(?:Sie|Ihnen|Ihr|Ihre[mnrs]?)\b"),
    "informal": re.compile(r"\b(?:du|dich|dir|dein|deine[mnrs]?|euch|euer|eure[mnrs]?)\b", re.IGNORECASE),
}


def forms_of_address(sentence: str) -> set[str]:
    """Which of "formal" and "informal" a sentence has."""
    return {name for name, form in FORMS.items() if form.search(sentence)}


def consistency_of_address(documents: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> dict[str, Any]:
    """
    Forms of address in translations.

    Args:
        documents: sentences of every document.
        references: sentences of the reference of every document.

    Returns:
        `formal` and `informal`: numbers of sentences with such a form. `mixed`: share of the documents with both forms
        among those that address somebody in two sentences or more. `as_reference`: share of the sentences with the
        form of their reference among those where both have one form. Each share is a dictionary of `share`, `of` (how
        many) and `interval` (95 %, bootstrap over documents); share and interval are `None` if there are none.
    """
    found = [list(map(forms_of_address, document)) for document in documents]
    expected = [list(map(forms_of_address, document)) for document in references]
    mixed, agreeing = [], []
    for forms, right in zip(found, expected, strict=True):
        addressing = [each for each in forms if each]
        if len(addressing) >= 2:
            mixed.append((len(set.union(*addressing)) == 2, 1))
        pairs = [(ours, theirs) for ours, theirs in zip(forms, right, strict=True) if len(ours) == len(theirs) == 1]
        agreeing.append((sum(ours == theirs for ours, theirs in pairs), len(pairs)))
    counts = {name: sum(name in forms for document in found for forms in document) for name in FORMS}
    return {**counts, "mixed": _share(mixed), "as_reference": _share(agreeing)}


def _share(counts: Sequence[tuple[int, int]]) -> dict[str, Any]:
    present = np.array([count for count in counts if count[1]], dtype=float).reshape(-1, 2)
    share, interval = ratio_interval(present, np.random.default_rng(SEED)) if len(present) else (None, None)
    return {"share": share, "of": int(present[:, 1].sum()), "interval": interval}
