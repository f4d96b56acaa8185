"""A recipe: one YAML file of arguments, any of which the command line can override."""

import json
from dataclasses import dataclass, field

import yaml
from transformers import HfArgumentParser

from modeling_gtransformer import GTransformerConfig
from train.trainer import GTransformerTrainingArguments


@dataclass
class ModelArguments:
    """Which model to train: a pretrained one, or a fresh one of the given `config` for an own tokenizer."""

    model_name_or_path: str | None = field(
        default=None, metadata={"help": "A G-Transformer or mBART checkpoint: a folder or a Hub name."}
    )
    config: dict | str | None = field(
        default=None,
        metadata={"help": "Values of GTransformerConfig; JSON on the command line, which overrides single ones."},
    )
    tokenizer_name_or_path: str | None = field(
        default=None, metadata={"help": "Tokenizer, or processor of an earlier training; default: the model's."}
    )
    source_language: str | None = field(default=None, metadata={"help": "Language code of the tokenizer, e.g. en_XX."})
    target_language: str | None = field(default=None, metadata={"help": "Language code of the tokenizer, e.g. de_DE."})

    @property
    def config_values(self) -> dict:
        return json.loads(self.config) if isinstance(self.config, str) else self.config or {}

    def __post_init__(self):
        if not (self.model_name_or_path or self.tokenizer_name_or_path):
            raise ValueError("Give model_name_or_path, or config and tokenizer_name_or_path for a fresh model.")


@dataclass
class DataArguments:
    """Which documents to train on, and how they are cut into instances."""

    train_files: list[str] = field(
        default_factory=list, metadata={"help": "JSON lines, or two text files with <d> lines, source then target."}
    )
    validation_files: list[str] = field(default_factory=list, metadata={"help": "As train_files."})
    dataset_name: str | None = field(
        default=None, metadata={"help": "Instead of files, a `datasets` dataset with train and validation splits."}
    )
    dataset_config_name: str | None = field(default=None, metadata={"help": "Configuration of that dataset."})
    source_column: str = field(default="source", metadata={"help": "Column with the list of source sentences."})
    target_column: str = field(default="target", metadata={"help": "Column with the list of target sentences."})
    segment_tokens: int = field(default=512, metadata={"help": "Longest instance, cut at sentence borders."})
    segment_sentences: int | None = field(
        default=None, metadata={"help": "Most sentences in an instance; 1 trains on single sentences."}
    )

    def __post_init__(self):
        if bool(self.dataset_name) == bool(self.train_files and self.validation_files):
            raise ValueError("Give either train_files and validation_files, or dataset_name.")


def parse_recipe(argv: list[str]) -> tuple[ModelArguments, DataArguments, GTransformerTrainingArguments]:
    """
    Parses `recipe.yaml [--key value ...]`.

    Raises:
        ValueError: an unknown key or argument, or arguments that do not go together.
    """
    arguments = (ModelArguments, DataArguments, GTransformerTrainingArguments)
    parser = HfArgumentParser(arguments, allow_abbrev=False, usage="%(prog)s recipe.yaml [--key value ...]")
    parser.add_argument("recipe", help="YAML file with any of the arguments below.")
    recipe = parser.parse_known_args(argv)[0].recipe
    with open(recipe, encoding="utf-8") as file:
        values = yaml.safe_load(file)
    known = {action.dest for action in parser._actions}
    if unknown := sorted(set(values) - known):
        raise ValueError(f"{recipe}: unknown keys {', '.join(unknown)}.")
    parser.set_defaults(**values)
    model, data, training, _ = parser.parse_args_into_dataclasses(argv, look_for_args_file=False)
    model.config = (values.get("config") or {}) | model.config_values
    if unknown := sorted(set(model.config) - set(GTransformerConfig.__dataclass_fields__)):
        raise ValueError(f"config: GTransformerConfig has no {', '.join(unknown)}.")
    return model, data, training
