"""Score how a model uses context: the gain in log-probability of reference translations with the true document.

    python train/score_context.py outputs/finetuned talks.jsonl --source_column en --target_column de \\
        [--contexts shuffled other none] [--words address pronouns it=er,sie,es] [--json scores.json]

This is the conditional cross-mutual information of Fernandes et al. (2021), in bits per target token: the true
document against the same sentences in another order ("shuffled"), against sentences of other documents ("other"), and
against no context ("none"). In each of these, every sentence is scored on the same tokens. Intervals are 95 %
bootstrap intervals over documents.

`--words` breaks the gain down by classes of words, by their exact form: "address" (German Sie, du, Ihnen ...),
"pronouns" (er, sie, es ...), or a name with words of your own.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from modeling_gtransformer.atomic_file import check_outputs, write_json
from modeling_gtransformer.cli.errors import run
from modeling_gtransformer.cli.script_options import add_column_options, at_least
from modeling_gtransformer.cli.translator_options import add_language_options
from modeling_gtransformer.corpora.corpus import read_documents
from modeling_gtransformer.evaluation.context_gain import (
    CONTEXTS,
    WORD_CLASSES,
    context_gains,
    encode_corpus,
    in_context,
    token_log_probabilities,
)
from modeling_gtransformer.evaluation.provenance import provenance
from modeling_gtransformer.translator import Translator


def main(argv: list[str]) -> dict[str, Any]:
    """Prints the gains and returns them, with the mean number of sentences in one input of each context."""
    args = parse_arguments(argv)
    check_outputs([args.json], args.files)
    columns = [args.source_column, args.target_column]
    corpus = read_documents(args.files, columns)
    translate = Translator(args.model, args.src_lang, args.tgt_lang).pipeline
    model, processor = translate.model.eval(), translate.processor

    classes = dict(args.words)
    sources, targets = ([document[column] for document in corpus] for column in columns)
    documents = encode_corpus(processor, sources, targets, with_words=bool(classes))
    segments = {
        context: in_context(context, documents, args.segment_tokens, processor.sentence_tokens, args.seed)
        for context in ("document", *args.contexts)
    }
    scores = {
        context: token_log_probabilities(model, processor, cut, args.max_tokens) for context, cut in segments.items()
    }
    gains = context_gains(documents, scores, classes)
    sentences = sum(map(len, documents))
    results = {
        "gains": {context: gains[context] for context in args.contexts},
        "sentences": {context: sentences / len(cut) for context, cut in segments.items()},
    }
    print(table(results))
    if args.json:
        content = {**results, "corpus": [Path(file).name for file in args.files]}
        write_json(args.json, {**content, **provenance(["train/score_context.py", *argv])})
    return results


def table(results: dict[str, Any]) -> str:
    """Formats a line per context and class of words."""
    lines = ["bits per target token by which the true document is better"]
    for context, of_classes in results["gains"].items():
        for name, gain in of_classes.items():
            low, high = gain["interval"]
            line = f"than {context:9} {name:12} {gain['gain']:+8.4f}   95 % [{low:+.4f}, {high:+.4f}]"
            lines.append(f"{line}   {gain['tokens']} tokens of {gain['documents']} documents")
    lines += [f"{size:6.1f} sentences together: {context}" for context, size in results["sentences"].items()]
    return "\n".join(lines)


def word_class(text: str) -> tuple[str, list[str]]:
    """Parses `name` or `name=word,word`."""
    name, _, words = text.partition("=")
    words = words or WORD_CLASSES.get(name, "")
    if not words:
        known = ", ".join(WORD_CLASSES)
        raise argparse.ArgumentTypeError(f"{text!r} is neither one of {known} nor a name with words, name=word,word.")
    return name, words.split(",")


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="Folder or Hub name of a trained model, or of a sentence-level translator.")
    parser.add_argument("files", nargs="+", help="Documents in a format that train.py reads.")
    add_language_options(parser)
    add_column_options(parser, "source", "target")
    parser.add_argument(
        "--contexts", nargs="+", choices=CONTEXTS, default=CONTEXTS, help="Contexts to compare the true one with."
    )
    parser.add_argument(
        "--words", nargs="+", type=word_class, default=[], help="Classes of words: names, or name=word,word,..."
    )
    parser.add_argument(
        "--segment_tokens", type=at_least(1), default=512, help="Upper bound on the tokens of a segment."
    )
    parser.add_argument(
        "--max_tokens", type=at_least(1), default=4096, help="Upper bound on the tokens of a batch, padding included."
    )
    parser.add_argument("--seed", type=int, default=1, help="Seed of the contexts that are drawn.")
    parser.add_argument("--json", type=Path, help="File for the gains.")
    args = parser.parse_args(argv)
    names = ["all", *(name for name, _ in args.words)]  # the class of all words is always there
    if twice := sorted({name for name in names if names.count(name) > 1}):
        parser.error(f"--words: {', '.join(twice)} is the name of several classes of words")
    return args


if __name__ == "__main__":
    sys.exit(run("score_context.py", lambda: main(sys.argv[1:])))
