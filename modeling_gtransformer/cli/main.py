"""The command `gtransformer`. A subcommand is imported when it is called."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from typing import Annotated, Any, NamedTuple

import typer

from .errors import run
from .typed_command import Work, typed_command


PROGRAM = "gtransformer"


class Subcommand(NamedTuple):
    """What a subcommand calls, as `module:dataclass of its options:function`, and its description."""

    call: str
    help: str


SUBCOMMANDS = {
    "translate": Subcommand("cli.translate:TranslateOptions:translate", "Translate files, pipes and corpora."),
    "serve": Subcommand("server.serve:ServerOptions:serve", "Translate over HTTP."),
    "publish": Subcommand("publishing.checkpoint:PublishOptions:publish", "Upload a checkpoint with its card."),
    "publish-dataset": Subcommand("publishing.dataset:DatasetOptions:publish_dataset", "Upload a dataset."),
    "publish-metric": Subcommand("publishing.metric:MetricOptions:publish_metric", "Upload the metric."),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command, and returns its exit status."""
    argv = sys.argv[1:] if argv is None else [*argv]
    name = max((name for name in SUBCOMMANDS if argv[: len(name.split())] == name.split()), key=len, default="")
    begun: list[Work] = []
    try:
        application(name, begun.append)(argv, prog_name=PROGRAM)
    except SystemExit as end:
        if not begun:  # help, version, or options that cannot be parsed
            return int(end.code or 0)

    def work() -> Any:
        import_module("modeling_gtransformer.registration")
        return begun[0]()

    return run(f"{PROGRAM} {name}", work)


def translate() -> int:
    """Runs `gtransformer translate` by its name `gtransformer-translate`."""
    return _alias("translate")


def serve() -> int:
    """Runs `gtransformer serve` by its name `gtransformer-serve`."""
    return _alias("serve")


def _alias(name: str) -> int:
    return main([name, *sys.argv[1:]] if sys.argv[1:] != ["--version"] else None)


def application(called: str, begin: Callable[[Work], None]) -> typer.Typer:
    """
    The parser of all subcommands.

    Args:
        called: the subcommand whose options are needed.
        begin: takes the call of the subcommand.
    """
    settings: dict[str, Any] = {"rich_markup_mode": None, "add_completion": False, "pretty_exceptions_enable": False}
    groups = {"": typer.Typer(help="Document-level translation, sentence by sentence.", **settings)}
    groups[""].callback()(_version)
    for name, subcommand in SUBCOMMANDS.items():
        group, _, own_name = name.rpartition(" ")
        if group not in groups:
            groups[group] = typer.Typer(**settings)
            groups[""].add_typer(groups[group], name=group, help=f"Commands that {group}.")
        function = _loaded(subcommand, begin) if name == called else _nothing
        groups[group].command(own_name, short_help=subcommand.help)(function)
    return groups[""]


def _loaded(subcommand: Subcommand, begin: Callable[[Work], None]) -> Callable[..., None]:
    module, options, function = subcommand.call.split(":")
    loaded = import_module(f"modeling_gtransformer.{module}")
    return typed_command(getattr(loaded, options), getattr(loaded, function), begin)


def _nothing() -> None:
    """Stands for a subcommand that is not called."""


def _print_version(asked: bool) -> None:
    if asked:
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
