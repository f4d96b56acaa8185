"""Turns the dialogues of BConTrasT (github.com/Unbabel/BConTrasT, WMT 2020 chat task) into documents for the studies.

    python train/studies/convert_bcontrast.py BConTrasT/train.json data/bcontrast.train.jsonl.xz
    python train/studies/convert_bcontrast.py BConTrasT/dev.json data/bcontrast.dev.jsonl.xz
    python train/studies/convert_bcontrast.py BConTrasT/test1_corpus-with_gold_references.json \\
        data/bcontrast.test.jsonl.xz

Every dialogue becomes a line with its `id` and the lists `en` and `de`, one entry per utterance. Agents write English
and customers German; the other language is a human translation. Utterances that lack a side are left out and counted.
"""

import lzma
import sys
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.runtime.atomic_file import atomic_file, check_outputs, read_json
from modeling_gtransformer.runtime.json_line import json_line
from modeling_gtransformer.translation_options import option


# Languages of `source` and `target`, by the speaker of an utterance.
LANGUAGES = {"agent": ("en", "de"), "customer": ("de", "en")}


@dataclass(frozen=True)
class ConversionOptions:
    dialogues: Path = option(MISSING, "JSON file of the corpus.", argument=True)
    output: Path = option(MISSING, "JSON-lines file, compressed if its extension is .xz.", argument=True)


def convert_bcontrast(options: ConversionOptions) -> None:
    """Writes the documents, and prints how many there are."""
    check_outputs([options.output], [str(options.dialogues)])
    dialogues = read_json(options.dialogues, None)
    try:
        documents = list(convert(dialogues))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{options.dialogues} does not have the form of BConTrasT.") from error
    content = b"".join(map(json_line, documents))
    with atomic_file(options.output) as file:
        file.write(lzma.compress(content) if options.output.suffix == ".xz" else content)
    sentences = sum(len(document["en"]) for document in documents)
    left_out = sum(map(len, dialogues.values())) - sentences
    print(f"{len(documents)} dialogues, {sentences} utterances in {options.output}; {left_out} lack a side: left out")


def convert(dialogues: dict[str, list[dict[str, str]]]) -> Iterator[dict[str, Any]]:
    """Yields the documents of dialogues, lists of utterances with `speaker`, `source` and `target` by their ids."""
    for key, utterances in dialogues.items():
        pairs = []
        for utterance in utterances:
            source, target = LANGUAGES[utterance["speaker"]]
            pairs.append({source: utterance["source"].strip(), target: utterance["target"].strip()})
        pairs = [pair for pair in pairs if all(pair.values())]
        if pairs:
            yield {"id": key, **{language: [pair[language] for pair in pairs] for language in ("en", "de")}}


if __name__ == "__main__":
    sys.exit(run_script((ConversionOptions, convert_bcontrast)))
