"""Converts published collections of documents to JSON lines for training and evaluation.

    python train/studies/convert_documents.py dochplt en de train.jsonl.xz en-de/*.parquet
    python train/studies/convert_documents.py wmt24pp en de wmt24.jsonl en-de_DE.jsonl
    python train/studies/convert_documents.py wmt25 en cs_CZ wmt25.jsonl wmt25-genmt.jsonl

A document becomes a line with its `id` and a list of sentences per language.

dochplt: HPLT/DocHPLT on the Hub. A link of its alignment becomes a pair of one or several sentences. Links without a
translation, or with a score below `--min_score`, are dropped. So are documents that keep fewer than `--min_aligned` of
their links.
wmt24pp, wmt25: google/wmt24pp on the Hub and github.com/wmt-conference/wmt25-general-mt. A segment and its reference
become a pair.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.corpora.corpus import iterate_documents
from modeling_gtransformer.corpora.translation_output import compressed
from modeling_gtransformer.runtime.atomic_file import atomic_file, check_outputs
from modeling_gtransformer.runtime.json_line import json_line
from modeling_gtransformer.translation_options import option


Record = dict[str, Any]
# Id and pairs of a document.
Pairs = tuple[str, list[tuple[str, str]]]


@dataclass(frozen=True)
class ConversionOptions:
    collection: Literal["dochplt", "wmt24pp", "wmt25"] = option(MISSING, "Collection of documents.", argument=True)
    source: str = option(MISSING, "Source language, in the codes of the collection.", argument=True)
    target: str = option(MISSING, "Target language.", argument=True)
    output: Path = option(MISSING, "JSON-lines file, compressed if its extension is .gz or .xz.", argument=True)
    files: list[str] = option(MISSING, "Parquet or JSON-lines files.", argument=True)
    min_score: float = option(0.5, "DocHPLT: minimum score of Bicleaner.", min=0, max=1)
    min_aligned: float = option(0.8, "DocHPLT: minimum share of links that a document must keep.", min=0, max=1)


def convert_documents(options: ConversionOptions) -> None:
    """Writes the documents, and prints their number."""
    check_outputs([options.output], options.files)
    documents = iterate_documents(options.files, columns=(), problems_of=lambda _: ())  # records in any format
    records = (document.record for document in documents)
    count = pairs = 0
    with atomic_file(options.output) as file, compressed(file, options.output) as stream:
        try:
            for name, found in COLLECTIONS[options.collection](records, options):
                if found:
                    source, target = map(list, zip(*found, strict=True))
                    stream.write(json_line({"id": name, options.source: source, options.target: target}))
                    count, pairs = count + 1, pairs + len(found)
        except (KeyError, TypeError, AttributeError) as error:
            files = ", ".join(options.files)
            raise ValueError(f"{files} is not in the format of {options.collection}: {error} is missing.") from error
    print(f"{count} documents, {pairs} pairs in {options.output}")


def dochplt(records: Iterable[Record], options: ConversionOptions) -> Iterator[Pairs]:
    """Reads rows with the sentences of two documents by id, and links between groups of ids."""
    for row in records:
        texts = [dict(zip(row[side]["ids"], row[side]["sentences"], strict=True)) for side in ("src_doc", "tgt_doc")]
        good = [link for link in row["alignment"] if link["bicleaner-score"] >= options.min_score]
        pairs = [
            (" ".join(map(texts[0].__getitem__, link["src"])), " ".join(map(texts[1].__getitem__, link["tgt"])))
            for link in good
            if link["src"] and link["tgt"]
        ]
        is_source_first = row["lang_pair"] == f"{options.source}-{options.target}"
        if len(pairs) >= options.min_aligned * len(row["alignment"]):
            yield row["src_doc_id"], pairs if is_source_first else [pair[::-1] for pair in pairs]


def wmt24pp(records: Iterable[Record], options: ConversionOptions) -> Iterator[Pairs]:
    """Reads rows of one segment each, in the order of documents."""
    good = (row for row in records if not row["is_bad_source"] and row["domain"] != "canary")
    for name, rows in groupby(good, lambda row: row["document_id"]):
        yield name, [(row["source"].strip(), row["target"].strip()) for row in rows]


def wmt25(records: Iterable[Record], options: ConversionOptions) -> Iterator[Pairs]:
    """Reads rows of whole documents, with blank lines between segments. Some have no reference."""
    for row in records:
        if (row["src_lang"], row["tgt_lang"]) == (options.source, options.target) and row["refs"]:
            sides = [text.split("\n\n") for text in (row["src_text"], row["refs"]["refA"]["ref"])]
            if len(sides[0]) != len(sides[1]):
                raise ValueError(f"{row['doc_id']} has {len(sides[0])} segments, but {len(sides[1])} references.")
            yield row["doc_id"], [*zip(*sides, strict=True)]


COLLECTIONS = {"dochplt": dochplt, "wmt24pp": wmt24pp, "wmt25": wmt25}


if __name__ == "__main__":
    sys.exit(run_script((ConversionOptions, convert_documents)))
