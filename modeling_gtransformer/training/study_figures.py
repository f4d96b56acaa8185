"""The figures of a study: losses and attention entropies over the steps, BLEU over what the study varies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes


STACKS = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross-attention"}
KINDS = {"group": "--", "global": "-"}


def draw_figures(results: dict[str, Any], folder: Path) -> None:
    """Writes `loss.svg`, and as far as the results have them `entropy.svg` and `bleu.svg`."""
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


def draw_curves(panel: Axes, row: dict[str, Any], name: str, label: str, color: str, style: str = "-") -> None:
    """A line per seed, of which the first is named."""
    for curves in row["curves"]:
        if name in curves:
            steps, values = zip(*curves[name], strict=True)
            panel.plot(steps, values, style, color=color, label=label, linewidth=1.2)
            label = "_"


def draw_bleu(results: dict[str, Any], file: Path) -> None:
    """d-BLEU over the values of the argument that the study varies, a panel per test set; dots are seeds."""
    rows = [row for row in results["rows"] if row["scores"]]
    tests = list(rows[0]["scores"])
    values = list(dict.fromkeys(row["value"] for row in rows))
    figure, axes = plt.subplots(1, len(tests), figsize=(4.5 * len(tests), 3.5), squeeze=False, layout="constrained")
    for panel, test in zip(axes[0], tests, strict=True):
        systems = list(dict.fromkeys(row["system"] for row in rows))
        for system, color in zip(systems, distinct_colors(len(systems)), strict=True):
            scores = {row["value"]: row["scores"][test] for row in rows if row["system"] == system}
            places = [values.index(value) for value in scores]
            bleu = [score["d-BLEU/document"] for score in scores.values()]
            panel.plot(places, [score["mean"] for score in bleu], color=color, label=system)
            for place, score in zip(places, bleu, strict=True):
                panel.plot([place] * len(score["seeds"]), score["seeds"], "o", color=color, markersize=4)
        panel.set(title=test, xlabel=results["varied"], ylabel="d-BLEU", ylim=0)
        panel.set_xticks(range(len(values)), values)
    finish(figure, axes[0], file)


def distinct_colors(number: int) -> list:
    """As many colours as there are lines; ten of them are easier to tell apart than more."""
    return [f"C{i}" for i in range(number)] if number <= 10 else list(plt.cm.turbo(np.linspace(0, 1, number)))


def label_of(row: dict[str, Any]) -> str:
    return row["system"] if row["value"] is None else f"{row['system']}, {row['value']}"


def finish(figure, axes: Sequence[Axes], file: Path) -> None:
    """One legend for all panels, and the file."""
    entries: dict[str, Any] = {}
    for panel in axes:
        panel.grid(alpha=0.3)
        handles, labels = panel.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(file)
    plt.close(figure)
