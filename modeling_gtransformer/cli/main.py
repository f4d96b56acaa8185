"""The command `gtransformer`, which imports only the called subcommand."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module, metadata
from typing import Annotated, Any, NamedTuple

import typer

from .errors import run
from .typed_command import TYPER, Work, run_parsed, typed_command


PROGRAM = "gtransformer"


class Subcommand(NamedTuple):
    """
    A function, as `module:dataclass of options:function`, and its description. Without a dataclass, the function
    parses the rest of the command line.
    """

    call: str
    help: str

    @property
    def options(self) -> str:
        """Name of the dataclass of options."""
        return self.call.split(":")[1]

    def load(self) -> tuple[Any, Callable[[Any], Any]]:
        """Imports the dataclass of options, if any, and the function."""
        module, options, function = self.call.split(":")
        loaded = import_module(f"modeling_gtransformer.{module}")
        return getattr(loaded, options) if options else None, getattr(loaded, function)


GROUPS = {"evaluate": "Score translations and models.", "convert": "Make checkpoints and tokenizers."}
SUBCOMMANDS = {
    "translate": Subcommand("cli.translate:TranslateOptions:translate", "Translate files, pipes and corpora."),
    "train": Subcommand("training.experiment::train_recipe", "Train or fine-tune a model by a recipe."),
    "evaluate scores": Subcommand("evaluation.scores:ScoreOptions:evaluate_scores", "BLEU and chrF of translations."),
    "evaluate context": Subcommand(
        "evaluation.context:ContextOptions:evaluate_context", "Gain of a model from document context."
    ),
    "evaluate contrastive": Subcommand(
        "evaluation.contrastive:ContrastiveOptions:evaluate_contrastive", "Accuracy on contrastive test suites."
    ),
    "evaluate formality": Subcommand(
        "evaluation.formality:FormalityOptions:evaluate_formality", "Formality of German translations."
    ),
    "evaluate lost-sentences": Subcommand(
        "evaluation.lost_sentences:LostSentencesOptions:evaluate_lost_sentences", "Sentences missing in translations."
    ),
    "convert bert": Subcommand("training.bert:BertOptions:convert_bert", "Start a model from BERT."),
    "convert fairseq": Subcommand(
        "training.fairseq:FairseqOptions:convert_fairseq", "Convert a checkpoint of the authors' code."
    ),
    "convert tokenizer": Subcommand("training.tokenizer:TokenizerOptions:convert_tokenizer", "Train a tokenizer."),
    "convert vocabulary": Subcommand(
        "training.trimming:VocabularyOptions:convert_vocabulary", "Remove tokens unused in a corpus."
    ),
    "serve": Subcommand("server.serve:ServerOptions:serve", "Translate over HTTP."),
    "publish": Subcommand("training.publish:PublishOptions:publish", "Upload a checkpoint with its card."),
}


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else [*argv]
    name = max((name for name in SUBCOMMANDS if argv[: len(name.split())] == name.split()), key=len, default="")
    program = f"{PROGRAM} {name}"
    if name and not SUBCOMMANDS[name].options:
        return run(program, lambda: SUBCOMMANDS[name].load()[1](argv[len(name.split()) :]))
    return run_parsed(program, partial(application, name), argv)


def translate() -> int:
    return _alias("translate")


def serve() -> int:
    return _alias("serve")


def _alias(name: str) -> int:
    return main([name, *sys.argv[1:]] if sys.argv[1:] != ["--version"] else None)


def application(called: str, begin: Callable[[Work], None]) -> typer.Typer:
    """
    Makes the parser of all subcommands.

    Args:
        called: the subcommand to import, with its options.
        begin: receives the call of the subcommand.
    """
    groups = {"": typer.Typer(help="Document-level translation, sentence by sentence.", **TYPER)}
    groups[""].callback()(_version)
    for name, subcommand in SUBCOMMANDS.items():
        group, _, own_name = name.rpartition(" ")
        if group not in groups:
            groups[group] = typer.Typer(**TYPER)
            groups[""].add_typer(groups[group], name=group, help=GROUPS[group])
        function = typed_command(*subcommand.load(), begin) if name == called else _nothing
        groups[group].command(own_name, short_help=subcommand.help)(function)
    return groups[""]


def _nothing() -> None:
    """Placeholder for subcommands that are not called."""


def _print_version(requested: bool) -> None:
    if requested:
        print(f"{PROGRAM} {metadata.version('gtransformer-hf')}")
        raise typer.Exit


def _version(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
