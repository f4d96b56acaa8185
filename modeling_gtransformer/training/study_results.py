"""Results of a study: scores with means, spreads and significance, training curves, a table, and figures."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import getitem, itemgetter
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from transformers.trainer import TRAINER_STATE_NAME

from ..evaluation.metrics import score_documents
from ..evaluation.provenance import read_starts
from ..evaluation.report import markdown
from ..evaluation.translations import (
    SentenceCounts,
    Translations,
    compare_translations,
    read_translations,
    segment_sizes,
)
from ..processing_gtransformer import GTransformerProcessor
from ..runtime.atomic_file import read_json
from .recipe import parse_recipe


SCORES = ("s-BLEU", "d-BLEU/segment", "d-BLEU/document")
SIGNIFICANT = 0.01
Results = dict[str, Any]


@dataclass(frozen=True)
class ParallelDocuments:
    """The documents of a test set."""

    sources: list[list[str]]
    targets: list[list[str]]
    references: list[list[str]]  # detokenized targets


def collect(
    study: Results, runs: Sequence[Any], tests: dict[str, ParallelDocuments], text: Callable[[str], str]
) -> Results:
    """Collects scores, curves and trainings of all runs that succeeded; `text` detokenizes a sentence."""
    groups: dict[tuple, list[Any]] = {}
    for run in runs:
        groups.setdefault((run.system, run.value), []).append(run)
    translated = {
        (*group, name): {run.seed: read(run, name, test, text) for run in members if not run.failure}
        for group, members in groups.items()
        for name, test in tests.items()
    }
    rows = []
    for (system, value), members in groups.items():
        done = [run for run in members if not run.failure]
        curves = [curves_of(run.folder) for run in done]
        others = {score: other for score, other in study["baseline"].items() if other != system}
        scores = {
            name: score_test(
                translated[system, value, name],
                {score: translated[other, value, name] for score, other in others.items()},
                test.references,
            )
            for name, test in tests.items()
            if done
        }
        rows.append(
            {
                "system": system,
                "value": value,
                "seeds": [run.seed for run in done],
                "failures": {run.seed: run.failure for run in members if run.failure},
                "scores": scores,
                "updates": [updates_until(each, study["until"]) for each in curves] if study["until"] else None,
                "curves": curves,
                "trainings": [describe_training(run.folder) for run in done],
            }
        )
    varied = next(iter(study["vary"]), None) if study["vary"] else None
    return {"baseline": study["baseline"], "varied": varied, "until": study["until"], "rows": rows}


def read(run: Any, name: str, test: ParallelDocuments, text: Callable[[str], str]) -> Translations:
    """Reads the translations of a test set, cut into the segments of the paper by source and reference. Freely decoded
    translations keep their segments."""
    translations = read_translations(run.folder / f"{name}.jsonl", plain=text)
    if not translations.aligned:
        return translations
    tokens = parse_recipe([str(run.folder / "recipe.yaml")])[1].segment_tokens
    processor = GTransformerProcessor.from_pretrained(run.folder)
    return translations.cut(segment_sizes(processor, test.sources, test.targets, tokens))


def updates_until(curves: dict[str, list[tuple[int, float]]], until: dict[str, float]) -> int | None:
    """Returns the first update with the given validation loss; `None` if no update reached it."""
    [(name, value)] = until.items()
    return next((step for step, reached in curves.get(name, []) if reached <= value), None)


def score_test(
    translated: dict[int, Translations],
    baselines: dict[str, dict[int, Translations]],
    references: list[list[str]],
) -> Results:
    """
    Scores the translations of each seed of a system: every seed, mean and spread, numbers of sentences, and the
    significance of differences from the baselines of "s-BLEU" and "d-BLEU" over common seeds, by documents.
    """
    scored = [score_documents(t.documents, references, t.segments, aligned=t.aligned) for t in translated.values()]
    compared: Results = {}
    for kind, baseline in baselines.items():
        if seeds := [seed for seed in translated if seed in baseline]:
            ours, theirs = ([system[seed] for seed in seeds] for system in (translated, baseline))
            compared[kind] = compare_translations(ours, theirs, references)
    scores: Results = {}
    for name in SCORES:
        if name in scored[0]:
            values = [each[name]["score"] for each in scored]
            spread = stdev(values) if len(values) > 1 else None
            scores[name] = {"seeds": values, "signature": scored[0][name]["signature"]}
            scores[name] |= {"mean": mean(values), "spread": spread}
            scores[name] |= compared.get(name.partition("/")[0], {}).get(name, {})
    return {**scores, "sentences": [asdict(each.counts) for each in translated.values()]}


def describe_training(folder: Path) -> Results:
    """Returns the minutes since a training was started or last continued, and its commits."""
    history = read_json(folder / TRAINER_STATE_NAME, {})["log_history"]
    [*_, seconds] = (each["train_runtime"] for each in history if "train_runtime" in each)
    commits = list(dict.fromkeys(start["commit"] for start in read_starts(folder)))
    return {"minutes": round(seconds / 60, 1), "commits": commits}


def curves_of(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Returns the logged values of a training by name, as `(step, value)`."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for record in read_json(folder / TRAINER_STATE_NAME, {})["log_history"]:
        for name in record:
            if name in ("loss", "eval_loss") or name.startswith("eval_entropy_"):
                curves.setdefault(name, []).append((record["step"], record[name]))
    return curves


def table(results: Results) -> str:
    """Formats the results as a Markdown table, with a row per system and a column per test set and score."""
    rows, varied, until = results["rows"], results["varied"], results["until"]
    tests: Results = next((row["scores"] for row in rows if row["scores"]), {})
    present = {(test, score) for row in rows for test, scores in row["scores"].items() for score in scores}
    columns = [(test, score) for test in tests for score in SCORES if (test, score) in present]
    reached = [f"{name} ≤ {value}" for name, value in (until or {}).items()] or ["the lowest validation loss"]
    entropies = [cross_entropies(row["curves"]) for row in rows]
    head = ["system", *([varied] if varied else []), "seeds", f"updates until {reached[0]}", "validation loss"]
    head += ["cross-attention, bits"] if any(entropies) else []
    lines = [head + [f"{test} {score}" for test, score in columns]]
    for row, entropy in zip(rows, entropies, strict=True):
        lowest = [min(each["eval_loss"], key=itemgetter(1)) for each in row["curves"] if "eval_loss" in each]
        updates = row["updates"] if until else [step for step, _ in lowest]
        cells = [row["system"], *([str(row["value"])] if varied else []), str(len(row["seeds"]))]
        cells.append(", ".join("never" if step is None else str(step) for step in updates) or "–")
        cells.append(f"{mean(loss for _, loss in lowest):.2f}" if lowest else "–")
        cells += [entropy or "–"] if any(entropies) else []
        cells += [cell(row["scores"][test].get(score)) if row["scores"] else "failed" for test, score in columns]
        lines.append(cells)
    return "\n".join([markdown(lines), *(f"\n{note}" for note in notes(results))])


def cross_entropies(curves: list[dict[str, list]]) -> str:
    """Averages the final entropy of each kind of cross-attention over runs; empty if not measured."""
    prefix = "eval_entropy_cross_"
    kinds = sorted({name for run in curves for name in run if name.startswith(prefix)})
    ends = {kind: mean(run[kind][-1][1] for run in curves if kind in run) for kind in kinds}
    return ", ".join(f"{bits:.2f} {kind.removeprefix(prefix)}" for kind, bits in ends.items())


def cell(score: Results | None) -> str:
    if score is None:
        return "–"
    spread = f" ± {score['spread']:.2f}" if score["spread"] is not None else ""
    return f"{score['mean']:.2f}{spread}{_star(score)}"


def _star(score: Results) -> str:
    return r"\*" if score.get("p_value", 1) < SIGNIFICANT else ""


def notes(results: Results) -> Iterator[str]:
    """Yields notes for the table: signatures, significance, free decoding, trainings, failures."""
    scored = [(row, test, scores) for row in results["rows"] for test, scores in row["scores"].items()]
    present = [(name, scores[name]) for _, _, scores in scored for name in SCORES if name in scores]
    for signature, names in _names_by({name: score["signature"] for name, score in present}):
        yield f"{names}: {signature}"
    compared = {name.partition("/")[0]: "no system" for name, score in present if "p_value" in score}
    compared |= {name.partition("/")[0]: r"\*" for name, score in present if _star(score)}
    marks = {name: (mark, results["baseline"][name]) for name, mark in compared.items()}
    for (mark, other), names in _names_by(marks):
        test = "approximate randomization over the documents of these trainings, not over seeds"
        yield f"{mark} differs from {other} in {names} at p < {SIGNIFICANT} ({test})"
    of_segments = [score for name, score in present if name == "d-BLEU/segment"]
    if "d-BLEU" in compared and of_segments and not any("p_value" in score for score in of_segments):
        yield f"d-BLEU/segment is not tested against {results['baseline']['d-BLEU']}, whose segments differ"
    for row, test, scores in scored:
        if "s-BLEU" not in scores:
            counts = "; ".join(str(SentenceCounts(**each)) for each in scores["sentences"])
            yield f"{label_of(row)}, {test}, decoded freely, in its own segments: {counts}"
    trainings = [training for row in results["rows"] for training in row.get("trainings", [])]
    if trainings:
        minutes = median(training["minutes"] for training in trainings)
        yield f"trainings took {minutes:.1f} minutes (median), since they were started or last continued"
    if trainings and all(training["commits"] for training in trainings):
        yield f"trained at {', '.join(dict.fromkeys(itertools.chain(*(each['commits'] for each in trainings))))}"
    for row in results["rows"]:
        yield from (f"{label_of(row)}, seed {seed}: {failure}" for seed, failure in row["failures"].items())


def _names_by(properties: Results) -> Iterator[tuple[Any, str]]:
    """Groups the names of scores by their property."""
    for value in dict.fromkeys(properties.values()):
        yield value, ", ".join(sorted(name for name, each in properties.items() if each == value))


def label_of(row: Results) -> str:
    """Returns a label with the system and, if the study varies an argument, its value."""
    return row["system"] if row["value"] is None else f"{row['system']}, {row['value']}"


def draw_figures(results: Results, folder: Path) -> None:
    """Writes `loss.svg` and, depending on the results, `entropy.svg`, `bleu.svg` and `updates.svg`."""
    rows = [row for row in results["rows"] if row["curves"]]
    if not rows:
        return

    def curves(*names: str) -> dict[str, list]:
        """Returns a list of curves, one per seed, for each label."""
        return {
            label_of(row) + f", {name.rpartition('_')[2]}" * (len(names) > 1): found
            for row in rows
            for name in names
            if (found := [zip(*each[name], strict=True) for each in row["curves"] if name in each])
        }

    def over_values(*keys: str) -> dict[str, list]:
        """Returns a list of lines over the varied argument, one per seed, for each system."""
        systems: dict[str, list] = {}
        for row in rows:
            figures = reduce(getitem, keys, row)
            systems.setdefault(row["system"], []).append([float("nan") if n is None else n for n in figures])
        values = [str(value) for value in dict.fromkeys(row["value"] for row in rows)]
        return {name: [(values, seed) for seed in zip(*seeds, strict=False)] for name, seeds in systems.items()}

    losses = {"Training loss": curves("loss"), "Validation loss": curves("eval_loss")}
    draw(folder / "loss.svg", losses, "updates", "nats per token")
    entropies = {
        f"{stack.capitalize()} attention": curves(f"eval_entropy_{stack}_group", f"eval_entropy_{stack}_global")
        for stack in ("encoder", "decoder", "cross")
    }
    if any(entropies.values()):
        draw(folder / "entropy.svg", entropies, "updates", "bits", ylim=0)
    if results["varied"]:
        panels = {test: over_values("scores", test, "d-BLEU/document", "seeds") for test in rows[0]["scores"]}
        draw(folder / "bleu.svg", panels, results["varied"], "d-BLEU", ylim=0)
        if results["until"]:
            panels = {"": over_values("updates")}
            draw(folder / "updates.svg", panels, results["varied"], "updates until the loss is reached", ylim=0)


def draw(file: Path, panels: dict[str, dict[str, list]], xlabel: str, ylabel: str, **limits: float) -> None:
    """Draws panels with a common legend. Each label has a colour, and each seed a line."""
    import matplotlib.pyplot as plt

    labels = list(dict.fromkeys(itertools.chain(*panels.values())))
    colors = plt.colormaps["tab10" if len(labels) <= 10 else "tab20"]
    color_of = {label: colors(number % 20) for number, label in enumerate(labels)}
    figure, axes = plt.subplots(
        1, len(panels), figsize=(4.5 * len(panels), 3.5), squeeze=False, sharey=True, layout="constrained"
    )
    for panel, (title, lines) in zip(axes[0], panels.items(), strict=True):
        for label, seeds in lines.items():
            for x, y in seeds:
                panel.plot(x, y, color=color_of[label], linewidth=1.2, marker="." if len(x) < 10 else None)
        panel.set(title=title, xlabel=xlabel, ylabel=ylabel if panel is axes[0][0] else None, **limits)
        panel.grid(alpha=0.3)
    entries = [plt.Line2D([], [], color=color, label=label) for label, color in color_of.items()]
    figure.legend(handles=entries, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(file)
    plt.close(figure)
