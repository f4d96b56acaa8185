"""Runs a study: trains every system with every seed, translates and scores test sets, and makes a table and figures.

    python train/study.py train/studies/table2.yaml [--output outputs/table2] [--jobs 2] [--launch "accelerate launch"]

A study is a YAML file:

    arguments: {...}            # for train.py, for every system; `extends` names a file with more
    seeds: [1, 2, 3]
    test: {news: {files: [test.en, test.de]}}     # test sets, as train.py reads them; or {paper_corpus: news}
    generation: {num_beams: 5}                    # options of gtransformer translate
    detokenize: de                                # target language, if moses.py has tokenized the documents
    baseline: sentences                           # system that the others are compared with; one per score:
                                                  # {s-BLEU: sentences, d-BLEU: documents}
    systems:
      sentences: {recipe: transformer_sentences}
      finetuned: {recipe: finetuned, start: sentences}   # starts from that system with the same seed
      documents: {recipe: transformer_documents, generation: {align_sentences: false}}
    vary: {segment_tokens: [64, 128]}             # optional: run every system with every value of an argument
    until: {eval_loss: 0.01}                      # optional: count the updates until a validation loss

Every run has its own folder, with its log and translations. A run that fails is reported and left out, as are those
that start from it; the same command runs whatever is missing. `results.json` and `results.md` hold the scores, their
means and spreads over the seeds, and significance; `loss.svg`, `entropy.svg`, `bleu.svg` and `updates.svg` show the
curves. Files are relative to the folder in which the command runs, and recipes, which may also be packaged ones, to
the folder of the study.
"""

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from modeling_gtransformer.cli.script import run_script
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.corpora.fingerprint import stats_of_weights
from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.runtime.atomic_file import write_atomic, write_json
from modeling_gtransformer.training.moses import detokenizer
from modeling_gtransformer.training.paper_corpora import paper_corpus
from modeling_gtransformer.training.recipe import parse_recipe
from modeling_gtransformer.training.study_figures import draw_figures
from modeling_gtransformer.training.study_plan import (
    TrainingRun,
    columns_of,
    plan_runs,
    read_study,
    translation_arguments,
    translation_options,
)
from modeling_gtransformer.training.study_results import ParallelDocuments, collect, table
from modeling_gtransformer.translation_options import check_bounds, option


SCRIPTS = Path(__file__).parent


@dataclass(frozen=True)
class StudyOptions:
    study: str = option(MISSING, "YAML file of the study.", argument=True)
    output: Path | None = option(None, "Folder for runs and results; default: outputs/ and the name of the study.")
    jobs: int = option(1, "Number of runs at the same time; they share the cores.", 1)
    launch: str = option(sys.executable, 'Command that starts train.py, e.g. "accelerate launch".')

    def __post_init__(self) -> None:
        check_bounds(self)


