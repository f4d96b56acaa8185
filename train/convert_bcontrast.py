"""Turn the dialogues of BConTrasT (github.com/Unbabel/BConTrasT, WMT 2020 chat task) into documents for the studies.

    python train/convert_bcontrast.py BConTrasT/train.json data/bcontrast.train.jsonl.xz
    python train/convert_bcontrast.py BConTrasT/dev.json data/bcontrast.dev.jsonl.xz
    python train/convert_bcontrast.py BConTrasT/test1_corpus-with_gold_references.json data/bcontrast.test.jsonl.xz

Every dialogue becomes a line with its `id` and the lists `en` and `de`, one entry per utterance. Agents write English
and customers German; the other language is a human translation. Utterances that lack a side are left out and counted.
"""

import argparse
import gzip
import lzma
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from modeling_gtransformer.atomic_file import atomic_file, check_outputs, read_json
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.json_line import json_line


COMPRESS: dict[str, Callable[[bytes], bytes]] = {".jsonl": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
# Languages of `source` and `target`, by the speaker of an utterance.
LANGUAGES = {"agent": ("en", "de"), "customer": ("de", "en")}


def main(argv: list[str]) -> None:
    args = parse_arguments(argv)
    check_outputs([args.output], [args.dialogues])
    if args.output.suffix not in COMPRESS:
        raise ValueError(f"{args.output}: its name must end with one of {', '.join(COMPRESS)}.")
    dialogues = read_json(Path(args.dialogues), None)
    documents = list(convert(dialogues, args.dialogues))
    with atomic_file(args.output) as file:
        file.write(COMPRESS[args.output.suffix](b"".join(map(json_line, documents))))
    sentences = sum(len(document["en"]) for document in documents)
    left_out = sum(map(len, dialogues.values())) - sentences
    print(f"{len(documents)} dialogues, {sentences} utterances in {args.output}; {left_out} lack a side: left out")


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


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dialogues", help="JSON file of the corpus.")
    parser.add_argument("output", type=Path, help="JSON lines, compressed if the name ends with .gz or .xz.")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run("convert_bcontrast.py", lambda: main(sys.argv[1:])))
