"""Training arguments: `Seq2SeqTrainer`'s, plus those of the paper."""

import logging
import math
import os
from dataclasses import dataclass
from typing import Literal

import torch
from transformers import Seq2SeqTrainingArguments
from transformers.hf_argparser import HfArg
from transformers.utils import strtobool

from ..runtime.usage_error import UsageError
from ..translation_options import check_bound


logger = logging.getLogger(__name__)

# File with the arguments in the folder of a training.
ARGUMENTS_NAME = "arguments.json"
# Valid ranges of arguments.
RANGES = {
    "max_tokens": (1, math.inf),
    "tokens_per_update": (1, math.inf),
    "decay_steps": (1, math.inf),
    "word_dropout": (0, 1),
    "word_dropout_epochs": (0, math.inf),
    "coword_dropout": (0, 1),
    "label_smoothing_factor": (0, 1),
    "pretrained_lr_scale": (0, math.inf),
}


@dataclass
class GTransformerTrainingArguments(Seq2SeqTrainingArguments):
    """
    Arguments of `Seq2SeqTrainer` and of the paper. `per_device_train_batch_size` has no effect.

    Two values are derived for the machine: the precision, and the gradient accumulation from `tokens_per_update`.
    """

    max_tokens: int = HfArg(default=4096, help="Upper bound on the tokens in a batch on one device, padding included.")
    tokens_per_update: int | None = HfArg(
        default=None,
        help="Number of tokens in an update, over all devices and padding included; sets gradient_accumulation_steps. "
        "Default: max_tokens times the number of devices times gradient_accumulation_steps.",
    )
    precision: Literal["auto", "bf16", "fp16", "float32"] = HfArg(
        default="float32",
        help="Number format of the computation; auto: bf16 on a GPU that supports it, else fp16, float32 on a CPU. "
        "--fp16, --bf16 and accelerate launch --mixed_precision override it.",
    )
    fp16: bool | None = HfArg(
        default=None, help="Compute in fp16; default: set by precision.", metadata={"nargs": "?", "const": True}
    )
    bf16: bool | None = HfArg(
        default=None, help="Compute in bf16; default: set by precision.", metadata={"nargs": "?", "const": True}
    )
    save_strategy: str | None = HfArg(
        default=None,
        help="When to save a checkpoint: no, steps, epoch or best; default: at every evaluation with "
        "load_best_model_at_end, else steps.",
    )
    save_steps: float | None = HfArg(
        default=None,
        help="Number of updates between checkpoints, or a fraction of all updates; default: eval_steps with "
        "load_best_model_at_end, else 500.",
    )
    decay_steps: int | None = HfArg(
        default=None, help="Number of updates after which the decay of the learning rate ends; default: all updates."
    )
    report_to: list[str] = HfArg(
        default_factory=lambda: ["none"], help="Where to log, e.g. tensorboard wandb; all, or none."
    )
    pretrained_lr_scale: float = HfArg(
        default=1.0, help="Factor on the learning rate of all parameters except the fresh ones."
    )
    fresh_parameters: list[str] = HfArg(
        default_factory=lambda: ["_global.", "_gate."],
        help="Substrings in the names of fresh parameters, which are missing in the checkpoint.",
    )
    word_dropout: float = HfArg(
        default=0.0, help="Probability that a source or target input word is replaced by <mask>."
    )
    word_dropout_epochs: int | None = HfArg(
        default=None, help="Number of first epochs with word dropout; default: all."
    )
    coword_dropout: float = HfArg(
        default=0.0,
        help="Probability that a source word of a random third of the sentences is replaced by <mask>, to train the "
        "use of context (Fernandes et al., 2021).",
    )
    restore_callback_states_from_checkpoint: bool = HfArg(
        default=True, help="Resume early stopping with the remaining patience."
    )
    attention_entropy: bool = HfArg(
        default=False, help="Measure the entropy of attention in validation, with one more forward pass."
    )
    early_stopping_patience: int | None = HfArg(
        default=None, help="Number of evaluations without a better metric_for_best_model after which training stops."
    )
    stop_at_eval_loss: float | None = HfArg(
        default=None, help="Validation loss, in nats per token, at which training stops."
    )

    def __post_init__(self):
        for name, bounds in RANGES.items():
            check_bound(name, getattr(self, name), *bounds)
        self._set_precision()
        self._refuse_without_effect()
        self._set_save_strategy()
        if self.early_stopping_patience:
            self.metric_for_best_model: str = self.metric_for_best_model or "loss"
        super().__post_init__()
        if self.n_gpu > 1:
            logger.warning(
                f"This process sees {self.n_gpu} GPUs but uses one: start one process per GPU with accelerate launch."
            )
            self._n_gpu = 1
        if self.tokens_per_update is not None:
            self._divide_update(self.tokens_per_update)
        self.refuse_early_end_of_decay(self.max_steps)

    def refuse_early_end_of_decay(self, updates: int) -> None:
        """Raises `UsageError` if the learning rate decays in fewer updates: some schedules would rise again."""
        if self.decay_steps is not None and self.decay_steps < updates:
            raise UsageError(
                f"The learning rate ends after decay_steps={self.decay_steps}, before the {updates} updates of the "
                "training: raise decay_steps, or lower max_steps or num_train_epochs."
            )

    @property
    def batches_per_update(self) -> int:
        """Number of batches in an update, over all processes."""
        return self.world_size * self.gradient_accumulation_steps

    def _set_precision(self) -> None:
        by_launcher = os.environ.get("ACCELERATE_MIXED_PRECISION", "no") != "no"
        if self.fp16 is None and self.bf16 is None and not by_launcher:
            on_cpu = self.use_cpu or strtobool(os.environ.get("ACCELERATE_USE_CPU", "false"))
            precision = _best_precision(bool(on_cpu)) if self.precision == "auto" else self.precision
            self.fp16, self.bf16 = precision == "fp16", precision == "bf16"
        self.fp16, self.bf16 = bool(self.fp16), bool(self.bf16)

    def _refuse_without_effect(self) -> None:
        for name, steps in (("eval", self.eval_steps), ("save", self.save_steps)):
            if steps is not None and getattr(self, f"{name}_strategy") == "epoch":
                raise ValueError(f"{name}_steps has no effect with {name}_strategy=epoch: set that to steps.")
        if self.early_stopping_patience is not None and self.early_stopping_patience < 1:
            raise ValueError(
                "early_stopping_patience must be at least 1: leave it out to train without early stopping."
            )
        for name, value in (("auto_find_batch_size", False), ("train_sampling_strategy", "random")):
            if getattr(self, name, value) != value:
                raise ValueError(f"{name} has no effect, as max_tokens determines the batches: leave it out.")
        for name in ("load_best_model_at_end", "early_stopping_patience", "stop_at_eval_loss"):
            if getattr(self, name) not in (None, False) and self.eval_strategy == "no":
                raise ValueError(f"{name} needs evaluations: set eval_strategy to epoch or steps.")

    def _set_save_strategy(self) -> None:
        """Saves at every evaluation with `load_best_model_at_end`, so that the best model has a checkpoint."""
        if self.save_strategy is None:
            self.save_strategy = self.eval_strategy if self.load_best_model_at_end else "steps"
        if self.save_steps is None and self.save_strategy == "steps":
            self.save_steps = (self.eval_steps or self.logging_steps) if self.load_best_model_at_end else 500
        by_steps = self.load_best_model_at_end and self.save_strategy == self.eval_strategy == "steps"
        if by_steps and self.save_steps != (self.eval_steps or self.logging_steps):
            raise ValueError("load_best_model_at_end needs a checkpoint of each evaluation: leave save_steps out.")

    def _divide_update(self, tokens: int) -> None:
        """Divides an update into as few batches of equal size as `max_tokens` allows."""
        accumulation = math.ceil(tokens / (self.world_size * self.max_tokens))
        if self.gradient_accumulation_steps not in (1, accumulation):
            raise ValueError(
                f"tokens_per_update={tokens} on {self.world_size} processes with batches of up to "
                f"max_tokens={self.max_tokens} implies gradient_accumulation_steps={accumulation}, not "
                f"{self.gradient_accumulation_steps}: set only tokens_per_update."
            )
        self.gradient_accumulation_steps: int = accumulation
        self.max_tokens = math.ceil(tokens / self.batches_per_update)


def _best_precision(on_cpu: bool) -> str:
    if on_cpu or not torch.cuda.is_available():
        return "float32"
    # On GPUs older than Ampere, torch emulates bf16 slowly.
    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
