"""Results of a study: scores with their means, spreads and significance, curves, and one table."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from operator import itemgetter
from statistics import mean, median, stdev
from typing import Any

from transformers.trainer import TRAINER_STATE_NAME

from ..evaluation.metrics import compare_systems, score_documents
from ..evaluation.report import markdown
from ..evaluation.translations import SentenceCounts, Translations, segment_sizes
from ..processing_gtransformer import GTransformerProcessor
from .recipe import parse_recipe
from .starts import read_starts
from .study_plan import TrainingRun


SCORES = ("s-BLEU", "d-BLEU/segment", "d-BLEU/document")
SIGNIFICANT = 0.01


@dataclass(frozen=True)
class ParallelDocuments:
    """
    The documents of a test set.

    Attributes:
        sources, targets: sentences of the corpus.
        references: text of the targets, with which translations are compared.
    """

    sources: list[list[str]]
    targets: list[list[str]]
    references: list[list[str]]


def collect(study: dict[str, Any], runs: list[TrainingRun], tests: dict[str, ParallelDocuments]) -> dict[str, Any]:
    """Collects scores, curves and trainings of all the runs that have not failed."""
    groups: dict[tuple, list[TrainingRun]] = {}
    for run in runs:
        groups.setdefault((run.system, run.value), []).append(run)
    translated = {
        (system, value, name): {run.seed: read(run, name, test) for run in members if not run.failure}
        for (system, value), members in groups.items()
        for name, test in tests.items()
    }
    rows = []
    for (system, value), members in groups.items():
        done = [run for run in members if not run.failure]
        curves = [curves_of(run) for run in done]
        others = {score: other for score, other in study["baseline"].items() if other != system}
        rows.append(
            {
                "system": system,
                "value": value,
                "seeds": [run.seed for run in done],
                "failures": {run.seed: run.failure for run in members if run.failure},
                "scores": {
                    name: score_test(
                        translated[system, value, name],
                        {score: translated[other, value, name] for score, other in others.items()},
                        test.references,
                    )
                    for name, test in tests.items()
                    if done
                },
                "updates": [updates_until(each, study["until"]) for each in curves] if study["until"] else None,
                "curves": curves,
                "trainings": [describe_training(run) for run in done],
            }
        )
    varied = next(iter(study["vary"]), None) if study["vary"] else None
    return {"baseline": study["baseline"], "varied": varied, "until": study["until"], "rows": rows}


def read(run: TrainingRun, name: str, test: ParallelDocuments) -> Translations:
    """Reads the translations of a test set, in the segments of the paper: those of training, by source and reference.
    Freely decoded translations stay in the segments in which they were made."""
    translations = run.translated(name)
    if not translations.aligned:
        return translations
    tokens = parse_recipe([str(run.recipe)])[1].segment_tokens
    processor = GTransformerProcessor.from_pretrained(run.folder)
    return translations.cut(segment_sizes(processor, test.sources, test.targets, tokens))


def updates_until(curves: dict[str, list[tuple[int, float]]], until: dict[str, float]) -> int | None:
    """Finds the update at which a validation loss first came down to its value; `None` if it never did."""
    [(name, value)] = until.items()
    return next((step for step, reached in curves.get(name, []) if reached <= value), None)


def score_test(
    translated: dict[int, Translations],
    baselines: dict[str, dict[int, Translations]],
    references: list[list[str]],
) -> dict[str, Any]:
    """
    Scores a system on a test set: every seed, mean and spread, and whether it differs from the baseline (over the
    seeds that both have, with documents as the unit); also counts the sentences in and out.

    Args:
        translated: translations of each seed.
        baselines: translations of each seed by the system that "s-BLEU" or "d-BLEU" is compared with.
    """
    scores: dict[str, Any] = {}
    for each in translated.values():
        scored = score_documents(each.documents, references, each.segments, aligned=each.aligned)
        for name in (score for score in SCORES if score in scored):
            values = scores.setdefault(name, {"seeds": [], "signature": scored[name]["signature"]})
            values["seeds"].append(scored[name]["score"])
    for name, values in scores.items():
        values["mean"] = mean(values["seeds"])
        values["spread"] = stdev(values["seeds"]) if len(values["seeds"]) > 1 else None
        values |= difference(name, translated, baselines.get(name.partition("/")[0], {}), references)
    scores["sentences"] = [asdict(each.counts) for each in translated.values()]
    return scores


def difference(
    score: str, translated: dict[int, Translations], baseline: dict[int, Translations], references: list[list[str]]
) -> dict[str, Any]:
    """Compares a score of two systems; the result is empty if `compare_systems` cannot compare them."""
    pairs: list[Any] = [(ours, baseline[seed]) for seed, ours in translated.items() if seed in baseline]
    if score == "d-BLEU/segment":  # the table shows exactly the scores that are compared
        pairs = [pair if pair[0].segments == pair[1].segments else None for pair in pairs]
    else:
        pairs = [[each.as_documents() for each in pair] for pair in pairs]
    if not pairs or None in pairs:
        return {}
    # Translations of a document by all seeds stay together as its segments, so that tests draw documents, not seeds.
    ours, theirs = zip(*pairs, strict=True)
    compared = compare_systems(
        joined([each.documents for each in ours]),
        joined([each.documents for each in theirs]),
        joined([references for _ in pairs]),
        joined([each.segments for each in ours]),
        aligned=ours[0].aligned,
        baseline_aligned=theirs[0].aligned,
    )
    return compared.get("s-BLEU" if score == "s-BLEU" else "d-BLEU/segment", {})


def joined(documents_of_seeds: list[list[list[Any]]]) -> list[list[Any]]:
    """Joins the segments of all seeds, document by document."""
    return [list(itertools.chain(*parts)) for parts in zip(*documents_of_seeds, strict=True)]


def describe_training(run: TrainingRun) -> dict[str, Any]:
    """Gives the minutes of a training since it was started or last continued, and the commits at which it ran."""
    [*_, seconds] = (each["train_runtime"] for each in read_state(run)["log_history"] if "train_runtime" in each)
    commits = list(dict.fromkeys(start["commit"] for start in read_starts(run.folder)))
    return {"minutes": round(seconds / 60, 1), "commits": commits}


def read_state(run: TrainingRun) -> dict[str, Any]:
    return json.loads((run.folder / TRAINER_STATE_NAME).read_text(encoding="utf-8"))


def curves_of(run: TrainingRun) -> dict[str, list[tuple[int, float]]]:
    """Reads the logged values of a training by name, as `(step, value)`."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for record in read_state(run)["log_history"]:
        for name in record:
            if name in ("loss", "eval_loss") or name.startswith("eval_entropy_"):
                curves.setdefault(name, []).append((record["step"], record[name]))
    return curves


