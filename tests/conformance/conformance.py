"""Translates what others test their own programs with: documents, pages, catalogues and subtitles of their packages.

    python tests/conformance/conformance.py [--formats docx odf] [--cache build/conformance]

Filled with its own sentences, a file must not change. Filled with capital letters in brackets, it must have the same
structure and the same text for independent parsers. Files that fail are listed. `make conformance` installs the
parsers. The packages of PyPI, npm and Debian are downloaded once; none becomes part of this repository.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml
from samples import Sample, archives, samples
from structure import Unread, structure

from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.files import FILE_FORMATS, SplitFile, decode
from modeling_gtransformer.plain_text import sentencex_splitter
from modeling_gtransformer.runtime.atomic_file import write_json


HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Words between white space or punctuation; code and placeholders keep their case.
WORD = re.compile(r"(?<![^\s(\"'“])[^\W\d_]+(?=[.,;:!?)\"'”]?(?:\s|\Z))")
OUTCOMES = ("files", "passed", "unread", "as intended", "refused", "failed")
# Formats whose files get translations beside the source.
BESIDE_SOURCE = frozenset({"po", "xliff"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formats", nargs="+", default=list(FILE_FORMATS), choices=list(FILE_FORMATS))
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "conformance", help="downloads")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "conformance.json")
    args = parser.parse_args()
    described = yaml.safe_load((HERE / "sources.yaml").read_text(encoding="utf-8"))
    chosen = [each for each in all_samples(described["sources"], args.cache.resolve()) if each.format in args.formats]
    counts: dict[str, Counter[str]] = {}
    reasons: dict[str, Counter[str]] = {}
    with ProcessPoolExecutor(args.processes) as pool:
        for sample, (outcome, reason) in zip(chosen, pool.map(check, chosen, chunksize=8), strict=True):
            known = next((why for pattern, why in described["known"].items() if fnmatch(sample.name, pattern)), None)
            if outcome == "failed" and known:
                outcome, reason = "as intended", known
            counts.setdefault(sample.format, Counter()).update(["files", outcome])
            if outcome == "failed":
                print(sample.format, sample.source, sample.name, reason, sep="\t", flush=True)
            elif outcome != "passed":
                reasons.setdefault(outcome, Counter())[reason] += 1
    rows = {format: {name: own[name] for name in OUTCOMES} for format, own in sorted(counts.items())}
    print(*(f"{format}: {row}" for format, row in rows.items()), sep="\n")
    packages = [package for own in described["sources"].values() for package in own]
    results = {"formats": rows, "packages": packages, "reasons": {name: dict(own) for name, own in reasons.items()}}
    write_json(args.results, {**provenance(sys.argv), "results": results})


def all_samples(sources: dict[str, dict[str, dict[str, str]]], cache: Path) -> Iterator[Sample]:
    for registry, packages in sources.items():
        for package, readers in packages.items():
            for archive in archives(registry, package, cache / registry / package):
                yield from samples(package, archive, readers)


def check(sample: Sample) -> tuple[str, str]:
    """
    Returns whether a sample "passed", was "refused", or "failed", and why; "unread" is one that passed, but that the
    library of its format cannot read even before.
    """
    is_binary = FILE_FORMATS[sample.format].binary
    try:
        file = SplitFile(
            sample.content if is_binary else decode(sample.content), sample.format, sentencex_splitter("en")
        )
    except ValueError as error:
        return "refused", re.sub(r"\d+|'[^']*'", "…", str(error)).partition(": ")[0]
    before = structure(sample.format, sample.name, sample.content)
    for translations in (file.sentences, list(map(pseudo_translation, file.sentences, file.protected))):
        filled = file.rejoin(translations)
        content = filled if isinstance(filled, bytes) else filled.encode()
        is_same = is_binary or sample.format in BESIDE_SOURCE or content == sample.content
        if translations is file.sentences and not is_same:
            return "failed", "other bytes, though nothing was translated"
        if difference := first_difference(before, structure(sample.format, sample.name, content)):
            return "failed", difference
    if sample.format == "po" and passes_msgfmt(sample.content) and not passes_msgfmt(content):
        return "failed", "msgfmt"
    errors = [part for part in before if isinstance(part, Unread)]
    return ("unread", str(errors[0])) if errors else ("passed", "")


def pseudo_translation(sentence: str, protected: list[str]) -> str:
    """Returns a sentence in capital letters and brackets; like a translation, it keeps protected words."""
    kept = {word for words in protected for word in WORD.findall(words)}
    return f"⟦{WORD.sub(lambda word: word[0] if word[0] in kept else word[0].upper(), sentence)}⟧"


def first_difference(before: Any, after: Any) -> str:
    """Returns the first difference between two structures, or an empty string."""
    if before == after:
        return ""
    if isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)):
        pairs = zip(before, after, strict=False)
        return next(filter(None, (first_difference(*pair) for pair in pairs)), f"{len(before)} → {len(after)} parts")
    texts = str(before), str(after)
    start = next((place for place, (one, two) in enumerate(zip(*texts, strict=False)) if one != two), 0)
    return " → ".join(repr(text[max(start - 40, 0) :][:80]) for text in texts)


def passes_msgfmt(content: bytes) -> bool:
    return subprocess.run(["msgfmt", "-c", "-o", "/dev/null", "-"], input=content, capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
