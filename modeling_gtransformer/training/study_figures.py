"""Figures of a study: losses and attention entropies over the steps, BLEU and updates over the varied argument."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from .study_results import label_of


STACKS = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross-attention"}
KINDS = {"group": "--", "global": "-"}


def draw_figures(results: dict[str, Any], folder: Path) -> None:
    """Writes `loss.svg` and, if the results have their values, `entropy.svg`, `bleu.svg` and `updates.svg`."""
    rows = [row for row in results["rows"] if row["curves"]]
    if not rows:
        return
    colors = dict(zip(map(id, rows), distinct_colors(len(rows)), strict=True))

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
    for panel, name, title in zip(axes, ("loss", "eval_loss"), ("Training loss", "Validation loss"), strict=True):
        for row in rows:
            draw_curves(panel, row, name, label_of(row), colors[id(row)])
        panel.set(title=title, xlabel="updates", ylabel="nats per token" if panel is axes[0] else None)
    finish(figure, axes, folder / "loss.svg")

    kinds = {name for row in rows for curves in row["curves"] for name in curves if "entropy" in name}
    if kinds:
        figure, axes = plt.subplots(1, 3, figsize=(12, 3.5), layout="constrained")
        for panel, (stack, title) in zip(axes, STACKS.items(), strict=True):
            for row in rows:
                for kind, style in KINDS.items():
                    label = f"{label_of(row)}, {kind}"
                    draw_curves(panel, row, f"eval_entropy_{stack}_{kind}", label, colors[id(row)], style)
            panel.set(title=title, xlabel="updates", ylabel="bits" if panel is axes[0] else None, ylim=0)
        finish(figure, axes, folder / "entropy.svg")

    if results["varied"]:
        draw_bleu(results, folder / "bleu.svg")
        if results["until"]:
            draw_updates(results, folder / "updates.svg")


def draw_curves(panel: Axes, row: dict[str, Any], name: str, label: str, color: str, style: str = "-") -> None:
    """Draws a line per seed; only the first has a label."""
    for curves in row["curves"]:
        if name in curves:
            steps, values = zip(*curves[name], strict=True)
            panel.plot(steps, values, style, color=color, label=label, linewidth=1.2)
            label = "_"


def draw_bleu(results: dict[str, Any], file: Path) -> None:
    """Draws d-BLEU over the values of the argument that the study varies, in a panel per test set."""
    rows = [row for row in results["rows"] if row["scores"]]
    tests = list(rows[0]["scores"])
    figure, axes = plt.subplots(1, len(tests), figsize=(4.5 * len(tests), 3.5), squeeze=False, layout="constrained")
    for panel, test in zip(axes[0], tests, strict=True):
        draw_over_values(panel, rows, [row["scores"][test]["d-BLEU/document"]["seeds"] for row in rows])
        panel.set(title=test, xlabel=results["varied"], ylabel="d-BLEU", ylim=0)
    finish(figure, axes[0], file)


def draw_updates(results: dict[str, Any], file: Path) -> None:
    """Draws the updates until a validation loss was reached, over the values of the argument that the study varies."""
    [(name, value)] = results["until"].items()
    figure, panel = plt.subplots(figsize=(4.5, 3.5), layout="constrained")
    rows = [row for row in results["rows"] if row["updates"]]
    draw_over_values(panel, rows, [row["updates"] for row in rows])
    panel.set(xlabel=results["varied"], ylabel=f"updates until {name} ≤ {value}", ylim=0)
    finish(figure, [panel], file)


def draw_over_values(panel: Axes, rows: list[dict[str, Any]], measured: list[list[float | None]]) -> None:
    """Draws dots for the seeds, and a line per system through their means where every seed has a number."""
    values = list(dict.fromkeys(row["value"] for row in rows))
    systems = list(dict.fromkeys(row["system"] for row in rows))
    for system, color in zip(systems, distinct_colors(len(systems)), strict=True):
        means: dict[int, float] = {}
        for row, seeds in zip(rows, measured, strict=True):
            if row["system"] == system:
                place = values.index(row["value"])
                numbers = [number for number in seeds if number is not None]
                panel.plot([place] * len(numbers), numbers, "o", color=color, markersize=4)
                if len(numbers) == len(seeds):
                    means[place] = mean(numbers)
        panel.plot(list(means), list(means.values()), color=color, label=system)
    panel.set_xticks(range(len(values)), values)


def distinct_colors(number: int) -> list:
    """Gives one colour per line; up to ten colours come from a palette that is easier to tell apart."""
    return [f"C{i}" for i in range(number)] if number <= 10 else list(plt.cm.turbo(np.linspace(0, 1, number)))


def finish(figure, axes: Sequence[Axes], file: Path) -> None:
    """Adds one legend for all panels, and writes the file."""
    entries: dict[str, Any] = {}
    for panel in axes:
        panel.grid(alpha=0.3)
        handles, labels = panel.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(file)
    plt.close(figure)