def table(results: dict[str, Any]) -> str:
    """Formats the results as a Markdown table with a row per system and a column per test set and score."""
    rows = results["rows"]
    present = {(test, score) for row in rows for test, scores in row["scores"].items() for score in scores}
    tests: dict[str, Any] = next((row["scores"] for row in rows if row["scores"]), {})
    columns = [(test, score) for test in tests for score in SCORES if (test, score) in present]
    head = ["system", *([results["varied"]] if results["varied"] else []), "seeds"]
    until = [f"updates until {name} ≤ {value}" for name, value in (results["until"] or {}).items()]
    head += until or ["updates until the lowest validation loss"]
    entropies = [cross_entropies(row["curves"]) for row in rows]
    head += ["validation loss", *(["cross-attention, bits"] if any(entropies) else [])]
    lines = [head + [f"{test} {score}" for test, score in columns]]
    for row, entropy in zip(rows, entropies, strict=True):
        cells = [row["system"], *([str(row["value"])] if results["varied"] else []), str(len(row["seeds"]))]
        cells += [updates_in_words(row, results["until"]), lowest_loss(row["curves"])]
        cells += [entropy or "–"] if any(entropies) else []
        cells += [cell(row["scores"][test].get(score)) if row["scores"] else "failed" for test, score in columns]
        lines.append(cells)
    return "\n".join([markdown(lines), *(f"\n{note}" for note in notes(results))])


