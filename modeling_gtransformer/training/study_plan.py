"""The plan of a study: its YAML file, checked, and a training with translations for every system and seed."""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from ..corpora.corpus_files import has_columns
from ..evaluation.translations import Translations, read_translations
from ..translation_options import CorpusOptions
from .recipe import extended, find_recipe, parse_recipe, read_yaml


DEFAULTS: dict[str, Any] = {"arguments": {}, "seeds": [1], "generation": {}, "detokenize": None}
DEFAULTS |= {"baseline": None, "vary": None, "until": None}
SYSTEM_DEFAULTS: dict[str, Any] = {"arguments": {}, "generation": {}}
# Scores that may have baselines of their own.
BASELINE_SCORES = ("s-BLEU", "d-BLEU")


@dataclass
class TrainingRun:
    """One system with one seed."""

    system: str
    seed: int
    value: Any  # the value of the argument that the study varies
    folder: Path
    plain: Callable[[str], str]  # turns a translated sentence into text
    start: "TrainingRun | None" = None
    failure: str | None = None
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def name(self) -> str:
        return f"{self.folder.parent.name}, seed {self.seed}"

    @property
    def stage(self) -> int:
        """Number of runs that must come before this one, each starting from the one before."""
        return self.start.stage + 1 if self.start else 0

    @property
    def recipe(self) -> Path:
        return self.folder / "recipe.yaml"

    def translations(self, test: str) -> Path:
        return self.folder / f"{test}.jsonl"

    def translated(self, test: str) -> Translations:
        return read_translations(self.translations(test), plain=self.plain)


def read_study(path: str) -> dict[str, Any]:
    """
    Reads a study, and fills in defaults.

    Raises:
        ValueError: unknown or missing keys, or systems that do not exist.
    """
    study = read_yaml(path)
    known = {"systems", "test", *DEFAULTS}
    if unknown := sorted(set(study) - known):
        raise ValueError(f"{path}: unknown keys {', '.join(unknown)}; known are {', '.join(sorted(known))}.")
    study = _filled(study, DEFAULTS)
    if not study.get("systems") or not study.get("test"):
        raise ValueError(f"{path}: a study needs systems and test.")
    named = {name: study[name] or {} for name in ("systems", "test", "vary", "until", "arguments", "generation")}
    _check_mappings(named, path)
    _check_mappings(study["systems"], path)
    study["systems"] = {name: _filled(system, SYSTEM_DEFAULTS) for name, system in study["systems"].items()}
    _check_mappings(study["test"], path)
    _check_lists([study["seeds"], *(study["vary"] or {}).values()], path)
    _check_systems(study["systems"], path)
    _check_tests(study["test"], path)
    study["baseline"] = _baselines(study["baseline"], list(study["systems"]), path)
    if study["until"] and list(study["until"]) != ["eval_loss"]:
        raise ValueError(f"{path}: until must be a validation loss, such as {{eval_loss: 0.1}}, not {study['until']}.")
    if study["vary"] and len(study["vary"]) != 1:
        raise ValueError(f"{path}: vary must name one argument and its values.")
    return study


