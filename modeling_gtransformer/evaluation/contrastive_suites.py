"""Contrastive test suites: sentences in context, with a right translation and wrong ones.

The suites are read in the formats of their authors:

* ContraPro (Müller et al., 2018; English-German pronouns): a folder with `en.txt`, `de.txt` (`context <SEP> sentence`)
  and `sentence_groups.txt`, as in ContraCAT. Distances of antecedents come from the annotation (`contrapro.json` or
  parts of it), if the folder has one.
* Voita et al. (2019; English-Russian): `deixis_*.json`, `lex_cohesion_*.json`, `ellipsis_*.json`.
* Bawden et al. (2018; English-French): `anaphora.json`, `lexical-choice.json`. In half of the first file, the
  antecedent has a doubtful translation ("semi-correct"), with which the pronoun must still agree. Both halves are
  groups.

Wrong candidates that equal the right one are dropped. Items without other candidates are skipped with a warning.
"""

import itertools
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..runtime.atomic_file import read_json


logger = logging.getLogger(__name__)

PRONOUNS = ("er", "sie", "es")


@dataclass(frozen=True)
class ContrastiveItem:
    """A sentence whose translation depends on its context, with its candidates."""

    name: str
    source: list[str]  # context sentences, then the sentence
    context: list[str]  # translations of the context sentences
    candidates: list[str]  # translations of the sentence; the first one is right
    phenomenon: str
    distance: int | None = None  # number of sentences back to the antecedent
    group: str | None = None  # additional group for counts

    def with_context(self, sentences: int) -> "ContrastiveItem":
        """Returns the item with at most this number of context sentences."""
        kept = min(sentences, len(self.context))
        source, context = self.source[len(self.source) - 1 - kept :], self.context[len(self.context) - kept :]
        return replace(self, source=source, context=context)


def read_suite(path: str | Path) -> list[ContrastiveItem]:
    """
    Reads the items of a suite.

    Raises:
        ValueError: the path is not one of the suites above, or is broken.
    """
    checked = []
    for item in _items(Path(path)):
        right, *wrong = item.candidates
        wrong = [candidate for candidate in wrong if candidate != right]  # a few of Voita et al. equal it
        if wrong:
            checked.append(replace(item, candidates=[right, *wrong]))
        else:
            logger.warning(f"Skipped {item.name}: all its candidates are the right one.")
    return checked


def _items(path: Path) -> Iterator[ContrastiveItem]:
    if (path / "sentence_groups.txt").exists():
        return _contrapro(path)
    if path.suffix == ".json":
        records = read_json(path, None)
        if isinstance(records, list) and records and {"src", "dst", "true_ind"} <= set(records[0]):
            return _voita(records, path)
        if isinstance(records, dict) and records:
            first = next(iter(records.values()))
            if "trg" in first or "examples" in first:
                return _bawden(records, path)
    raise ValueError(
        f"{path} does not exist, or is not a contrastive suite in a known format "
        "(ContraPro folder, Voita or Bawden JSON)."
    )


def _contrapro(folder: Path) -> Iterator[ContrastiveItem]:
    distances = {
        (_letters(record["src segment"]), _letters(record["ref segment"])): record["ante distance"]
        for file in sorted(folder.glob("*.json"))
        for record in read_json(file, [])
        if {"src segment", "ref segment", "ante distance"} <= set(record)
    }
    pairs = [_lines(folder / f"{language}.txt") for language in ("en", "de")]
    if len(pairs[0]) != len(pairs[1]):
        raise ValueError(f"{folder}: en.txt has {len(pairs[0])} lines, de.txt {len(pairs[1])}.")
    starts = {int(start) for start in _lines(folder / "sentence_groups.txt")} | {len(pairs[0])}
    for start, end in itertools.pairwise(sorted(starts)):
        *source_context, source = _parts(pairs[0][start])
        *context, right = _parts(pairs[1][start])
        wrong = [_parts(line)[-1] for line in pairs[1][start + 1 : end]]
        if len(source_context) != len(context):
            source_context, context = [], []
        # The first differing word decides; others may only agree with its gender.
        words = zip(map(_letters, right.split()), map(_letters, (wrong or [right])[0].split()), strict=False)
        pronoun = next((ours for ours, other in words if ours != other and ours in PRONOUNS), "other")
        yield ContrastiveItem(
            f"{folder}:{start + 1}",
            [*source_context, source],
            context,
            [right, *wrong],
            pronoun,
            distances.get((_letters(source), _letters(right))),
        )


def _parts(line: str) -> list[str]:
    return [part for part in map(str.strip, line.split("<SEP>")) if part]


def _letters(text: str) -> str:
    return re.sub(r"\W", "", text.lower())


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _voita(records: list[dict[str, Any]], path: Path) -> Iterator[ContrastiveItem]:
    for number, record in enumerate(records, 1):
        source = [sentence.strip() for sentence in record["src"].split("_eos")]
        targets = [[sentence.strip() for sentence in text.split("_eos")] for text in record["dst"]]
        targets.insert(0, targets.pop(record["true_ind"]))
        context = targets[0][:-1]
        candidates = [target[-1] for target in targets if target[:-1] == context]
        if len(source) != len(targets[0]):
            raise ValueError(
                f"{path}, item {number}: {len(source)} source sentences, but {len(targets[0])} target sentences."
            )
        if len(candidates) < len(targets):
            raise ValueError(f"{path}, item {number}: the candidates differ before the last sentence.")
        phenomenon = re.sub("_(dev|test)$", "", path.stem)
        yield ContrastiveItem(f"{path}:{number}", source, context, candidates, phenomenon, record["ctx_dist"])


def _bawden(records: dict[str, Any], path: Path) -> Iterator[ContrastiveItem]:
    for block, record in records.items():
        examples = record.get("examples") or [
            {"src": record["src"], "trg": target, "type": target["type"]} for target in record["trg"]
        ]
        for number, example in enumerate(examples, 1):
            targets = example["trg"]
            antecedent = "correct" if "correct" in targets else "semi-correct"
            right = targets[antecedent]
            phenomenon = f"{path.stem}, {example.get('type') or record['type']}"
            candidates = [right[-1], targets["incorrect"][-1]]
            group = f"{path.stem}, {antecedent}" if "trg" in record else None
            name = f"{path}:{block}.{number}"
            yield ContrastiveItem(name, example["src"], right[:-1], candidates, phenomenon, 1, group)