def run_study(args: StudyOptions) -> dict[str, Any]:
    """Runs the study, writes the results beside the runs, and returns them."""
    study = read_study(args.study)
    output = args.output or Path("outputs") / Path(args.study).stem
    plain = detokenizer(study["detokenize"]) if study["detokenize"] else str
    runs = plan_runs(study, Path(args.study).parent, output, plain)
    columns = columns_of(runs[0])
    for test in study["test"].values():
        if "paper_corpus" in test:
            test["files"] = paper_corpus(test["paper_corpus"], "test", columns)
    for run in runs:  # mistakes in any run show before the first one is trained
        training = parse_recipe([str(run.recipe)])[2]
        if study["until"] and training.eval_strategy == "no":
            raise ValueError(f"{run.name} never validates: set eval_strategy for `until`.")
        translation_options(run, study)
    tests = {name: read_test(test["files"], columns, plain) for name, test in study["test"].items()}

    origin = provenance(sys.argv)
    threads = max(1, (os.cpu_count() or 1) // args.jobs)
    processes = Processes(shlex.split(args.launch), threads)
    with ThreadPoolExecutor(args.jobs) as executor:
        try:
            # Runs that others start from come first, so that no job waits for a start that another job trains.
            in_turn = sorted(runs, key=lambda run: run.stage)
            list(executor.map(lambda run: execute(run, study, tests, processes), in_turn))
        except BaseException:
            processes.stop()
            raise

    results = {**origin, **collect(study, runs, tests)}
    write_json(output / "results.json", results)
    write_atomic(output / "results.md", table(results) + "\n")
    draw_figures(results, output)
    print(table(results))
    return results


def read_test(files: list[str], columns: tuple[str, str], plain: Callable[[str], str]) -> ParallelDocuments:
    documents = read_documents(files, columns)
    sources, targets = ([document[column] for document in documents] for column in columns)
    return ParallelDocuments(sources, targets, [list(map(plain, target)) for target in targets])


def execute(
    run: TrainingRun, study: dict[str, Any], tests: dict[str, ParallelDocuments], processes: "Processes"
) -> None:
    """Trains and translates unless this is done already, and records a failure in the run."""
    try:
        if run.start:
            run.start.done.wait()
            if run.start.failure:
                raise RuntimeError(f"{run.start.system} failed, from which it starts")
        processes.call(run, "train.py", [str(run.recipe)])
        for name, test in tests.items():
            arguments = translation_arguments(run, name, study)
            # A file beside the translations says everything that they depend on.
            record, made_of = run.folder / f"{name}.made_of.json", json.dumps([arguments, fingerprint(run, test)])
            if not record.exists() or record.read_text() != made_of:
                discard(run.translations(name))
                write_atomic(record, made_of)
            if not run.translations(name).exists():
                processes.call(run, "translate", arguments)
    except (RuntimeError, OSError) as error:
        run.failure = str(error)
        print(f"{run.name}: failed, {error}", file=sys.stderr, flush=True)
    finally:
        run.done.set()


def fingerprint(run: TrainingRun, test: ParallelDocuments) -> list[Any]:
    """Identifies weights by their sizes and times, and the test set by a hash, to notice when they are replaced."""
    return [*stats_of_weights(run.folder), hashlib.sha256(json.dumps(test.sources).encode()).hexdigest()]


def discard(translations: Path) -> None:
    """Removes translations, finished or not, of other weights or another test set."""
    translations.unlink(missing_ok=True)
    shutil.rmtree(f"{translations}.partial", ignore_errors=True)


class Processes:
    """Runs the scripts in separate processes, which share the cores and end with the study.

    Args:
        launch: command that starts train.py.
        threads: number of threads of each process.
    """

    def __init__(self, launch: list[str], threads: int):
        self.launch, self.environment = launch, {**os.environ}
        for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS"):
            self.environment.setdefault(name, str(threads))
        self.running: set[subprocess.Popen] = set()
        self.stopped = False
        # No process may start between a check of `stopped` and its entry in `running`.
        self.starting = threading.Lock()

    def call(self, run: TrainingRun, script: str, arguments: list[str]) -> None:
        """
        Runs one script, which logs to the run's folder.

        Raises:
            RuntimeError: it failed, or the study has been stopped.
        """
        log = run.folder / "study.log"
        translate = [sys.executable, "-m", "modeling_gtransformer.cli.main", "translate"]
        command = [*([*self.launch, str(SCRIPTS / script)] if script == "train.py" else translate), *arguments]
        with log.open("a", encoding="utf-8") as file:
            begin = file.tell()
            with self.starting:
                if self.stopped:
                    raise RuntimeError("stopped")
                process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=self.environment)
                self.running.add(process)
            print(f"{run.name}: {script}", flush=True)
            code = process.wait()
            with self.starting:
                self.running.discard(process)
        if code:
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
            last = log.read_bytes()[begin:].decode(errors="replace").strip().splitlines()[-1:]
            raise RuntimeError(f"{script} {': '.join([how, *last])} (see {log})")

    def stop(self) -> None:
        """Ends the running processes, and starts no more."""
        with self.starting:
            self.stopped = True
            for process in self.running:
                process.terminate()


if __name__ == "__main__":
    sys.exit(run_script((StudyOptions, run_study)))
