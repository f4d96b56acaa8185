"""Turns the dialogues of BConTrasT (github.com/Unbabel/BConTrasT, WMT 2020 chat task) into documents for the studies.

    python train/studies/convert_bcontrast.py BConTrasT/train.json data/bcontrast.train.jsonl.xz
    python train/studies/convert_bcontrast.py BConTrasT/dev.json data/bcontrast.dev.jsonl.xz
    python train/studies/convert_bcontrast.py BConTrasT/test1_corpus-with_gold_references.json \\
        data/bcontrast.test.jsonl.xz

Every dialogue becomes a line with its `id` and the lists `en` and `de`, one entry per utterance. Agents write English
and customers German; the other language is a human translation. Utterances that lack a side are left out and counted.
"""

import gzip
import lzma
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from modeling_gtransformer.atomic_file import atomic_file, check_outputs, read_json
from modeling_gtransformer.cli.script import run_script
from modeling_gtransformer.json_line import json_line
from modeling_gtransformer.translation_options import option


COMPRESS: dict[str, Callable[[bytes], bytes]] = {".jsonl": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
# Languages of `source` and `target`, by the speaker of an utterance.
LANGUAGES = {"agent": ("en", "de"), "customer": ("de", "en")}


@dataclass(frozen=True)
class ConversionOptions:
    dialogues: Path = option(MISSING, "JSON file of the corpus.", argument=True)
    output: Path = option(MISSING, "JSON lines, compressed if the extension is .gz or .xz.", argument=True)

    def __post_init__(self) -> None:
        if self.output.suffix not in COMPRESS:
            raise ValueError(f"output: its extension must be one of {', '.join(COMPRESS)}.")


def convert_bcontrast(options: ConversionOptions) -> None:
    """Writes the documents, and prints how many there are."""
    check_outputs([options.output], [str(options.dialogues)])
    dialogues = read_json(options.dialogues, None)
    documents = list(convert(dialogues, str(options.dialogues)))
    with atomic_file(options.output) as file:
        file.write(COMPRESS[options.output.suffix](b"".join(map(json_line, documents))))
    sentences = sum(len(document["en"]) for document in documents)
    left_out = sum(map(len, dialogues.values())) - sentences
    print(f"{len(documents)} dialogues, {sentences} utterances in {options.output}; {left_out} lack a side: left out")


def convert(dialogues: Any, name: str) -> Iterator[dict[str, Any]]:
    """
    Documents of the dialogues.

    Args:
        dialogues: by the id of each, a list of its utterances with `speaker`, `source` and `target`.
        name: what errors call the file.

    Raises:
        ValueError: the file has another form; the message names the dialogue.
    """
    if not isinstance(dialogues, dict):
        raise ValueError(
            f"{name} must be a JSON file of one object, which has a list of utterances for every dialogue."
        )
    for key, utterances in dialogues.items():
        try:
            pairs = [languages(utterance) for utterance in utterances]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{name}, {key}: an utterance needs the fields `source` and `target`, and a `speaker` that is one of "
                f"{', '.join(LANGUAGES)}."
            ) from error
        pairs = [pair for pair in pairs if all(pair.values())]
        if pairs:
            yield {"id": key, **{language: [pair[language] for pair in pairs] for language in ("en", "de")}}


def languages(utterance: dict[str, str]) -> dict[str, str]:
    """Both sides of an utterance, by their languages."""
    source, target = LANGUAGES[utterance["speaker"]]
    return {source: utterance["source"].strip(), target: utterance["target"].strip()}


if __name__ == "__main__":
    sys.exit(run_script((ConversionOptions, convert_bcontrast)))
