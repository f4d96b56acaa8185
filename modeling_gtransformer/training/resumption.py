"""Resumption of trainings: the main process decides, for all processes on one or several machines."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object
from transformers import TrainerCallback
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..runtime.atomic_file import read_json, write_json
from .arguments import ARGUMENTS_NAME, GTransformerTrainingArguments


RESULTS_NAME = "eval_results.json"
# Arguments that may change on resumption, and prefixes of the names of such arguments.
MAY_CHANGE = {"output_dir", "resume_from_checkpoint", "report_to", "disable_tqdm", "local_rank", "run_name"}
MAY_CHANGE |= {"save_total_limit", "push_to_hub", "ddp_timeout", "save_on_each_node", "per_device_eval_batch_size"}
MAY_CHANGE |= {f"dataloader_{name}" for name in ("num_workers", "pin_memory", "prefetch_factor", "persistent_workers")}
MAY_CHANGE_FROM = ("hub_", "log_", "logging_")
# Arguments that only determine others: max_tokens and batches_per_update, fp16 and bf16.
DERIVED_FROM = {"tokens_per_update", "gradient_accumulation_steps", "precision"}
# Arguments whose values Transformers restores from a checkpoint.
RESTORED = {"learning_rate", "pretrained_lr_scale", "weight_decay", "optim", "eval_steps", "save_steps"}
RESTORED |= {"adam_beta1", "adam_beta2", "adam_epsilon"}
RESUMED_FROM = "resumed from"


class Progress(NamedTuple):
    """The progress of the training in a folder."""

    checkpoint: str | None = None  # folder to continue from
    scores: dict[str, float] | None = None  # of a finished training
    goes_on: bool = False  # whether the user has continued it from this checkpoint, even if it had stopped there


def lasting_arguments(args: GTransformerTrainingArguments, arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a training that must not change on resumption, as JSON values."""
    arguments = {**arguments, "batches_per_update": args.batches_per_update}
    free = MAY_CHANGE | DERIVED_FROM
    arguments = {k: v for k, v in arguments.items() if k not in free and not k.startswith(MAY_CHANGE_FROM)}
    arguments = json.loads(json.dumps(arguments, default=str))
    if args.resume_from_checkpoint:  # the initial model is that of the training of the checkpoint
        before = _read_whole(Path(args.resume_from_checkpoint).parent / ARGUMENTS_NAME) or {}
        if "model_name_or_path" in before:
            arguments["model_name_or_path"] = before["model_name_or_path"]
    return arguments


def find_progress(args: GTransformerTrainingArguments, arguments: dict[str, Any]) -> Progress:
    """
    Finds the progress of the training in `args.output_dir`, in the main process for all processes. A new training
    saves its [`lasting_arguments`] there.

    Raises:
        ValueError: the folder has a training with other arguments, the checkpoint does not exist or cannot continue
            with the arguments, or some processes do not have access to the files.
    """
    found: Progress | ValueError | None = None
    if args.process_index == 0:
        try:
            found = _progress(args, arguments)
        except ValueError as error:
            found = error
    [found] = broadcast_object_list([found])
    if not isinstance(found, Progress):
        raise found
    if found.scores is not None:
        return found
    kept = Path(args.output_dir) / ARGUMENTS_NAME
    if args.should_save and not found.checkpoint:
        write_json(kept, arguments)  # atomically: a truncated file would block every later start
    PartialState().wait_for_everyone()
    _refuse_unless_seen(Path(found.checkpoint) / TRAINER_STATE_NAME if found.checkpoint else kept)
    return found


class KeepArguments(TrainerCallback):
    """At the start of a training, after all checks, saves the arguments of a resumption and removes old scores, which
    would mark the training as finished."""

    def __init__(self, arguments: dict[str, Any]):
        self.arguments = arguments

    def on_train_begin(self, args, state, control, **kwargs):
        if args.should_save:
            if args.resume_from_checkpoint:
                origin = {RESUMED_FROM: str(Path(args.resume_from_checkpoint).resolve())}
                write_json(Path(args.output_dir) / ARGUMENTS_NAME, self.arguments | origin)
            (Path(args.output_dir) / RESULTS_NAME).unlink(missing_ok=True)


