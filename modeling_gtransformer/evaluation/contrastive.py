"""Contrastive scores: how often a model prefers a correct translation in context to wrong ones."""

import hashlib
import json
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from transformers.utils.logging import tqdm

from ..corpora.fingerprint import stats_of_weights
from ..processing_gtransformer import GTransformerProcessor
from ..runtime.atomic_file import check_outputs, write_atomic
from ..translation_options import option
from .contrastive_suites import ContrastiveItem, read_suite
from .report import ModelOptions, write_report
from .sentence_scores import EncodedDocument, check_positions, load_model, log_probabilities_by_sentence


# Number of items to score and write together.
ITEMS_AT_ONCE = 64


@dataclass(frozen=True)
class ContrastiveOptions(ModelOptions):
    """Options of `gtransformer evaluate contrastive`."""

    output: Path = option(MISSING, "JSON-lines file for the score of every candidate.", argument=True)
    suites: list[str] = option(MISSING, "ContraPro folder, or JSON files of the other suites.")
    context: int = option(3, "Maximum number of sentences before the scored one.", 0)


def evaluate_contrastive(options: ContrastiveOptions) -> dict[str, dict[str, Any]]:
    """
    Scores the items of `contrastive_suites` without a score in the output, and prints and returns the accuracies by
    phenomenon and distance. The same command continues an interrupted one.

    The score of a candidate is the log-probability of its tokens, in nats, given the source and the previous
    translations. An item is right if no wrong candidate scores as high as the right one, so a tie is an error (the
    script of Voita et al. takes the first of equal candidates). Unknown words count with the probability of `<unk>`,
    although translations never contain it.

    Raises:
        ValueError: an item has more tokens than the model has positions, or the output belongs to another command.
    """
    check_outputs([options.json, options.output], options.suites)
    items = [item.with_context(options.context) for path in options.suites for item in read_suite(path)]
    if len({item.name for item in items}) < len(items):
        raise ValueError("suites contains a suite twice: pass it once.")
    if not items:
        raise ValueError("The suites have no items.")
    settings = {name: getattr(options, name) for name in ("model", "suites", "context")}
    settings["items"] = hashlib.sha256(repr(items).encode()).hexdigest()
    settings |= {"weights": stats_of_weights(options.model), "languages": [options.src_lang, options.tgt_lang]}
    done = _read_scores(options.output, settings)

    model, processor = load_model(options.model, options.src_lang, options.tgt_lang)
    left = [item for item in items if item.name not in done]
    rows = [encode(item, processor) for item in left]
    check_positions(model, processor, ((item.name, row) for item, of in zip(left, rows, strict=True) for row in of))
    if not options.output.exists():  # after all checks of the settings
        write_atomic(options.output, json.dumps(settings) + "\n")
    by_length = sorted(zip(left, rows, strict=True), key=lambda pair: sum(map(len, pair[1][0][0])))
    with (
        options.output.open("a", encoding="utf-8") as file,
        tqdm(total=len(items), initial=len(done), desc="Scoring", unit=" items") as bar,
    ):
        for start in range(0, len(by_length), ITEMS_AT_ONCE):
            chunk = by_length[start : start + ITEMS_AT_ONCE]
            candidates = [row for _, of_item in chunk for row in of_item]
            scores = log_probabilities_by_sentence(model, processor, candidates, options.max_tokens, progress=False)
            found = iter(scores)
            for item, of_item in chunk:
                done[item.name] = [sum(next(found)[-1]) for _ in of_item]
                print(json.dumps({"name": item.name, "scores": done[item.name]}), file=file)
            file.flush()
            bar.update(len(chunk))

    accuracies = count_right(items, done)
    width = max(map(len, accuracies))
    for group, row in accuracies.items():
        print(f"{group:{width}}  {row['accuracy']:6.2f} %   {row['right']} of {row['items']}")
    write_report("evaluate contrastive", options, {"accuracies": accuracies})
    return accuracies


def _read_scores(path: Path, settings: dict[str, Any]) -> dict[str, list[float]]:
    """
    Reads the scores by item of an interrupted run, and removes an incomplete last line. The first line of the file has
    the settings of the run.

    Raises:
        ValueError: the file has other settings.
    """
    if not path.exists():
        return {}
    with path.open("rb+") as file:
        first, *lines = file.read().splitlines(keepends=True) or [b""]
        if first != (json.dumps(settings) + "\n").encode():
            raise ValueError(f"{path} belongs to another command or model: choose another output.")
        if lines and not lines[-1].endswith(b"\n"):
            file.truncate(file.tell() - len(lines.pop()))
    records = [json.loads(line) for line in lines]
    return {record["name"]: record["scores"] for record in records}


def encode(item: ContrastiveItem, processor: GTransformerProcessor) -> list[EncodedDocument]:
    """Encodes an item, once for each candidate as the last target sentence."""
    source = processor.encode_sentences(item.source)
    context = processor.encode_sentences(item.context, is_target=True)
    candidates = processor.encode_sentences(item.candidates, is_target=True)
    return [(source, [*context, words]) for words in candidates]


def count_right(items: list[ContrastiveItem], scores: dict[str, list[float]]) -> dict[str, dict[str, Any]]:
    """Counts `items` and `right` ones, with `accuracy` in percent, by phenomenon, by phenomenon and distance, and in
    total."""
    counts: dict[str, list[bool]] = {}
    for item in items:
        right, *wrong = scores[item.name]
        groups = [item.phenomenon, "all", *([item.group] if item.group else [])]
        groups += [f"{item.phenomenon}, distance {item.distance}"] if item.distance is not None else []
        for group in groups:
            counts.setdefault(group, []).append(right > max(wrong))
    return {
        group: {
            "items": len(counts[group]),
            "right": sum(counts[group]),
            "accuracy": 100 * sum(counts[group]) / len(counts[group]),
        }
        for group in sorted(counts)
    }
