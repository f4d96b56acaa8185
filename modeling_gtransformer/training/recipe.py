"""Recipes: YAML files of arguments, which the command line can override.

A recipe is a file, or the name of a packaged recipe such as "opus_mt". With `extends`, it starts from one or several
other recipes, later ones overriding earlier ones, and sets only differences.
"""

import difflib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from transformers import HfArgumentParser
from transformers.hf_argparser import HfArg

from ..configuration_gtransformer import GTransformerConfig
from ..runtime.usage_error import UsageError
from ..translation_options import check_bound
from .arguments import GTransformerTrainingArguments
from .paper_corpora import CORPORA, PaperCorpus


# Folder of packaged recipes.
RECIPES = Path(__file__).parents[1] / "recipes"
# Valid ranges of arguments.
RANGES = {
    "segment_tokens": (1, math.inf),
    "segment_sentences": (1, math.inf),
    "min_document_tokens": (0, math.inf),
    "train_segments": (1, math.inf),
}


@dataclass
class ModelArguments:
    """The model to train: a pretrained one, or a new one with a `config` and a tokenizer."""

    model_name_or_path: str | None = HfArg(
        default=None, help="Folder or Hub name of a G-Transformer or a supported checkpoint."
    )
    config: dict | str | None = HfArg(
        default=None, help="Fields of GTransformerConfig; on the command line, JSON that overrides single fields."
    )
    tokenizer_name_or_path: str | None = HfArg(
        default=None,
        help="Folder or Hub name of a tokenizer, or of an earlier training's processor; default: the model's.",
    )
    src_lang: str | None = HfArg(default=None, help="Code of the source language, e.g. en_XX.")
    tgt_lang: str | None = HfArg(default=None, help="Code of the target language, e.g. de_DE.")

    copy_group_attention: bool = HfArg(
        default=False, help="Start fresh global attention as a copy of the pretrained group attention of its layer."
    )
    lora: dict | str | None = HfArg(
        default=None, help="Fields of peft's LoraConfig, to train only an adapter; on the command line, JSON."
    )

    @property
    def config_values(self) -> dict:
        return json.loads(self.config) if isinstance(self.config, str) else self.config or {}

    @property
    def lora_values(self) -> dict | None:
        return json.loads(self.lora) if isinstance(self.lora, str) else self.lora

    def __post_init__(self):
        if self.lora and not self.model_name_or_path:
            raise ValueError("lora needs model_name_or_path: an adapter belongs to a pretrained model.")
        if self.copy_group_attention and not self.model_name_or_path:
            raise ValueError("copy_group_attention needs model_name_or_path: it copies pretrained weights.")
        if not (self.model_name_or_path or self.tokenizer_name_or_path):
            raise ValueError("Give model_name_or_path, or config and tokenizer_name_or_path for a fresh model.")


