"""Score a model on contrastive test suites: does it prefer the right translation, given the context?

    python train/score_contrastive.py outputs/finetuned scores.jsonl --suites contrapro/ --context 1
    python train/score_contrastive.py outputs/transformer_sentences baseline.jsonl --suites contrapro/ --context 0 \\
        --json accuracies.json

`contrastive_suites.py` lists the suites. A candidate's score is the log-probability of its tokens, in nats, given the
source sentences and the translations of the sentences before it. An item counts as right if no wrong candidate scores
as high as the right one, so a tie is an error (the script of Voita et al. takes the first of equal candidates). Every
word counts with the probability that the model gives it among all tokens, even `<unk>` for a word that the tokenizer
does not know, although translations never contain `<unk>`. An item that has more tokens than the model has positions
is an error; no item is cut or left out. The output has a line per item, and the same command continues where an
earlier one was stopped. Accuracies are printed by phenomenon and by distance; `--json` also writes them to a file.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from transformers.utils.logging import tqdm

from modeling_gtransformer.atomic_file import check_outputs, write_atomic, write_json
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.script_options import at_least
from modeling_gtransformer.cli.translator_options import add_language_options
from modeling_gtransformer.corpora.fingerprint import stats_of_weights
from modeling_gtransformer.evaluation.contrastive_scores import batches, count_right, encode, log_probabilities
from modeling_gtransformer.evaluation.contrastive_suites import read_suite
from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.translator import Translator


def main(argv: list[str]) -> dict[str, dict[str, Any]]:
    """Scores the items that have no score yet, prints the accuracies and returns them."""
    args = parse_arguments(argv)
    check_outputs([args.json, args.output], args.suites)
    items = [item.with_context(args.context) for path in args.suites for item in read_suite(path)]
    if len({item.name for item in items}) < len(items):
        raise ValueError("A suite is given twice.")
    settings = {
        "model": args.model,
        "suites": args.suites,
        "context": args.context,
        "weights": stats_of_weights(args.model),
    }
    settings |= {"languages": [args.src_lang, args.tgt_lang]}
    done = read_scores(args.output, settings)

    translate = Translator(args.model, args.src_lang, args.tgt_lang).pipeline
    model, processor = translate.model.eval(), translate.processor
    left = [item for item in items if item.name not in done]
    rows = encode(left, processor, model.config)
    if not args.output.exists():  # after this line, no setting may be refused
        write_atomic(args.output, json.dumps(settings) + "\n")
    with (
        args.output.open("a", encoding="utf-8") as file,
        tqdm(total=len(items), initial=len(done), desc="Scoring", unit=" items") as bar,
    ):
        for batch in batches(rows, args.max_tokens):
            scores = iter(log_probabilities(model, processor, [row for item in batch for row in rows[item]]))
            for item in batch:
                done[left[item].name] = [next(scores) for _ in rows[item]]
                print(json.dumps({"name": left[item].name, "scores": done[left[item].name]}), file=file)
            file.flush()
            bar.update(len(batch))

    accuracies = count_right(items, done)
    print(table(accuracies))
    if args.json:
        write_json(args.json, {"accuracies": accuracies, **provenance(["train/score_contrastive.py", *argv])})
    return accuracies


def read_scores(path: Path, settings: dict[str, Any]) -> dict[str, list[float]]:
    """
    Reads the scores by item of an earlier run with the same settings, which are in the first line of the file, and
    removes a last line that was cut off. Returns nothing if there is no file.

    Raises:
        ValueError: the file holds something else.
    """
    if not path.exists():
        return {}
    with path.open("rb+") as file:
        first, *lines = file.read().splitlines(keepends=True) or [b""]
        if first != (json.dumps(settings) + "\n").encode():
            raise ValueError(f"{path} was not begun by this command with this model: choose another output.")
        if lines and not lines[-1].endswith(b"\n"):
            file.truncate(file.tell() - len(lines.pop()))
    records = [json.loads(line) for line in lines]
    return {record["name"]: record["scores"] for record in records}


def table(accuracies: dict[str, dict[str, Any]]) -> str:
    """Formats one line per group."""
    width = max(map(len, accuracies))
    return "\n".join(
        f"{group:{width}}  {row['accuracy']:6.2f} %   {row['right']} of {row['items']}"
        for group, row in accuracies.items()
    )


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="Folder or Hub name of a trained model, or of a sentence-level translator.")
    parser.add_argument("output", type=Path, help="JSON-lines file to write, or to continue.")
    parser.add_argument(
        "--suites", nargs="+", required=True, help="ContraPro folder, or JSON files of the other suites."
    )
    parser.add_argument(
        "--context", type=at_least(0), default=3, help="Upper bound on the number of sentences before the scored one."
    )
    parser.add_argument(
        "--max_tokens", type=at_least(1), default=4096, help="Upper bound on the tokens of a batch, padding included."
    )
    add_language_options(parser)
    parser.add_argument("--json", type=Path, help="File for the accuracies.")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run("score_contrastive.py", lambda: main(sys.argv[1:])))
