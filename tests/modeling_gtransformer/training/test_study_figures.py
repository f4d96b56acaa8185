"""The figures of a study draw what its results hold, and nothing else."""

import pytest
from tiny import STACKS

from modeling_gtransformer.training import study_figures
from modeling_gtransformer.training.study_figures import draw_figures


def row(system, value=None, curves=(), **tests):
    scores = {
        name: {"d-BLEU/document": {"seeds": seeds, "mean": sum(seeds) / len(seeds)}} for name, seeds in tests.items()
    }
    return {"system": system, "value": value, "curves": list(curves), "scores": scores}


def drawn_line(line):
    return line.get_label(), line.get_linestyle(), *map(list, line.get_data())


@pytest.fixture
def panels(monkeypatch):
    """For every figure, by panel, what is drawn: label, style and points of every line."""
    drawn = {}
    finish = study_figures.finish

    def record(figure, axes, file):
        drawn[file.name] = {panel.get_title(): [*map(drawn_line, panel.lines)] for panel in axes}
        finish(figure, axes, file)

    monkeypatch.setattr(study_figures, "finish", record)
    return drawn


def test_losses_of_every_seed(panels, tmp_path):
    curves = [{"loss": [(1, 5.0), (2, 4.0)], "eval_loss": [(2, 4.5)]}, {"loss": [(1, 6.0)]}]
    draw_figures({"rows": [row("base", curves=curves), row("failed")], "varied": None}, tmp_path)
    assert list(panels) == ["loss.svg"] == [file.name for file in tmp_path.iterdir()]
    training, validation = panels["loss.svg"].values()
    # Of the lines of a system the first is in the legend.
    assert training == [("base", "-", [1, 2], [5.0, 4.0]), ("_", "-", [1], [6.0])]
    assert validation == [("base", "-", [2], [4.5])]


def test_entropies_of_every_stack_and_kind(panels, tmp_path):
    names = [f"eval_entropy_{stack}_{kind}" for stack in STACKS for kind in ("group", "global")]
    curves = {name: [(1, float(number))] for number, name in enumerate(names)}
    draw_figures({"rows": [row("base", 512, [curves])], "varied": None}, tmp_path)
    encoder, decoder, cross = panels["entropy.svg"].values()
    assert encoder == [("base, 512, group", "--", [1], [0.0]), ("base, 512, global", "-", [1], [1.0])]
    assert [line[3] for line in decoder + cross] == [[2.0], [3.0], [4.0], [5.0]]


def test_bleu_over_the_argument_that_varies(panels, tmp_path):
    """Every value has its place, also where a system has none; dots are seeds."""
    rows = [row("a", value, [{}], test=seeds) for value, seeds in ((64, [10.0, 12.0]), (512, [20.0, 20.0]))]
    rows.append(row("b", 512, [{}], test=[30.0]))
    draw_figures({"rows": rows, "varied": "segment_tokens", "until": None}, tmp_path)
    [lines] = panels["bleu.svg"].values()
    means = {label: points for label, style, *points in lines if style == "-"}
    assert means == {"a": [[0, 1], [11.0, 20.0]], "b": [[1], [30.0]]}
    dots = [points for _, style, *points in lines if style == "None"]
    assert dots == [[[0, 0], [10, 12]], [[1, 1], [20, 20]], [[1], [30]]]


def test_updates_until_a_loss_over_the_argument_that_varies(panels, tmp_path):
    """Where a seed has never reached it, the others are dots and the line leaves it out."""
    updates = {("a", 64): [50, 150], ("a", 512): [200], ("b", 64): [90], ("b", 512): [None, 300]}
    rows = [{**row(*place, [{}], test=[1.0]), "updates": steps} for place, steps in updates.items()]
    draw_figures({"rows": rows, "varied": "segment_tokens", "until": {"eval_loss": 0.1}}, tmp_path)
    [lines] = panels["updates.svg"].values()
    means = {label: points for label, style, *points in lines if style == "-"}
    assert means == {"a": [[0, 1], [100, 200]], "b": [[0], [90]]}
    dots = [points for _, style, *points in lines if style == "None"]
    assert dots == [[[0, 0], [50, 150]], [[1], [200]], [[0], [90]], [[1], [300]]]


def test_without_a_run_that_succeeded_there_is_no_figure(panels, tmp_path):
    draw_figures({"rows": [row("failed")], "varied": "segment_tokens", "until": None}, tmp_path)
    assert not panels and not list(tmp_path.iterdir())
