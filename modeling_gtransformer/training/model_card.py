"""Model card of a trained checkpoint, generated from the files in its folder."""

import hashlib
import math
import re
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from safetensors import safe_open
from transformers import AutoConfig
from transformers.utils import logging

from ..evaluation.provenance import read_starts
from ..hub import TAGS
from ..plain_text import language_code
from ..runtime.atomic_file import read_json, write_atomic
from .arguments import ARGUMENTS_NAME
from .licenses import base_license, is_allowed


logger = logging.get_logger(__name__)

TEMPLATE = Path(__file__).with_suffix(".md")
# A validation document with its translation, in the folder of a training.
SAMPLE_NAME = "sample.json"
MARK = "<!-- Generated: {}. A card that has been edited since is kept. -->"
# Text of a card without a record of the training.
NOTHING = "This folder has no record of its training."
# The notes in a card.
NOTES = re.compile(r"<!-- Notes -->\n(.*)\n<!-- End of notes -->", re.DOTALL)
# Training arguments in the card, with their labels.
SETTINGS = {
    "learning_rate": "learning rate",
    "pretrained_lr_scale": "its factor for pretrained parameters",
    "lr_scheduler_type": "schedule",
    "warmup_steps": "warm-up, updates",
    "optim": "optimizer",
    "adam_beta1": "beta 1",
    "adam_beta2": "beta 2",
    "weight_decay": "weight decay",
    "label_smoothing_factor": "label smoothing",
    "max_tokens": "tokens per batch and device",
    "batches_per_update": "batches per update, over all devices",
    "word_dropout": "word dropout",
    "coword_dropout": "CoWord dropout",
    "fp16": "fp16",
    "bf16": "bf16",
    "seed": "seed",
}
# Validation scores in the card.
VALIDATION = {"eval_loss": "loss per token %.3f", "eval_s_bleu": "s-BLEU %.2f", "eval_d_bleu": "d-BLEU %.2f"}


def write_model_card(
    folder: Path,
    license: str | None = None,
    dataset: str | None = None,
    repository: str | None = None,
    overwrite: bool = False,
    notes: str = "",
) -> None:
    """
    Writes the card into the folder of a checkpoint. Cards written or edited by hand are preserved with a warning, as
    are cards that describe a training of which the folder no longer has a record.

    Args:
        license: SPDX identifier of the weights' licence. Default: the licence of an earlier generated card, else of
            the initial checkpoint.
        dataset: Hub identifier of the test data. Default: from an earlier generated card.
        repository: future repository of the checkpoint; by default `your-name` and the name of the folder.
        overwrite: whether to replace a preserved card.
        notes: Markdown for the section before the limits, such as the attribution of the data. Default: from an
            earlier generated card.

    Raises:
        FileNotFoundError: the folder has no weights.
        ValueError: the initial checkpoint does not permit the licence.
    """
    path = folder / "README.md"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    told = ModelCard(before, ignore_metadata_errors=True).data.to_dict() if before else {}
    of_card = told["license"] if isinstance(told.get("license"), str) else None
    base = read_json(folder / ARGUMENTS_NAME, {}).get("model_name_or_path")
    of_base = base_license(base)
    generated = is_generated(before)
    keep = before and not generated and not overwrite
    if generated and is_allowed(of_card, of_base):
        license = license or of_card
    for each in (license, of_card if keep else None):
        if not is_allowed(each, of_base):
            raise ValueError(
                f"The weights started from {base}, licensed under {of_base}, which may not permit {each}. Pass "
                f"license={of_base!r} if it permits publishing derived models."
            )
    if keep:
        logger.warning(f"{path} was written or edited by hand and is kept: --overwrite_card replaces it.")
        return
    if generated:
        dataset = dataset or next(iter(told.get("datasets") or ()), None)
        noted = NOTES.search(before)
        notes = notes or (noted[1] if noted else "")
    card = str(_model_card(folder, license, of_base, dataset, repository, notes)).rstrip("\n") + "\n"
    if NOTHING in card and before and NOTHING not in before and not overwrite:
        logger.warning(
            f"{path} is kept, because it describes the training, and {folder} no longer does "
            f"({ARGUMENTS_NAME}): --overwrite_card replaces it."
        )
        return
    write_atomic(path, f"{card}\n{MARK.format(_digest(card))}\n")


