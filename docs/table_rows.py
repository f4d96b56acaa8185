"""Functions that make table rows from results files; `tables.yaml` refers to them by name."""

import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


Record = dict[str, Any]
# Labels of a row, and its figures.
Row = tuple[tuple[Any, ...], Mapping[str, Any]]
NAMES = {
    "mbart": "MBart",
    "mbart-sentences": "MBart on single sentences",
    "mbart-32": "MBart on single sentences, 32 a batch",
    "mbart-64": "MBart on single sentences, 64 a batch",
    "gtransformer": "G-Transformer",
    "gtransformer, saved": "G-Transformer, its own checkpoint",
    "gtransformer-k0": "group attention only",
    "gtransformer-int8": "G-Transformer, int8",
    "gtransformer-source": "G-Transformer, context of the source alone",
    "gtransformer-source-int8": "G-Transformer, context of the source alone, int8",
    "ctranslate2": "CTranslate2 on single sentences, float32",
    "ctranslate2-int8": "CTranslate2 on single sentences, int8",
    "1 beams": "greedy",
    "first": "first start",
    "second": "second start",
    "shuffled": "the same sentences in another order",
    "other": "sentences of other documents",
    "none": "no context",
}


class Figures(dict):
    """An object of a results file. Formats may use numbers as keys; a comparison is formatted with its interval."""

    def __init__(self, values: Record):
        super().__init__(values)
        if "p_value" in self:
            self["p_value"] = PValue(self["p_value"])

    def __missing__(self, key: int) -> Any:
        if str(key) not in self:
            raise KeyError(key)
        return self[str(key)]

    def __format__(self, form: str) -> str:
        value = self["gain"] if "gain" in self else self["difference"]
        low, high = self["interval"]
        return f"{value:{form}} [{low:{form}}, {high:{form}}]"


class Seeds(list):
    """Values of a figure in runs with several seeds, formatted as mean ± standard deviation."""

    def __truediv__(self, others: list[float]) -> "Seeds":
        return Seeds(value / other for value, other in zip(self, others, strict=True))

    def __format__(self, form: str) -> str:
        if form.endswith("%"):
            return f"{Seeds(100 * value for value in self):{form[:-1]}f} %"
        spread = f" ± {statistics.stdev(self):{form}}" if len(self) > 1 else ""
        return f"{statistics.mean(self):{form}}{spread}"


class PValue(float):
    """A p-value; 2,000 trials resolve no less than 0.001."""

    def __format__(self, form: str) -> str:
        return f"p = {float(self):.3f}" if self >= 0.001 else "p < 0.001"


class Points(dict):
    """A difference of shares, in percentage points."""

    def __format__(self, form: str) -> str:
        value, low, high = (100 * each for each in (self["difference"], *self["interval"]))
        return f"{value:+.1f} points [{low:+.1f}, {high:+.1f}], {self['p_value']}"


def merged(records: list[Any]) -> Any:
    """Merges records of several seeds, with `Seeds` as figures."""
    if isinstance(records[0], dict):
        return {key: merged([record[key] for record in records]) for key in records[0]}
    return Seeds(records)


def nested(figures: Mapping[str, Any], depth: int, *above: str) -> Iterator[Row]:
    """Yields a row for every dictionary at a depth, labelled by its keys."""
    if not depth:
        yield above, figures
        return
    for key, value in figures.items():
        if isinstance(value, dict):
            yield from nested(value, depth - 1, *above, NAMES.get(key, key))


def by_system(labels: None, record: Record) -> Iterator[Row]:
    """Yields a row per system, with its figures by setting, from results by setting."""
    settings = {name: row for name, row in record["results"].items() if isinstance(row, dict)}
    for system in next(iter(settings.values())):
        yield (NAMES.get(system, system),), {name: row[system] for name, row in settings.items()}


def once(labels: None, *records: Record) -> Iterator[Row]:
    """Yields one row with the figures of all files as labels."""
    yield tuple(record.get("results") or record["scores"] for record in records), {}


def by_file(labels: list[str], *records: Record) -> Iterator[Row]:
    for label, record in zip(labels, records, strict=True):
        yield (label,), record


def listed(labels: None, record: Record) -> Iterator[Row]:
    for row in record["rows"]:
        yield (), row


