"""Run a study: systems times seeds, trained, translating the test sets, scored, in one table and in figures.

    python train/study.py train/studies/table2.yaml [--output outputs/table2] [--jobs 2] [--launch "accelerate launch"]

A study is a YAML file:

    arguments: {...}            # of train.py, for every system
    seeds: [1, 2, 3]
    test: {news: {files: [test.en, test.de]}}     # what to translate, as train.py reads it; or {paper_corpus: news}
    generation: {num_beams: 5}                    # arguments of translate.py
    detokenize: de                                # if moses.py has tokenized the documents: the target language
    baseline: sentences                           # the system that the others are compared with
    systems:
      sentences: {recipe: ../recipes/transformer_sentences.yaml}
      finetuned: {recipe: ../recipes/finetuned.yaml, start: sentences}   # from that system, trained with the same seed
    vary: {segment_tokens: [64, 128]}             # optional: every system with every value of an argument
    until: {eval_loss: 0.01}                      # optional: count the updates until a validation loss is so low

Every run has its folder, with its log and translations. A run that fails is reported and left out, with those that
start from it; the same command runs what is missing. `results.json` and `results.md` hold the scores, their means and
spreads over the seeds, and significance; `loss.svg`, `entropy.svg` and `bleu.svg` the curves. Files are relative to
the folder in which the command runs, recipes to that of the study.
"""

import argparse
import hashlib
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import IO, Any

import yaml
from transformers.trainer import TRAINER_STATE_NAME

from modeling_gtransformer.training.corpus import JSON_LINES, read_documents
from modeling_gtransformer.training.corpus_translation import parse_translation
from modeling_gtransformer.training.metrics import compare_systems, score_documents
from modeling_gtransformer.training.moses import detokenizer
from modeling_gtransformer.training.paper_corpora import paper_corpus
from modeling_gtransformer.training.provenance import provenance
from modeling_gtransformer.training.recipe import parse_recipe
from modeling_gtransformer.training.study_figures import draw_figures


SCRIPTS = Path(__file__).parent
DEFAULTS: dict[str, Any] = {"arguments": {}, "seeds": [1], "generation": {}, "detokenize": None}
DEFAULTS |= {"baseline": None, "vary": None, "until": None}
SCORES = ("s-BLEU", "d-BLEU/document")
SIGNIFICANT = 0.01


@dataclass
class TrainingRun:
    """One system with one seed."""

    system: str
    seed: int
    value: Any  # of the argument that the study varies
    folder: Path
    plain: Callable[[str], str]  # makes text of a translated sentence
    start: "TrainingRun | None" = None
    failure: str | None = None
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def name(self) -> str:
        return f"{self.folder.parent.name}, seed {self.seed}"

    @property
    def recipe(self) -> Path:
        return self.folder / "recipe.yaml"

    def translations(self, test: str) -> Path:
        return self.folder / f"{test}.jsonl"

    def hypotheses(self, test: str) -> list[list[str]]:
        lines = self.translations(test).read_text(encoding="utf-8").split("\n")
        return [list(map(self.plain, json.loads(line)["translation"])) for line in lines if line]


