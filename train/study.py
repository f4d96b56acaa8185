"""Runs a study: trains every system with every seed, translates and scores test sets, and makes a table and figures.

    python train/study.py train/studies/table2.yaml [--output outputs/table2] [--jobs 2] [--launch "accelerate launch"]

A study is a YAML file:

    arguments: {...}            # of train.py, for every system; `extends` names a file with more
    seeds: [1, 2, 3]
    test: {news: {files: [test.en, test.de]}}     # test sets, in formats of train.py; or {paper_corpus: news}
    generation: {num_beams: 5}                    # options of gtransformer translate
    detokenize: de                                # target language, if moses.py has tokenized the documents
    baseline: sentences                           # baseline of all comparisons; one per score:
                                                  # {s-BLEU: sentences, d-BLEU: documents}
    systems:
      sentences: {recipe: transformer_sentences}
      finetuned: {recipe: finetuned, start: sentences}   # starts from that system, seed by seed
      documents: {recipe: transformer_documents, generation: {free: true}}
    vary: {segment_tokens: [64, 128]}             # optional: run every system with every value of an argument
    until: {eval_loss: 0.01}                      # optional: count the updates until a validation loss

Every run has a folder with its log and translations. Failed runs, and runs that start from them, are reported and
skipped. Running the command again completes what is missing. `results.json` and `results.md` contain scores, means and
spreads over seeds, and significance. `loss.svg`, `entropy.svg`, `bleu.svg` and `updates.svg` show the curves. Files
are relative to the working directory. Recipes are packaged, or relative to the folder of the study.
"""

import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from modeling_gtransformer.cli.translate_options import TranslateOptions
from modeling_gtransformer.cli.typed_command import run_script
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.corpora.corpus_files import has_columns
from modeling_gtransformer.corpora.fingerprint import hash_of_file, stats_of_weights
from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.evaluation.report import command_line
from modeling_gtransformer.runtime.atomic_file import write_atomic, write_json
from modeling_gtransformer.runtime.usage_error import UsageError
from modeling_gtransformer.training.moses import detokenizer
from modeling_gtransformer.training.paper_corpora import paper_corpus
from modeling_gtransformer.training.recipe import extended, find_recipe, parse_recipe, read_yaml, refuse_unknown
from modeling_gtransformer.training.study_results import ParallelDocuments, collect, draw_figures, table
from modeling_gtransformer.translation_options import option


TRAIN = str(Path(__file__).with_name("train.py"))
TRANSLATE = [sys.executable, "-m", "modeling_gtransformer.cli.main"]
DEFAULTS: dict[str, Any] = {"arguments": {}, "seeds": [1], "generation": {}, "detokenize": None, "baseline": None}
DEFAULTS |= {"vary": None, "until": None, "systems": {}, "test": {}}


@dataclass(frozen=True)
class StudyOptions:
    study: str = option(MISSING, "YAML file of the study.", argument=True)
    output: Path | None = option(None, "Folder for runs and results; default: outputs/ and the name of the study.")
    jobs: int = option(1, "Number of parallel runs, which share the cores.", 1)
    launch: str = option(sys.executable, 'Command that starts train.py, e.g. "accelerate launch".')


@dataclass
class TrainingRun:
    """A system with a seed, and the translations of its model."""

    system: str
    seed: int
    value: Any  # value of the varied argument
    folder: Path
    start: "TrainingRun | None" = None
    failure: str | None = None
    translate: dict[str, TranslateOptions] = field(default_factory=dict)  # by test set

    @property
    def name(self) -> str:
        return f"{self.folder.parent.name}, seed {self.seed}"

    @property
    def stage(self) -> int:
        """Number of runs in the chain of starts before this one."""
        return self.start.stage + 1 if self.start else 0