def _complete_checkpoints(folder: str | Path) -> list[Path]:
    """Returns the complete checkpoints in a folder. A kill or a full disk leaves incomplete ones."""
    states = Path(folder).glob(f"{PREFIX_CHECKPOINT_DIR}-*/{TRAINER_STATE_NAME}")
    return [state.parent for state in states if _read_whole(state) is not None]  # Trainer writes the state last


def _progress(args: GTransformerTrainingArguments, arguments: dict[str, Any]) -> Progress:
    if args.resume_from_checkpoint:
        if not (Path(args.resume_from_checkpoint) / TRAINER_STATE_NAME).exists():
            raise ValueError(
                f"{args.resume_from_checkpoint} is not a checkpoint of a training: pass a folder such as "
                f"{args.output_dir}/{PREFIX_CHECKPOINT_DIR}-500, or omit --resume_from_checkpoint to use the "
                "last checkpoint."
            )
        _refuse_resumption(args, arguments)
        return Progress(args.resume_from_checkpoint)
    output_dir = Path(args.output_dir)
    # A training that failed before its first checkpoint may restart with other arguments.
    has_begun = any(output_dir.glob("checkpoint-*")) or any(output_dir.glob("*.safetensors"))
    before = read_json(output_dir / ARGUMENTS_NAME, {}) if has_begun else {}
    # Arguments that did not exist at that time had no effect.
    changed = [
        name if isinstance(value, list | dict) else f"{name} ({before[name]}, now {value})"
        for name, value in arguments.items()
        if name in before and value != before[name]
    ]
    if changed:
        raise ValueError(
            f"{output_dir} has a training with another {', '.join(changed)}: choose another output_dir, remove "
            "this one, or continue anyway with --resume_from_checkpoint."
        )
    if (scores := _read_whole(output_dir / RESULTS_NAME)) is not None:
        return Progress(scores=scores)
    checkpoint = max(_complete_checkpoints(output_dir), key=_step, default=None)
    if checkpoint is None:
        return Progress()
    if args.save_only_model:
        raise ValueError(
            f"{checkpoint} has no state of the optimizer, because of save_only_model: choose another output_dir, or "
            "continue anyway with --resume_from_checkpoint."
        )
    return Progress(str(checkpoint), goes_on=before.get(RESUMED_FROM) == str(checkpoint.resolve()))


def _refuse_resumption(args: GTransformerTrainingArguments, arguments: dict[str, Any]) -> None:
    """Raises `ValueError` if later checkpoints would be continued next time, or arguments would have no effect."""
    checkpoint = Path(args.resume_from_checkpoint)
    if checkpoint.resolve().parent == Path(args.output_dir).resolve():
        later = [other.name for other in _complete_checkpoints(args.output_dir) if _step(other) > _step(checkpoint)]
        if later:
            raise ValueError(
                f"{args.output_dir} has the later {', '.join(sorted(later))}: omit --resume_from_checkpoint to "
                "continue from the last one, or remove the later ones first."
            )
    before = _read_whole(checkpoint.parent / ARGUMENTS_NAME) or {}
    changed = [name for name in sorted(RESTORED) if name in before and before[name] != arguments.get(name)]
    if changed:
        values = ", ".join(f"{name} ({before[name]}, now {arguments.get(name)})" for name in changed)
        raise ValueError(
            f"{checkpoint} keeps its {values}: leave them as they were, or start a new training from its weights with "
            "--model_name_or_path."
        )


def _step(checkpoint: Path) -> int:
    """Returns the number of updates of a checkpoint."""
    step = checkpoint.name.rpartition("-")[2]
    return int(step) if step.isdigit() else 0


def _read_whole(file: Path) -> Any:
    """Reads a JSON file; returns `None` if it is missing or truncated."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _refuse_unless_seen(file: Path) -> None:
    blind = [index for index, seen in enumerate(gather_object([file.exists()])) if not seen]
    if blind:
        raise ValueError(
            f"Processes {blind} do not see {file}: put output_dir on a disk shared by all machines. For one disk per "
            "machine, train with --save_on_each_node true and copy the checkpoint to each of them."
        )
