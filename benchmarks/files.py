"""Files: seconds that hostile text takes in every format, and where inline markup comes to stand in a translation.

    python benchmarks/files.py [--megabytes 5] [--formats text markdown] [--kinds "one word"]
    python benchmarks/files.py --catalogs de/*.mo [--model CHECKPOINT]

Hostile text is a few characters repeated many times. Each text is taken apart into sentences by sentencex, its
placeholders are looked for, and it is put together again with translations of one word, and with longer ones than its
own; no model is run. A text that takes ten minutes is given up.

Message catalogues (gettext's, binary or PO) show where people have put a tag. In every message whose source and
translation have one inline element, the same, with other text beside it, the model aligns the words. The tag is right
if it is where the translator has put it.
"""

import argparse
import multiprocessing
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

import polib
from hostile_units import HOSTILE
from measure import memory_mb, parse_options, save, show

from modeling_gtransformer import Translator
from modeling_gtransformer.files import FILE_FORMATS, SplitFile
from modeling_gtransformer.files.word_alignment import align_words
from modeling_gtransformer.plain_text import sentencex_splitter, split_text
from modeling_gtransformer.terminology import Terminology


# Formats in which a text alone is no file.
NEED_STRUCTURE = ("po", "xliff")
FORMATS = ["text", *(name for name, kind in FILE_FORMATS.items() if not kind.binary and name not in NEED_STRUCTURE)]
IN_FORMAT = {
    "subtitles": "1\n00:00:01,000 --> 00:00:02,000\n{}\n",
    "ass": "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,{}\n",
}
MAX_SECONDS = 600
# A text with one inline element: the text before it, its tag and text, and the text behind it.
ONE_ELEMENT = re.compile(r"([^<>&]*)(<(\w+)[^<>&]*>)([^<>&]+)</\3>([^<>&]*)")


def take_apart_and_rejoin(format: str, content: str) -> dict[str, float]:
    """Seconds of each step."""
    splitter = sentencex_splitter("en")
    start = time.perf_counter()
    file = split_text(content, splitter) if format == "text" else SplitFile(content, format, splitter)
    read = time.perf_counter()
    for sentence in file.sentences:
        Terminology().required(sentence)
    searched = time.perf_counter()
    file.rejoin(["x"] * len(file.sentences))
    file.rejoin([f"{sentence} x" for sentence in file.sentences])
    return {
        "read": read - start,
        "placeholders": searched - read,
        "rejoined twice": time.perf_counter() - searched,
        "sentences": len(file.sentences),
        "peak GB so far": memory_mb("VmHWM") / 1e3,
    }


def measure_hostile_text(args: argparse.Namespace) -> dict[str, Any]:
    """Seconds of each format and kind of text, in a process for each format, or the `failure` of a text."""
    size, rows = int(args.megabytes * 1e6), {}
    context = multiprocessing.get_context("spawn")  # locks of the libraries that are loaded here would stay locked
    for format in args.formats:
        pool, row = context.Pool(1), {}
        for kind in args.kinds:
            text = (HOSTILE[kind] * (size // len(HOSTILE[kind]) + 1))[:size]
            work = pool.apply_async(take_apart_and_rejoin, (format, IN_FORMAT.get(format, "{}").replace("{}", text)))
            try:
                row[kind] = work.get(MAX_SECONDS)
            except multiprocessing.TimeoutError:
                pool.terminate()
                pool, row[kind] = context.Pool(1), {"failure": f"no result in {MAX_SECONDS} seconds"}
        pool.terminate()
        show(format, row)
        rows[format] = row
    return {"megabytes": args.megabytes, **rows}


class Case(NamedTuple):
    """A sentence, its translation, and pages in which both have their tag."""

    source: str
    target: str
    source_page: str
    target_page: str


def cases_of_catalogs(files: list[str]) -> list[Case]:
    """Messages with one inline element, each once."""
    cases = {}
    for file in files:
        catalog = polib.mofile(file) if Path(file).suffix == ".mo" else polib.pofile(file)
        for entry in catalog:
            pair = [ONE_ELEMENT.fullmatch(" ".join(text.split())) for text in (entry.msgid, entry.msgstr)]
            if all(text and has_text_beside(text) for text in pair) and pair[0][2] == pair[1][2]:
                texts = (text[1] + text[4] + text[5] for text in pair)
                cases[pair[0][0]] = Case(*texts, *(f"<p>{text[0].strip()}</p>" for text in pair))
    return [case for case in cases.values() if len(SplitFile(case.source_page, "html").sentences) == 1]


def has_text_beside(text: re.Match[str]) -> bool:
    return any(letter.isalpha() for letter in text[1] + text[5])


def measure_markup(args: argparse.Namespace) -> dict[str, Any]:
    """Share of the tags at the right words, if they are placed in proportion or by the model's attention."""
    translate = (Translator(args.model) if args.model else Translator()).pipeline
    cases = cases_of_catalogs(args.catalogs)
    start = time.perf_counter()
    alignments = align_words(translate.model, translate.processor, [(case.source, case.target) for case in cases])
    seconds = time.perf_counter() - start
    right = {"in proportion": 0, "by attention": 0}
    for case, alignment in zip(cases, alignments, strict=True):
        file = SplitFile(case.source_page, "html")
        right["in proportion"] += file.rejoin([case.target.strip()]) == case.target_page
        right["by attention"] += file.rejoin([case.target.strip()], [alignment]) == case.target_page
    share = {way: count / len(cases) for way, count in right.items()}
    show(f"{len(cases)} tags", {"at the right words": share})
    return {"tags": len(cases), "share of tags at the right words": share, "seconds": {"alignment": seconds}}


def main(argv: list[str] | None = None) -> None:
    args = parse_options(__doc__, argv, megabytes=5.0, formats=FORMATS, kinds=list(HOSTILE), catalogs=[], model="")
    if args.catalogs:
        save(args, "inline_markup-catalogs", measure_markup(args))
    else:
        save(args, "hostile_text", measure_hostile_text(args))


if __name__ == "__main__":
    main()