def is_generated(text: str) -> bool:
    """Returns whether a card is unchanged since [`write_model_card`] generated it."""
    body, separator, mark = text.replace("\r\n", "\n").rstrip("\n").rpartition("\n\n<!-- ")
    return bool(separator) and f"<!-- {mark}" == MARK.format(_digest(f"{body}\n"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _model_card(
    folder: Path, license: str | None, of_base: str | None, dataset: str | None, repository: str | None, notes: str
) -> ModelCard:
    config = AutoConfig.from_pretrained(folder)
    processor = read_json(folder / "processor_config.json", {})
    arguments = read_json(folder / ARGUMENTS_NAME, {})
    tests, name = read_tests(folder), (repository or folder.resolve().name).rpartition("/")[2]
    languages = {side: language_code(processor.get(side)) for side in ("src_lang", "tgt_lang")}
    base = arguments.get("model_name_or_path")
    on_hub = base if _is_on_hub(base) else None
    data = ModelCardData(
        language=[language for language in languages.values() if language],
        license=license or of_base,
        base_model=on_hub,
        datasets=[dataset] if dataset else None,
        library_name="transformers",
        pipeline_tag="translation",
        tags=TAGS,
        model_name=name,
        eval_results=_eval_results(tests, dataset) or None,
    )
    return ModelCard.from_template(
        data,
        template_path=str(TEMPLATE),
        name=name,
        address=repository or f"your-name/{name}",
        source=languages["src_lang"] or "any language",
        target=languages["tgt_lang"] or "any language",
        parameters=_parameters(folder),
        adapter=(folder / "adapter_config.json").exists(),
        config=config,
        combined={
            stack: [number for number, kind in enumerate(config.attention_types(stack), 1) if kind == "combined"]
            for stack in ("encoder", "decoder", "cross")
        },
        base=(on_hub or (f"`{Path(base).name}`" if base else "random weights")) + (f", {of_base}" if of_base else ""),
        data=_data(arguments),
        arguments=arguments,
        settings=SETTINGS,
        validation=VALIDATION,
        state=read_json(folder / "trainer_state.json", {}),
        starts=read_starts(folder),
        results=read_json(folder / "all_results.json", {}),
        tests=tests,
        compared=any("p_value" in score for test in tests for score in test["scores"].values()),
        notes=notes.strip(),
        # The text of a private corpus must not be published by accident.
        sample=read_json(folder / SAMPLE_NAME, []) if dataset else [],
    )


def read_tests(folder: Path) -> list[dict[str, Any]]:
    """Reads the scores of every test set: `name`, `scores` and, if any, `baseline`."""
    return [{"name": file.stem, **read_json(file, {})} for file in sorted((folder / "scores").glob("*.json"))]


def _is_on_hub(name: str | None) -> bool:
    """Returns whether a name can only be a model on the Hub."""
    is_name = re.fullmatch(r"[\w.-]+/[\w.-]+", name or "") is not None
    return is_name and not Path(name or "").exists() and not (name or "").startswith(("outputs/", "./", "../"))


def _parameters(folder: Path) -> int:
    """Counts parameters in the headers of the weight files."""
    total = 0
    for file in folder.glob("*.safetensors"):
        with safe_open(file, framework="np") as weights:
            for key in set(weights.keys()) - {"final_logits_bias"}:
                total += math.prod(weights.get_slice(key).get_shape())
    if not total:
        raise FileNotFoundError(f"{folder} holds no weights (*.safetensors).")
    return total


def _data(arguments: dict[str, Any]) -> str:
    if "segment_tokens" not in arguments:  # not trained, or only converted
        return NOTHING
    named = arguments.get("dataset_name") or arguments.get("paper_corpus")
    if named and Path(named).exists():
        named = Path(named).name
    files = [Path(file).name for file in arguments.get("train_files") or []]
    source = f"the dataset `{named}`" if named else ", ".join(f"`{file}`" for file in files)
    cut = f"segments of fewer than {arguments['segment_tokens']} tokens, cut at sentence boundaries"
    if arguments.get("segment_sentences"):
        cut += f" and after {arguments['segment_sentences']} sentences"
    return f"Trained on {source}, in {cut}."


def _eval_results(tests: list[dict[str, Any]], dataset: str | None) -> list[EvalResult]:
    return [
        EvalResult(
            task_type="translation",
            dataset_type=dataset or test["name"],
            dataset_name=test["name"],
            metric_type="chrf" if metric == "chrF" else "bleu",
            metric_name=metric,
            metric_value=round(score["score"], 2),
            metric_args={"signature": score["signature"]},
        )
        for test in tests
        for metric, score in test["scores"].items()
    ]