def _filled(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    return {**defaults, **{name: value for name, value in values.items() if value is not None}}


def _check_mappings(values: dict[str, Any], path: str) -> None:
    for name, value in values.items():
        if not isinstance(value, dict):
            raise ValueError(f"{path}: {name} must be a mapping, not {value!r}.")


def _check_lists(values: list[Any], path: str) -> None:
    for value in values:
        if not isinstance(value, list) or not value:
            raise ValueError(f"{path}: seeds, files and the values of vary must be lists, not {value!r}.")


def _check_systems(systems: dict[str, dict[str, Any]], path: str) -> None:
    names = list(systems)
    for name, system in systems.items():
        if unknown := sorted(set(system) - {"recipe", "start", *SYSTEM_DEFAULTS}):
            raise ValueError(f"{path}: system {name} has unknown keys {', '.join(unknown)}.")
        _check_mappings({f"{key} of {name}": system[key] for key in SYSTEM_DEFAULTS}, path)
        if "recipe" not in system:
            raise ValueError(f"{path}: system {name} needs a recipe.")
        if "start" in system and system["start"] not in names[: names.index(name)]:
            raise ValueError(f"{path}: system {name} starts from {system['start']}, which must come before it.")


def _check_tests(tests: dict[str, dict[str, Any]], path: str) -> None:
    _check_lists([test["files"] for test in tests.values() if "files" in test], path)
    for name, test in tests.items():
        if len(test) != 1 or not set(test) <= {"files", "paper_corpus"}:
            raise ValueError(f"{path}: test {name} needs either files or paper_corpus.")
        files = test.get("files", [])
        if len(files) > 1 and any(map(has_columns, files)):
            raise ValueError(f"{path}: test {name} must be one file of both columns or a pair of texts, not {files}.")


def _baselines(baseline: str | dict[str, str] | None, systems: list[str], path: str) -> dict[str, str]:
    """Gives the system that the others are compared with, by score."""
    if not isinstance(baseline, dict):
        baseline = dict.fromkeys(BASELINE_SCORES, baseline) if baseline is not None else {}
    if unknown := sorted(set(baseline) - set(BASELINE_SCORES)):
        raise ValueError(f"{path}: baseline has {', '.join(unknown)}; it names systems for {BASELINE_SCORES}.")
    for name in baseline.values():
        if name not in systems:
            raise ValueError(f"{path}: the baseline {name} is not a system of the study.")
    return baseline


def plan_runs(study: dict[str, Any], folder: Path, output: Path, plain: Callable[[str], str]) -> list[TrainingRun]:
    """Plans all runs, each after the one that it starts from, and writes their recipes into their folders."""
    [(varied, values)] = (study["vary"] or {None: [None]}).items()
    runs: dict[tuple, TrainingRun] = {}
    for seed, value, (name, system) in itertools.product(study["seeds"], values, study["systems"].items()):
        run_folder = output / (f"{name}.{value}" if varied else name) / f"seed{seed}"
        start = runs[seed, value, system["start"]] if "start" in system else None
        shared, own = study["arguments"], system["arguments"]
        arguments = {**shared, **own, "config": {**shared.get("config", {}), **own.get("config", {})}}
        arguments |= {varied: value} if varied else {}
        arguments |= {"model_name_or_path": str(start.folder)} if start else {}
        arguments |= {"output_dir": str(run_folder), "seed": seed}
        run = runs[seed, value, name] = TrainingRun(name, seed, value, run_folder, plain, start)
        run_folder.mkdir(parents=True, exist_ok=True)
        recipes = [system["recipe"], *extended(shared), *extended(own)]
        arguments["extends"] = [str(find_recipe(recipe, folder)) for recipe in recipes]
        run.recipe.write_text(yaml.safe_dump(arguments), encoding="utf-8")
    return list(runs.values())


def columns_of(run: TrainingRun) -> tuple[str, str]:
    """Gives the columns of the source and the target sentences."""
    data = parse_recipe([str(run.recipe)])[1]
    return data.source_column, data.target_column


def translation_options(run: TrainingRun, study: dict[str, Any]) -> CorpusOptions:
    """
    The options with which the model of a run translates the test sets. Placeholders are translated like other words.

    Raises:
        ValueError: an option is unknown or out of its bounds.
    """
    data = parse_recipe([str(run.recipe)])[1]
    options: dict[str, Any] = {
        "source_column": data.source_column,
        "segment_tokens": data.segment_tokens,
        "keep_placeholders": False,
    }
    # A model of single sentences has never seen several.
    options |= {"segment_sentences": data.segment_sentences} if data.segment_sentences else {}
    options |= {**study["generation"], **study["systems"][run.system]["generation"]}
    options["free"] = not options.pop("align_sentences", True)
    try:
        return CorpusOptions(**options)
    except TypeError as error:
        raise ValueError(f"generation has an unknown option: {error}") from error


def translation_arguments(run: TrainingRun, test: str, study: dict[str, Any]) -> list[str]:
    """The arguments with which `gtransformer translate` translates a test set with the model of a run."""
    # Of two text files, the first is the source; JSON lines have both sides.
    source, options = study["test"][test]["files"][0], translation_options(run, study)
    arguments = [source, "--model", str(run.folder), "--output", str(run.translations(test))]
    arguments += [] if has_columns(source) else ["--format", "documents"]
    for each in fields(options):
        value = getattr(options, each.name)
        if isinstance(value, bool) and value != each.default:
            arguments.append(f"--{each.name}" if value else f"--no-{each.name}")
        elif value != each.default:
            arguments += [f"--{each.name}", str(value)]
    return arguments