def first_examples(labels: list[str], *records: Record) -> Iterator[Row]:
    """Yields the first three non-initial sentences that equal their reference only in their document."""
    for label, record in zip(labels, records, strict=True):
        found = [example for example in record["examples"]["only_in_document"] if example["previous"]]
        for example in found[:3]:
            yield (label,), example


def serving(labels: None, record: Record) -> Iterator[Row]:
    """Yields medians over repeats, and memory after each."""
    repeats = record["results"]["repeats"]
    for name in repeats[0]:
        runs = [{**repeat[name], "direct": repeat["direct"]["requests_per_second"]} for repeat in repeats]
        figures: Record = {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}
        figures["ratio"] = statistics.median(run["requests_per_second"] / run["direct"] for run in runs)
        figures["memory"] = ", ".join(f"{run['memory_mb']:.0f}" for run in runs if "memory_mb" in run)
        if "lost" in runs[0]:
            figures["lost"] = sum(run["lost"] for run in runs)
        yield (name,), figures


def hostile_text(labels: None, record: Record) -> Iterator[Row]:
    """Yields the slowest kind and the total of every format, and a row per failed kind."""
    for name, kinds in nested(record["results"], 1):
        failures = {kind: row["failure"] for kind, row in kinds.items() if "failure" in row}
        for kind, failure in failures.items():
            yield (*name, kind, failure), {"kinds": 1}
        done = [row for kind, row in kinds.items() if kind not in failures]
        steps = ("read", "placeholders", "rejoined twice")
        seconds = {kind: sum(row[step] for step in steps) for kind, row in kinds.items() if kind not in failures}
        slowest, memory = max(seconds, key=lambda kind: seconds[kind]), max(row["peak GB so far"] for row in done)
        figures = {"kinds": len(done), "all": sum(seconds.values()), "memory": memory}
        yield (*name, slowest, f"{seconds[slowest]:.0f}"), figures


def memory(labels: None, record: Record) -> Iterator[Row]:
    """Yields a row per model, precision and number of GPUs: tokens by card, without and with checkpointing."""
    for name, row in record["results"].items():
        for gpus in row["fixed_bytes"]:
            tokens = row["max_tokens"][gpus], row["max_tokens"][f"{gpus} with checkpointing"]
            yield (name, gpus.removesuffix("s").removesuffix(" GPU"), *tokens), {}


def studies(labels: list[list[str]], *records: Record) -> Iterator[Row]:
    for label, record in zip(labels, records, strict=True):
        minutes = [training["minutes"] for row in record["rows"] for training in row.get("trainings", [])]
        seeds = sorted({len(row["seeds"]) for row in record["rows"]})
        figures = {"systems": len(record["rows"]), "seeds": " to ".join(map(str, seeds))}
        yield tuple(label), {**figures, "minutes": f"{statistics.median(minutes):.1f}" if minutes else "–"}


def lost_sentences(labels: dict[str, str], *seeds: Record) -> Iterator[Row]:
    """Yields a row per translator, with means and spreads over seeds; the reference has no seeds."""
    for kind, label in labels.items():
        counts = [row for seed in seeds for name, row in seed["counts"].items() if name.startswith(kind)]
        yield (label, counts[0]["in"]), merged(counts[:1] if kind == "reference" else counts)


def gains(labels: None, *seeds: Record) -> Iterator[Row]:
    """Yields a row per context with the gains of the document over it; means and spreads over several seeds."""
    return nested(merged([*seeds])["gains"] if len(seeds) > 1 else seeds[0]["gains"], 1)


def address(labels: None, record: Record) -> Iterator[Row]:
    """Yields forms of address and their consistency; means and spreads over the seeds of a system."""
    systems: dict[str, list[Record]] = {}
    for name, row in record["scores"].items():
        systems.setdefault(name if name == "reference" else Path(name).parts[-3], []).append(row)
    for system, seeds in systems.items():
        row = merged(seeds)
        if system == "reference":
            del row["as_reference"]
        yield (system,), row
    if "differences" in record:
        yield (
            ("the first against the second",),
            {kind: {"share": Points(row)} for kind, row in record["differences"].items()},
        )


def conformance(labels: Any, record: Record) -> Iterator[Row]:
    return nested(record["results"]["formats"], 1)