@dataclass
class DataArguments:
    """The documents to train on, and how to cut them into segments."""

    train_files: list[str] = HfArg(
        default_factory=list,
        help="Training documents: JSON-lines files, or two text files with <d> lines, source then target.",
    )
    validation_files: list[str] = HfArg(
        default_factory=list, help="Validation documents, in the same formats as train_files."
    )
    dataset_name: str | None = HfArg(
        default=None, help="Name of a `datasets` dataset with train and validation splits, instead of files."
    )
    dataset_config_name: str | None = HfArg(default=None, help="Configuration of that dataset.")
    dataset_streaming: bool = HfArg(
        default=False, help="Stream that dataset once and store its documents, not its files."
    )
    paper_corpus: PaperCorpus | None = HfArg(
        default=None, help="One of the paper's corpora on the Hub, instead of files: ted, news or europarl."
    )
    source_column: str = HfArg(default="source", help="Column with the list of source sentences.")
    target_column: str = HfArg(default="target", help="Column with the list of target sentences.")
    segment_tokens: int = HfArg(
        default=512, help="Keep segments, which end between sentences, below this many tokens."
    )
    segment_sentences: int | None = HfArg(
        default=None, help="Upper bound on the sentences of a segment; 1 trains on single sentences."
    )
    min_document_tokens: int = HfArg(
        default=0, help="Lower bound on the tokens of a training document; shorter ones are skipped."
    )
    train_segments: int | None = HfArg(
        default=None, help="Number of training segments, drawn with the seed; default: all."
    )

    def __post_init__(self):
        for name, bounds in RANGES.items():
            check_bound(name, getattr(self, name), *bounds)
        if bool(self.train_files) != bool(self.validation_files):
            raise ValueError("train_files and validation_files go together: give both.")
        files = bool(self.train_files)
        if [files, bool(self.dataset_name), bool(self.paper_corpus)].count(True) != 1:
            raise ValueError("Give either train_files and validation_files, or dataset_name, or paper_corpus.")
        if self.paper_corpus and self.paper_corpus not in CORPORA:
            raise ValueError(f"paper_corpus must be one of {', '.join(CORPORA)}, not {self.paper_corpus}.")


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Reads a YAML file. Raises `ValueError` if it is not a mapping."""
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} is not a mapping of names to values.")
    return values


def find_recipe(name: str | Path, folder: Path = Path()) -> Path:
    """Returns the path of a recipe, a file relative to the folder or a packaged one; raises `UsageError` without."""
    if (folder / name).is_file():
        return (folder / name).resolve()
    # Older commands and studies use the former folder of packaged recipes: train/recipes/opus_mt.yaml.
    packaged = (RECIPES / str(name).rpartition("recipes/")[2]).with_suffix(".yaml")
    if packaged.is_file():
        return packaged
    near = closest(Path(name).stem, (path.stem for path in RECIPES.glob("*.yaml")))
    raise UsageError(f"There is no recipe {name}{near}.")


def closest(name: str, known: Iterable[str]) -> str:
    """Suggests the known name most similar to a wrong one; "" if no name is similar."""
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return f" (did you mean {found[0]}?)" if found else ""


def start_of(folder: str) -> str:
    """Returns the command that writes the folder from which a packaged recipe starts; "" if unknown."""
    if folder == "outputs/bert_start":
        return f"gtransformer convert bert google-bert/bert-base-multilingual-cased {folder}"
    makers = (path.stem for path in sorted(RECIPES.glob("*.yaml")) if read_recipe(path).get("output_dir") == folder)
    return next((f"gtransformer train {maker}" for maker in makers), "")


def read_recipe(path: str | Path, extended_by: tuple[Path, ...] = ()) -> dict[str, Any]:
    """
    Returns the arguments of a recipe merged with those of the recipes that it extends.

    Raises:
        UsageError: there is no such recipe.
        ValueError: the file is not a mapping, or extends itself.
    """
    path = find_recipe(path)
    if path in extended_by:
        raise ValueError(f"{path} extends itself.")
    values = read_yaml(path)
    bases = extended(values)
    values.pop("extends", None)
    merged: dict[str, Any] = {"config": {}} if bases else {}
    for each in [*(read_recipe(find_recipe(base, path.parent), (*extended_by, path)) for base in bases), values]:
        inner = [name for name in ("config", "lora") if isinstance(each.get(name), dict)]
        merged = {**merged, **each, **{name: {**(merged.get(name) or {}), **each[name]} for name in inner}}
    return merged


def extended(values: dict[str, Any]) -> list[str]:
    """Returns the recipes that a recipe extends."""
    bases = values.get("extends", [])
    return [bases] if isinstance(bases, str) else bases


def parse_recipe(argv: list[str]) -> tuple[ModelArguments, DataArguments, GTransformerTrainingArguments]:
    """
    Parses `recipe [--key value ...]`.

    Raises:
        ValueError, or huggingface_hub's StrictDataclassError: an argument is unknown, or values contradict each other.
    """
    arguments = (ModelArguments, DataArguments, GTransformerTrainingArguments)
    parser = HfArgumentParser(
        arguments, allow_abbrev=False, prog="gtransformer train", usage="%(prog)s RECIPE [--key value ...]"
    )
    parser.add_argument("recipe", help="Name of a packaged recipe, or YAML file with any of the arguments below.")
    recipe = parser.parse_known_args(argv)[0].recipe
    values = read_recipe(recipe)
    known = {action.dest for action in parser._actions}
    refuse_unknown(set(values) - known, known, f"{recipe}: unknown keys")
    # A string may stand for a list of one.
    lists = {action.dest for action in parser._actions if action.nargs in ("+", "*")}
    parser.set_defaults(**{k: [v] if k in lists and isinstance(v, str) else v for k, v in values.items()})
    model, data, training, _, unknown = parser.parse_args_into_dataclasses(
        argv, return_remaining_strings=True, look_for_args_file=False
    )
    options = {word.partition("=")[0].removeprefix("--") for word in unknown if word.startswith("--")}
    refuse_unknown(options or set(unknown), known, "Unknown options")
    model.config = (values.get("config") or {}) | model.config_values
    if model.lora_values:
        model.lora = (values.get("lora") or {}) | model.lora_values
    fields = set(GTransformerConfig.__dataclass_fields__)
    refuse_unknown(set(model.config) - fields, fields, "config: GTransformerConfig has no")
    if not model.model_name_or_path:
        if "vocab_size" in model.config_values:
            raise ValueError("config: vocab_size comes from the tokenizer: leave it out.")
        GTransformerConfig(**model.config_values)  # detects contradictions early
    return model, data, training


def refuse_unknown(unknown: set[str], known: set[str], what: str) -> None:
    """Raises `UsageError` for unknown names, with similar known ones."""
    if unknown:
        raise UsageError(f"{what} {', '.join(name + closest(name, known) for name in sorted(unknown))}.")