def run_study(args: StudyOptions) -> dict[str, Any]:
    """Runs the study, writes the results beside the runs, and returns them."""
    study, folder = read_study(args.study), Path(args.study).parent
    output = args.output or Path("outputs") / Path(args.study).stem
    # Errors in any run show before the first training.
    runs = plan_runs(study, folder, output)
    text = detokenizer(study["detokenize"]) if study["detokenize"] else str
    tests = {name: read_test(test["files"], study["columns"], text) for name, test in study["test"].items()}

    origin = provenance(sys.argv)
    commands = Commands(shlex.split(args.launch), max(1, (os.cpu_count() or 1) // args.jobs))
    with ThreadPoolExecutor(args.jobs) as executor:
        try:
            for _, stage in itertools.groupby(sorted(runs, key=lambda run: run.stage), key=lambda run: run.stage):
                list(executor.map(commands.execute, stage))
        except BaseException:
            commands.stop()
            raise

    results = {**origin, **collect(study, runs, tests, text)}
    write_json(output / "results.json", results)
    write_atomic(output / "results.md", table(results) + "\n")
    draw_figures(results, output)
    print(table(results))
    return results


def read_study(path: str) -> dict[str, Any]:
    """Reads a study, and fills in defaults. Raises `UsageError` for unknown or missing keys or systems."""
    study = DEFAULTS | {name: value for name, value in read_yaml(path).items() if value is not None}
    if unknown := sorted(study.keys() - DEFAULTS):
        raise UsageError(f"{path}: unknown keys {', '.join(unknown)}; known keys: {', '.join(sorted(DEFAULTS))}.")
    if not study["systems"] or not study["test"]:
        raise UsageError(f"{path}: a study needs systems and test.")
    if not isinstance(study["baseline"], dict):
        study["baseline"] = dict.fromkeys(("s-BLEU", "d-BLEU"), study["baseline"]) if study["baseline"] else {}
    names = list(study["systems"])
    for name in study["baseline"].values():
        if name not in names:
            raise UsageError(f"{path}: the baseline {name} is not a system of the study.")
    for number, (name, system) in enumerate(study["systems"].items()):
        if "recipe" not in system or system.keys() - {"recipe", "start", "arguments", "generation"}:
            raise UsageError(f"{path}: system {name} needs a recipe, and may have start, arguments and generation.")
        if "start" in system and system["start"] not in names[:number]:
            raise UsageError(f"{path}: system {name} starts from {system['start']}, which must come before it.")
    return study


def plan_runs(study: dict[str, Any], folder: Path, output: Path) -> list[TrainingRun]:
    """
    Plans all runs, each after its start, and writes their recipes into their folders. Adds test files and columns to
    the study.

    Raises:
        ValueError: a recipe or a translation option is invalid.
    """
    [(varied, values)] = (study["vary"] or {None: [None]}).items()
    runs: dict[tuple, TrainingRun] = {}
    for seed, value, (name, system) in itertools.product(study["seeds"], values, study["systems"].items()):
        run_folder = output / (f"{name}.{value}" if varied else name) / f"seed{seed}"
        start = runs[seed, value, system["start"]] if "start" in system else None
        run = runs[seed, value, name] = TrainingRun(name, seed, value, run_folder, start)
        shared, own = study["arguments"], system.get("arguments") or {}
        arguments = {**shared, **own, "config": {**shared.get("config", {}), **own.get("config", {})}}
        arguments |= {varied: value} if varied else {}
        arguments |= {"model_name_or_path": str(start.folder)} if start else {}
        recipes = [system["recipe"], *extended(shared), *extended(own)]
        arguments["extends"] = [str(find_recipe(recipe, folder)) for recipe in recipes]
        arguments |= {"output_dir": str(run_folder), "seed": seed}
        run_folder.mkdir(parents=True, exist_ok=True)
        (run_folder / "recipe.yaml").write_text(yaml.safe_dump(arguments), encoding="utf-8")
        _, data, training = parse_recipe([str(run_folder / "recipe.yaml")])
        if study["until"] and training.eval_strategy == "no":
            raise UsageError(f"{run.name} never validates: set eval_strategy for `until`.")
        # Placeholders are translated like words. A model trained on single sentences also translates single ones.
        options: dict[str, Any] = {"segment_tokens": data.segment_tokens, "segment_sentences": data.segment_sentences}
        options |= {"source_column": data.source_column, "keep_placeholders": False}
        options |= {**study["generation"], **(system.get("generation") or {})}
        study["columns"] = data.source_column, data.target_column
        for test, files in study["test"].items():
            if "paper_corpus" in files:
                files["files"] = paper_corpus(files["paper_corpus"], "test", study["columns"])
            run.translate[test] = translate_options(run_folder, test, files["files"][0], options)
    return list(runs.values())


def translate_options(folder: Path, test: str, source: str, options: dict[str, Any]) -> TranslateOptions:
    """Returns options to translate a test set with the model in a folder; raises `UsageError` for unknown ones."""
    format: Any = None if has_columns(source) else "documents"
    output = str(folder / f"{test}.jsonl")
    known = {field.name for field in fields(TranslateOptions)}
    refuse_unknown(options.keys() - known, known, "generation: gtransformer translate has no")
    return TranslateOptions(files=[source], model=str(folder), output=output, format=format, **options)


def read_test(files: list[str], columns: tuple[str, str], text: Callable[[str], str]) -> ParallelDocuments:
    documents = read_documents(files, columns)
    sources, targets = ([document[column] for document in documents] for column in columns)
    return ParallelDocuments(sources, targets, [list(map(text, target)) for target in targets])


class Commands:
    """Trains and translates in processes of some threads each that end with the study; `launch` starts train.py."""

    def __init__(self, launch: list[str], threads: int):
        self.launch, self.running, self.stopped = launch, set[subprocess.Popen](), False
        limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS")}
        self.environment = {**limits, **os.environ}

    def execute(self, run: TrainingRun) -> None:
        """Trains and translates unless this is complete, and records a failure in the run."""
        try:
            if run.start and run.start.failure:
                raise RuntimeError(f"it starts from {run.start.system}, which failed")
            self.call(run, [*self.launch, TRAIN, str(run.folder / "recipe.yaml")])
            for test, options in run.translate.items():
                words = shlex.split(command_line("translate", options))[1:]
                # A file beside the translations records their dependencies.
                depends_on = [words, stats_of_weights(run.folder), [*map(hash_of_file, options.inputs)]]
                record, made_of = run.folder / f"{test}.made_of.json", json.dumps(depends_on)
                if not record.exists() or record.read_text() != made_of:
                    Path(str(options.output)).unlink(missing_ok=True)
                    shutil.rmtree(f"{options.output}.partial", ignore_errors=True)
                    write_atomic(record, made_of)
                if not Path(str(options.output)).exists():
                    self.call(run, [*TRANSLATE, *words])
        except (RuntimeError, OSError) as error:
            run.failure = str(error)
            print(f"{run.name}: failed, {error}", file=sys.stderr, flush=True)

    def call(self, run: TrainingRun, command: list[str]) -> None:
        """Runs a command with a log in the run's folder. Raises `RuntimeError` if it fails or the study is stopped."""
        if self.stopped:
            raise RuntimeError("stopped")
        log, name = run.folder / "study.log", "train.py" if TRAIN in command else "translate"
        with log.open("a", encoding="utf-8") as file:
            begin = file.tell()
            with subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=self.environment) as process:
                self.running.add(process)
                print(f"{run.name}: {name}", flush=True)
                code = process.wait()
                self.running.discard(process)
        if code:
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
            last = log.read_bytes()[begin:].decode(errors="replace").strip().splitlines()[-1:]
            raise RuntimeError(f"{name} {': '.join([how, *last])} (see {log})")

    def stop(self) -> None:
        """Terminates the running processes, and prevents others."""
        self.stopped = True
        for process in [*self.running]:
            process.terminate()


if __name__ == "__main__":
    sys.exit(run_script((StudyOptions, run_study)))