def main(argv: list[str]) -> dict[str, Any]:
    """Runs the study, writes the results beside the runs, and returns them."""
    args = parse_arguments(argv)
    study = read_study(args.study)
    output = args.output or Path("outputs") / Path(args.study).stem
    plain = detokenizer(study["detokenize"]) if study["detokenize"] else str
    columns = columns_of(study)
    for test in study["test"].values():
        if "paper_corpus" in test:
            test["files"] = paper_corpus(test["paper_corpus"], "test")
    runs = plan_runs(study, Path(args.study).parent, output, plain)
    for run in runs:  # a mistake in any of them shows before the first is trained
        parse_recipe([str(run.recipe)])
        for name in study["test"]:
            parse_translation(translation_arguments(run, name, study))
    references = {
        name: [list(map(plain, document[columns[1]])) for document in read_documents(test["files"], columns)]
        for name, test in study["test"].items()
    }

    origin = provenance(["train/study.py", *argv])
    threads = max(1, (os.cpu_count() or 1) // args.jobs)
    processes = Processes(shlex.split(args.launch), threads)
    with ThreadPoolExecutor(args.jobs) as executor:
        try:
            list(executor.map(lambda run: execute(run, study, processes), runs))
        except BaseException:
            processes.stop()
            raise

    results = {**origin, **collect(study, runs, references)}
    (output / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    (output / "results.md").write_text(table(results) + "\n", encoding="utf-8")
    draw_figures(results, output)
    print(table(results))
    return results


def read_study(path: str) -> dict[str, Any]:
    """
    The study, with what it leaves out.

    Raises:
        ValueError: unknown or missing keys, or systems that do not exist.
    """
    study = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    known = {"systems", "test", *DEFAULTS}
    if unknown := sorted(set(study) - known):
        raise ValueError(f"{path}: unknown keys {', '.join(unknown)}; known are {', '.join(sorted(known))}.")
    study = {**DEFAULTS, **study}
    if not study.get("systems") or not study.get("test"):
        raise ValueError(f"{path}: a study needs systems and test.")
    systems = list(study["systems"])
    for name, system in study["systems"].items():
        if unknown := sorted(set(system) - {"recipe", "start", "arguments"}):
            raise ValueError(f"{path}: system {name} has unknown keys {', '.join(unknown)}.")
        if "start" in system and system["start"] not in systems[: systems.index(name)]:
            raise ValueError(f"{path}: system {name} starts from {system['start']}, which must come before it.")
    for name, test in study["test"].items():
        if len(test) != 1 or not set(test) <= {"files", "paper_corpus"}:
            raise ValueError(f"{path}: test {name} needs either files or paper_corpus.")
        files = test.get("files", [])
        if len(files) > 1 and any(file.endswith(JSON_LINES) for file in files):
            raise ValueError(f"{path}: test {name} is one JSON-lines file or a pair of texts, not {files}.")
    if study["baseline"] is not None and study["baseline"] not in systems:
        raise ValueError(f"{path}: the baseline {study['baseline']} is no system.")
    if study["until"] and len(study["until"]) != 1:
        raise ValueError(f"{path}: until names one validation loss and its value.")
    if study["vary"] and len(study["vary"]) != 1:
        raise ValueError(f"{path}: vary names one argument and its values.")
    return study


def plan_runs(study: dict[str, Any], folder: Path, output: Path, plain: Callable[[str], str]) -> list[TrainingRun]:
    """All the runs, each after the one that it starts from, with their recipes in their folders."""
    [(varied, values)] = (study["vary"] or {None: [None]}).items()
    runs: dict[tuple, TrainingRun] = {}
    for seed, value, (name, system) in itertools.product(study["seeds"], values, study["systems"].items()):
        run_folder = output / (f"{name}.{value}" if varied else name) / f"seed{seed}"
        start = runs[seed, value, system["start"]] if "start" in system else None
        shared, own = study["arguments"], system.get("arguments", {})
        arguments = {**shared, **own, "config": {**shared.get("config", {}), **own.get("config", {})}}
        arguments |= {varied: value} if varied else {}
        arguments |= {"model_name_or_path": str(start.folder)} if start else {}
        arguments |= {"output_dir": str(run_folder), "seed": seed}
        run = runs[seed, value, name] = TrainingRun(name, seed, value, run_folder, plain, start)
        run_folder.mkdir(parents=True, exist_ok=True)
        arguments["extends"] = str((folder / system["recipe"]).resolve())
        run.recipe.write_text(yaml.safe_dump(arguments), encoding="utf-8")
    return list(runs.values())


def columns_of(study: dict[str, Any]) -> tuple[str, str]:
    """The columns of the source and the target sentences."""
    return study["arguments"].get("source_column", "source"), study["arguments"].get("target_column", "target")


def translation_arguments(run: TrainingRun, test: str, study: dict[str, Any]) -> list[str]:
    """The command line by which translate.py translates a test set with the model of a run."""
    data = parse_recipe([str(run.recipe)])[1]
    settings = {"source_column": data.source_column, "segment_tokens": data.segment_tokens}
    # A model of single sentences never saw several.
    settings |= {"segment_sentences": data.segment_sentences} if data.segment_sentences else {}
    settings |= study["generation"]
    # The first of two text files is the source; JSON lines have both sides.
    arguments = [str(run.folder), study["test"][test]["files"][0], str(run.translations(test))]
    for name, value in settings.items():
        if value is not False:
            arguments += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return arguments


def execute(run: TrainingRun, study: dict[str, Any], processes: "Processes") -> None:
    """Trains and translates, unless that is done already; a failure is noted in the run."""
    try:
        if run.start:
            run.start.done.wait()
            if run.start.failure:
                raise RuntimeError(f"{run.start.system} failed, from which it starts")
        processes.call(run, "train.py", [str(run.recipe)])
        for name, test in study["test"].items():
            arguments = translation_arguments(run, name, study)
            # Everything that the translations depend on is kept beside them.
            record, made_of = run.folder / f"{name}.made_of.json", json.dumps([arguments, fingerprint(run, test)])
            if run.translations(name).exists() and record.exists() and record.read_text() == made_of:
                continue
            run.translations(name).unlink(missing_ok=True)
            processes.call(run, "translate.py", arguments)
            record.write_text(made_of)
    except (RuntimeError, OSError) as error:
        run.failure = str(error)
        print(f"{run.name}: failed, {error}", file=sys.stderr, flush=True)
    finally:
        run.done.set()


def fingerprint(run: TrainingRun, test: dict[str, Any]) -> list[Any]:
    """Size and time of the weights and a hash of the test set, which tell them from others in their place."""
    weights = (run.folder / "model.safetensors").stat()
    return [weights.st_size, weights.st_mtime_ns, hashlib.sha256(Path(test["files"][0]).read_bytes()).hexdigest()]


class Processes:
    """Runs the scripts in processes of their own, which share the cores and end with the study.

    Args:
        launch: what starts train.py.
        threads: of each process.
    """

    def __init__(self, launch: list[str], threads: int):
        self.launch, self.environment = launch, {**os.environ}
        for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS"):
            self.environment.setdefault(name, str(threads))
        self.running: set[subprocess.Popen] = set()
        self.stopped = False
        self.starting = threading.Lock()  # nothing starts between looking at `stopped` and being among `running`

    def call(self, run: TrainingRun, script: str, arguments: list[str]) -> None:
        """
        One script, which logs to the run's folder.

        Raises:
            RuntimeError: it failed, or the study has been stopped.
        """
        log = run.folder / "study.log"
        command = [*(self.launch if script == "train.py" else [sys.executable]), str(SCRIPTS / script), *arguments]
        with log.open("a", encoding="utf-8") as file:
            process = self.start(command, file)
            print(f"{run.name}: {script}", flush=True)
            code = process.wait()
            with self.starting:
                self.running.discard(process)
        if code:
            last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise RuntimeError(f"{script} ended with {code}: {' '.join(last)} (see {log})")

    def start(self, command: list[str], log: IO[str]) -> subprocess.Popen:
        """Starts a process that `stop` will end.

        Raises:
            RuntimeError: the study has been stopped.
        """
        with self.starting:
            if self.stopped:
                raise RuntimeError("stopped")
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=self.environment)
            self.running.add(process)
        return process

    def stop(self) -> None:
        """Ends what is running, and starts nothing more."""
        with self.starting:
            self.stopped = True
            for process in self.running:
                process.terminate()


def collect(study: dict[str, Any], runs: list[TrainingRun], references: dict[str, list[list[str]]]) -> dict[str, Any]:
    """Scores and curves of all the runs that have not failed."""
    groups: dict[tuple, list[TrainingRun]] = {}
    for run in runs:
        groups.setdefault((run.system, run.value), []).append(run)
    rows = []
    for (system, value), members in groups.items():
        done = [run for run in members if not run.failure]
        curves = [curves_of(run) for run in done]
        baseline = [run for run in groups.get((study["baseline"], value), []) if not run.failure]
        rows.append(
            {
                "system": system,
                "value": value,
                "seeds": [run.seed for run in done],
                "failures": {run.seed: run.failure for run in members if run.failure},
                "scores": {
                    name: test_scores(name, done, baseline if system != study["baseline"] else [], reference)
                    for name, reference in references.items()
                    if done
                },
                "updates": [updates_until(each, study["until"]) for each in curves] if study["until"] else None,
                "curves": curves,
            }
        )
    varied = next(iter(study["vary"]), None) if study["vary"] else None
    return {"baseline": study["baseline"], "varied": varied, "until": study["until"], "rows": rows}


def updates_until(curves: dict[str, list[tuple[int, float]]], until: dict[str, float]) -> int | None:
    """The update at which a validation loss first came down to its value; `None` if it did not."""
    [(name, value)] = until.items()
    return next((step for step, reached in curves[name] if reached <= value), None)


def test_scores(
    name: str, runs: list[TrainingRun], baseline: list[TrainingRun], references: list[list[str]]
) -> dict[str, Any]:
    """Scores of a system on a test set: of every seed, their mean and spread, and whether it differs from the baseline
    (over the seeds that both have, with the documents as unit)."""
    scores: dict[str, Any] = {score: {"seeds": []} for score in SCORES}
    for run in runs:
        scored = score_documents(run.hypotheses(name), references)
        for score in SCORES:
            scores[score]["seeds"].append(scored[score]["score"])
            scores[score]["signature"] = scored[score]["signature"]
    for values in scores.values():
        values["mean"] = mean(values["seeds"])
        values["spread"] = stdev(values["seeds"]) if len(values["seeds"]) > 1 else None
    pairs = [(run, other) for run in runs for other in baseline if run.seed == other.seed]
    if pairs:
        # The translations of a document by all seeds go together, as segments of one: documents are drawn, not seeds.
        compared = compare_systems(
            joined([run.hypotheses(name) for run, _ in pairs]),
            joined([other.hypotheses(name) for _, other in pairs]),
            joined([references for _ in pairs]),
            [[len(reference)] * len(pairs) for reference in references],
        )
        compared["d-BLEU/document"] = compared["d-BLEU/segment"]
        for score in SCORES:
            scores[score] |= compared[score]
    return scores


def joined(documents_of_seeds: list[list[list[Any]]]) -> list[list[Any]]:
    """For each document, what all the seeds have for it."""
    return [list(itertools.chain(*parts)) for parts in zip(*documents_of_seeds, strict=True)]


def curves_of(run: TrainingRun) -> dict[str, list[tuple[int, float]]]:
    """Logged values of a training by name, as `(step, value)`."""
    state = json.loads((run.folder / TRAINER_STATE_NAME).read_text(encoding="utf-8"))
    curves: dict[str, list[tuple[int, float]]] = {}
    for record in state["log_history"]:
        for name in record:
            if name in ("loss", "eval_loss") or name.startswith("eval_entropy_"):
                curves.setdefault(name, []).append((record["step"], record[name]))
    return curves


def table(results: dict[str, Any]) -> str:
    """The results as a table of Markdown: a row per system, a column per test set and score."""
    rows = results["rows"]
    tests: dict[str, Any] = next((row["scores"] for row in rows if row["scores"]), {})
    columns = [(test, score) for test in tests for score in SCORES]
    head = ["system", *([results["varied"]] if results["varied"] else []), "seeds"]
    head += [f"updates until {name} ≤ {value}" for name, value in (results["until"] or {}).items()]
    lines = [head + [f"{test} {score.removesuffix('/document')}" for test, score in columns]]
    for row in rows:
        cells = [row["system"], *([str(row["value"])] if results["varied"] else []), str(len(row["seeds"]))]
        if results["until"]:
            cells.append(", ".join("never" if step is None else str(step) for step in row["updates"]))
        cells += [cell(row["scores"][test][score]) if row["scores"] else "failed" for test, score in columns]
        lines.append(cells)
    lines.insert(1, ["---"] * len(lines[0]))
    signatures = {
        (score, row["scores"][test][score]["signature"]) for row in rows if row["scores"] for test, score in columns
    }
    notes = [f"{score.removesuffix('/document')}: {signature}" for score, signature in sorted(signatures)]
    if any("p_value" in row["scores"][test][score] for row in rows if row["scores"] for test, score in columns):
        notes.append(f"\\* differs from {results['baseline']} at p < {SIGNIFICANT}, documents drawn at random")
    notes += [f"{row['system']}, seed {seed}: {failure}" for row in rows for seed, failure in row["failures"].items()]
    return "\n".join(["| " + " | ".join(line) + " |" for line in lines] + [f"\n{note}" for note in notes])


def cell(score: dict[str, Any]) -> str:
    spread = f" ± {score['spread']:.2f}" if score["spread"] is not None else ""
    star = r"\*" if score.get("p_value", 1) < SIGNIFICANT else ""
    return f"{score['mean']:.2f}{spread}{star}"


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", help="YAML file of the study.")
    parser.add_argument(
        "--output", type=Path, help="Folder for runs and results; default: outputs/ and the name of the study."
    )
    parser.add_argument("--jobs", type=int, default=1, help="Number of runs at a time, which share the cores.")
    parser.add_argument(
        "--launch", default=sys.executable, help='Command that starts train.py, e.g. "accelerate launch".'
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # as Ctrl-C, also of the processes
    main(sys.argv[1:])
