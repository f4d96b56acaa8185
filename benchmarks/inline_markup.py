"""Where tags inside of sentences come to stand in the translation.

    python train/demo.py
    python benchmarks/inline_markup.py [--demo outputs/demo]
    python benchmarks/inline_markup.py --catalogs de/*.mo [--model CHECKPOINT]

In the invented language of the demo it is known which words belong together. One to three words of every sentence that
the demo's model translates without an error are marked as bold, as far as their translations stand together; a tag is
right if it has exactly the words that belong to them.

Message catalogues (gettext's, binary or PO) tell where people have put a tag: of every message whose source and
translation have one inline element, the same, with other text beside it, the words are aligned by the model as they
stand, and the tag is right if it is where the translator has put it.
"""

import argparse
import random
import re
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import polib
import torch
from measure import save
from modeling_gtransformer.files.word_alignment import align_words

from modeling_gtransformer import Translator
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.files import SplitFile


# A text with one inline element: what is before it, its tag, its words, what is behind it.
ONE_ELEMENT = re.compile(r"([^<>&]*)(<(\w+)[^<>&]*>)([^<>&]+)</\3>([^<>&]*)")


class Case(NamedTuple):
    """A sentence, its translation, and pages in which both have their tag."""

    source: str
    target: str
    source_page: str
    target_page: str


def translated_places(words: int) -> list[int]:
    """For each word of a sentence of so many words the place of the one that translates it."""
    return {3: [2, 0, 1], 5: [4, 0, 3, 1, 2], 6: [5, 0, 4, 1, 3, 2]}[words]


def marked(words: list[str], first: int, last: int) -> str:
    """A page in which the words between two places are bold."""
    return f"<p>{' '.join([*words[:first], '<b>' + ' '.join(words[first:last]) + '</b>', *words[last:]])}</p>"


def make_case(source: str, target: str, rng: random.Random) -> Case | None:
    """A sentence with a tag; `None` if the translations of the words in it do not stand together."""
    words, others = source.split(), target.split()
    first = rng.randrange(len(words))
    last = min(first + rng.randint(1, 3), len(words))
    places = sorted(translated_places(len(words))[first:last])
    if places != [*range(places[0], places[-1] + 1)]:
        return None
    return Case(source, target, marked(words, first, last), marked(others, places[0], places[-1] + 1))


def cases_of_demo(translate: Any, file: Path) -> tuple[list[Case], dict[str, float]]:
    """Sentences that the demo's model translates without an error, and the seconds of their translation."""
    documents = read_documents([str(file)], ("source", "target"))
    start = time.perf_counter()
    translated = translate_documents(
        translate.model, translate.processor, [document["source"] for document in documents]
    )
    seconds = {"translation": time.perf_counter() - start}
    rng = random.Random(0)
    cases = [
        make_case(source, target, rng)
        for document, translation in zip(documents, translated, strict=True)
        for source, target, own in zip(document["source"], document["target"], translation.sentences, strict=True)
        if own == target
    ]
    return [case for case in cases if case is not None], seconds


def cases_of_catalogs(files: list[Path]) -> list[Case]:
    """Messages with one inline element, each once."""
    cases = {}
    for file in files:
        catalog = polib.mofile(str(file)) if file.suffix == ".mo" else polib.pofile(str(file))
        for entry in catalog:
            source, target = (ONE_ELEMENT.fullmatch(" ".join(text.split())) for text in (entry.msgid, entry.msgstr))
            if (
                source
                and target
                and source[2] == target[2]
                and all(has_text_beside(text) for text in (source, target))
            ):
                texts = (text[1] + text[4] + text[5] for text in (source, target))
                pages = (f"<p>{text[0].strip()}</p>" for text in (source, target))
                cases[source[0]] = Case(*texts, *pages)
    return [case for case in cases.values() if len(SplitFile(case.source_page, "html").sentences) == 1]


def has_text_beside(text: re.Match[str]) -> bool:
    return any(letter.isalpha() for letter in text[1] + text[5])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", type=Path, default=Path("outputs/demo"), help="Folder of the demo's results.")
    parser.add_argument("--catalogs", type=Path, nargs="+", help="Message catalogues, instead of the demo.")
    parser.add_argument("--model", help="G-Transformer for the catalogues; default: the small model.")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.catalogs:
        translate = (Translator(args.model) if args.model else Translator()).pipeline
        cases, seconds = cases_of_catalogs(args.catalogs), {}
    else:
        translate = Translator(str(args.demo / "gtransformer")).pipeline
        cases, seconds = cases_of_demo(translate, args.demo / "corpus" / "test.jsonl")
    start = time.perf_counter()
    alignments = align_words(translate.model, translate.processor, [(case.source, case.target) for case in cases])
    seconds["alignment"] = time.perf_counter() - start
    right = {"in proportion": 0, "by attention": 0}
    for case, alignment in zip(cases, alignments, strict=True):
        file = SplitFile(case.source_page, "html")
        right["in proportion"] += file.rejoin([case.target.strip()]) == case.target_page
        right["by attention"] += file.rejoin([case.target.strip()], [alignment]) == case.target_page
    share = {way: count / len(cases) for way, count in right.items()}
    results = {"tags": len(cases), "share of tags at the right words": share, "seconds": seconds}
    print(results)
    save("inline_markup-catalogs" if args.catalogs else "inline_markup", sys.argv, results)


if __name__ == "__main__":
    main()