def updates_in_words(row: dict[str, Any], until: dict[str, float] | None) -> str:
    """Lists the updates of every run until the validation loss of `until`, or else until the lowest one."""
    if until:
        return ", ".join("never" if step is None else str(step) for step in row["updates"]) or "–"
    losses = [run["eval_loss"] for run in row["curves"] if "eval_loss" in run]
    return ", ".join(str(min(loss, key=itemgetter(1))[0]) for loss in losses) or "–"


def lowest_loss(curves: list[dict[str, list]]) -> str:
    """Averages the lowest validation losses of the runs."""
    lowest = [min(loss for _, loss in run["eval_loss"]) for run in curves if "eval_loss" in run]
    return f"{mean(lowest):.2f}" if lowest else "–"


def cross_entropies(curves: list[dict[str, list]]) -> str:
    """Averages the entropy of each kind of cross-attention at the end of the runs; the text is empty if nothing was
    measured."""
    prefix = "eval_entropy_cross_"
    kinds = sorted({name for run in curves for name in run if name.startswith(prefix)})
    ends = {kind: mean(run[kind][-1][1] for run in curves if kind in run) for kind in kinds}
    return ", ".join(f"{bits:.2f} {kind.removeprefix(prefix)}" for kind, bits in ends.items())


def notes(results: dict[str, Any]) -> Iterator[str]:
    """Writes the notes under the table: signatures, stars, systems that decoded freely, trainings, failures."""
    scored = [(row, test, scores) for row in results["rows"] for test, scores in row["scores"].items()]
    present = [(name, scores[name]) for _, _, scores in scored for name in SCORES if name in scores]
    for signature, names in _names_by({name: score["signature"] for name, score in present}):
        yield f"{names}: {signature}"
    compared = {name.partition("/")[0]: "no system" for name, score in present if "p_value" in score}
    compared |= {name.partition("/")[0]: r"\*" for name, score in present if _is_significant(score)}
    for (mark, other), names in _names_by(
        {name: (mark, results["baseline"][name]) for name, mark in compared.items()}
    ):
        test = "approximate randomization over the documents of these trainings, not over seeds"
        yield f"{mark} differs from {other} in {names} at p < {SIGNIFICANT} ({test})"
    of_segments = [score for name, score in present if name == "d-BLEU/segment"]
    if "d-BLEU" in compared and of_segments and not any("p_value" in score for score in of_segments):
        yield f"d-BLEU/segment is not tested against {results['baseline']['d-BLEU']}, whose segments differ"
    for row, test, scores in scored:
        if "s-BLEU" not in scores:
            counts = "; ".join(str(SentenceCounts(**each)) for each in scores["sentences"])
            yield f"{label_of(row)}, {test}, decoded freely, in its own segments: {counts}"
    yield from note_on_trainings([training for row in results["rows"] for training in row.get("trainings", [])])
    for row in results["rows"]:
        yield from (f"{label_of(row)}, seed {seed}: {failure}" for seed, failure in row["failures"].items())


def _names_by(properties: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """Groups the names of scores by their property."""
    for value in dict.fromkeys(properties.values()):
        yield value, ", ".join(sorted(name for name, each in properties.items() if each == value))


def label_of(row: dict[str, Any]) -> str:
    """Names the system of a row and, if the study varies an argument, its value."""
    return row["system"] if row["value"] is None else f"{row['system']}, {row['value']}"


def note_on_trainings(trainings: list[dict[str, Any]]) -> Iterator[str]:
    """Says how long a training took, and at which commits if every training knows its own."""
    if trainings:
        minutes = median(training["minutes"] for training in trainings)
        yield f"trainings took {minutes:.1f} minutes (median), since they were started or last continued"
    if trainings and all(training["commits"] for training in trainings):
        commits = dict.fromkeys(commit for training in trainings for commit in training["commits"])
        yield f"trained at {', '.join(commits)}"


def cell(score: dict[str, Any] | None) -> str:
    if score is None:
        return "–"
    spread = f" ± {score['spread']:.2f}" if score["spread"] is not None else ""
    star = r"\*" if _is_significant(score) else ""
    return f"{score['mean']:.2f}{spread}{star}"


def _is_significant(score: dict[str, Any]) -> bool:
    return score.get("p_value", 1) < SIGNIFICANT
