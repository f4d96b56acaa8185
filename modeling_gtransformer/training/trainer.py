"""
`Seq2SeqTrainer` with the paper's training: token batches, two learning rates, word dropout, loss per target token.
"""

import copy
import logging
import math
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.utils.data import ConcatDataset, DataLoader
from transformers import Seq2SeqTrainer, TrainerCallback
from transformers.trainer_callback import ExportableState

from ..evaluation.attention_recording import attention_entropy, record_attention
from ..hub import with_code
from ..runtime.usage_error import UsageError
from .arguments import GTransformerTrainingArguments
from .collator import DocumentCollator, WordDropout
from .model_card import write_model_card
from .sampler import TokenBatchSampler
from .segments import segment_lengths


logger = logging.getLogger(__name__)


class GTransformerTrainer(Seq2SeqTrainer):
    """
    Trains on the segments of `make_segments`. In addition to `Seq2SeqTrainer`:

    * batches have up to `args.max_tokens` tokens; they and updates of `args.tokens_per_update` do not depend on the
      number of processes (`TokenBatchSampler`);
    * `args.decay_steps` separates the decay of the learning rate from the end of the training;
    * `args.pretrained_lr_scale` scales the learning rate of pretrained parameters;
    * word dropout and CoWord dropout on the training segments (`WordDropout`);
    * label smoothing inside the model, in training and in validation;
    * the validation loss is the mean over target tokens, independent of batches;
    * `args.attention_entropy` adds `eval_entropy_{encoder,decoder,cross}_{group,global}`, in bits.

    `processing_class` must be the `GTransformerProcessor`. Every checkpoint contains it.
    """

    def __init__(self, model, args: GTransformerTrainingArguments, *, processing_class: Any, **kwargs):
        kwargs.setdefault("data_collator", DocumentCollator(processing_class))
        super().__init__(model, args, processing_class=processing_class, **kwargs)
        self.label_smoother = None
        if args.save_on_each_node:
            # Transformers would save the weights on the first machine only (as of 5.17 and 5.23).
            self.model.should_save_on_this_rank = bool
        self.add_callback(_KeepInStep(args.batches_per_update))
        if args.early_stopping_patience is not None:
            self.add_callback(EarlyStoppingCallback(args.early_stopping_patience))
        if args.stop_at_eval_loss is not None:
            self.add_callback(_StopAtEvalLoss())

    def get_train_dataloader(self) -> DataLoader:
        args = self.args
        batch_sampler = TokenBatchSampler(
            segment_lengths(self.train_dataset),
            max_tokens=args.max_tokens,
            seed=args.seed if args.data_seed is None else args.data_seed,
            rank=args.process_index,
            world_size=args.world_size,
            accumulation=args.gradient_accumulation_steps,
        )
        logger.info(f"{len(self.train_dataset)} segments in {len(batch_sampler.batches)} batches.")
        # Not prepared by Accelerate: the sampler already divides the batches among processes.
        return DataLoader(
            WordDropout(
                self.train_dataset,
                self.processing_class,
                args.word_dropout,
                args.word_dropout_epochs,
                args.seed,
                args.coword_dropout,
            ),
            batch_sampler=batch_sampler,
            collate_fn=self.data_collator,
            num_workers=args.dataloader_num_workers,
            pin_memory=args.dataloader_pin_memory,
            persistent_workers=args.dataloader_persistent_workers,
            prefetch_factor=args.dataloader_prefetch_factor,
        )

    def create_optimizer(self, model=None) -> torch.optim.Optimizer:
        if self.optimizer is None:
            optimizer = super().create_optimizer(model)
            named = (self.model if model is None else model).named_parameters()
            fresh = {id(p) for name, p in named if any(part in name for part in self.args.fresh_parameters)}
            groups = optimizer.param_groups[:]
            optimizer.param_groups.clear()
            # Fresh parameters come first, because Trainer logs the learning rate of the first group.
            for scale, is_fresh in ((1.0, True), (self.args.pretrained_lr_scale, False)):
                for group in groups:
                    params = [p for p in group["params"] if (id(p) in fresh) == is_fresh]
                    if params:
                        optimizer.add_param_group({**group, "params": params, "lr": scale * group["lr"]})
        return self.optimizer

    def _init_training_state(self, max_steps, updates_per_epoch, num_train_epochs, resume_from_checkpoint, trial):
        done = super()._init_training_state(
            max_steps, updates_per_epoch, num_train_epochs, resume_from_checkpoint, trial
        )
        # After early stopping, no epoch is left, unless the user passes a checkpoint.
        stopped = resume_from_checkpoint and self.control.should_training_stop
        return (num_train_epochs, 0) if stopped and not self.args.resume_from_checkpoint else done

    def create_scheduler(self, num_training_steps, optimizer=None):
        self.args.refuse_early_end_of_decay(num_training_steps)
        return super().create_scheduler(self.args.decay_steps or num_training_steps, optimizer)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        inputs = {**inputs, "label_smoothing": self.args.label_smoothing_factor}
        return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None, **gen_kwargs):
        inputs = self._prepare_inputs(inputs)
        labels = inputs.pop("labels")
        tokens = labels.ne(-100).sum()
        with torch.no_grad(), self.compute_loss_context_manager():
            smoothing = self.args.label_smoothing_factor
            loss_sum = model(
                **inputs, labels=labels, label_smoothing=smoothing, num_items_in_batch=1, skip_logits=True
            ).loss
        self._validated += torch.stack([loss_sum.float(), tokens.float()])
        loss = loss_sum / tokens.clamp(min=1)
        if self.args.attention_entropy:
            self._add_entropies(inputs, labels)
        if prediction_loss_only or not self.args.predict_with_generate:
            return loss, None, None
        # Seq2SeqTrainer would leave a limit of 20 tokens in the generation config.
        config = self.model.generation_config
        self.model.generation_config = copy.deepcopy(config)
        _, generated, _ = super().prediction_step(model, inputs, False, **gen_kwargs)
        self.model.generation_config = config
        return loss, generated, labels

    def _add_entropies(self, inputs: dict[str, torch.Tensor], labels: torch.Tensor) -> None:
        model = self.accelerator.unwrap_model(self.model)
        with torch.no_grad(), self.compute_loss_context_manager():
            sublayers = record_attention(model, **inputs, labels=labels, skip_logits=True)
        target_mask = labels.ne(-100)
        # Rows without labels only pad the last batch.
        source_mask = inputs["attention_mask"].bool() & target_mask.any(dim=1, keepdim=True)
        for kind, total in attention_entropy(sublayers, source_mask, target_mask).items():
            self._entropies[kind] = self._entropies.get(kind, 0) + total

    def get_eval_dataloader(self, eval_dataset=None) -> DataLoader:
        dataset = self.eval_dataset if eval_dataset is None else eval_dataset
        # Processes get equal shares. Accelerate would pad with copies, which count in the loss.
        blank = {**dataset[0], "labels": torch.full_like(dataset[0]["labels"], -100)}
        missing = -len(dataset) % (self.args.world_size * self.args.per_device_eval_batch_size)
        fill = missing * [blank] if self.args.world_size > 1 else []
        return super().get_eval_dataloader(ConcatDataset([dataset, fill]))

    def evaluation_loop(self, *args, metric_key_prefix: str = "eval", **kwargs):
        self._validated = torch.zeros(2, device=self.args.device)
        self._entropies: dict[str, torch.Tensor] = {}
        output = super().evaluation_loop(*args, metric_key_prefix=metric_key_prefix, **kwargs)
        loss_sum, tokens = self.accelerator.reduce(self._validated, "sum").tolist()
        output.metrics[f"{metric_key_prefix}_loss"] = loss_sum / max(tokens, 1)
        for kind, total in self._entropies.items():
            bits, tokens = self.accelerator.reduce(total, "sum").tolist()
            output.metrics[f"{metric_key_prefix}_entropy_{kind}"] = bits / max(tokens, 1)
        return output

    def _load_from_checkpoint(self, resume_from_checkpoint, model=None):
        if not self._load_adapter(resume_from_checkpoint):
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _load_best_model(self):
        if not self._load_adapter(self.state.best_model_checkpoint):
            super()._load_best_model()

    def _load_adapter(self, checkpoint: str) -> bool:
        """Loads the adapter of a checkpoint, if any; `Trainer` supports only models wrapped by peft."""
        file = Path(checkpoint) / "adapter_model.safetensors"
        if not file.exists():
            return False
        self.accelerator.unwrap_model(self.model).set_adapter_weights(file)
        return True

    def push_to_hub(self, *args, **kwargs):
        """Uploads the checkpoint with its code and its card."""
        with with_code(self.accelerator.unwrap_model(self.model), self.processing_class):
            return super().push_to_hub(*args, **kwargs)

    def create_model_card(self, license: str | None = None, dataset: str | None = None, **kwargs) -> None:
        """Writes the card of the trained checkpoint; `license` and `dataset` are Hub identifiers."""
        if self.is_world_process_zero():
            self.save_state()
            write_model_card(Path(self.args.output_dir), license, dataset, self.hub_model_id)


class EarlyStoppingCallback(transformers.EarlyStoppingCallback):
    """A resumed training has the patience of its arguments, not that of the checkpoint."""

    def on_train_begin(self, args, state, control, **kwargs):
        self.early_stopping_patience = args.early_stopping_patience
        super().on_train_begin(args, state, control, **kwargs)


class _StopAtEvalLoss(TrainerCallback):
    """Ends the training when the validation loss reaches `args.stop_at_eval_loss`."""

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        control.should_training_stop |= metrics.get("eval_loss", math.inf) <= args.stop_at_eval_loss


class _KeepInStep(TrainerCallback, ExportableState):
    """
    Re-applies our special tokens after the Trainer's, and sets the epoch of the sampler, also after a resumption.
    Raises `UsageError` if the embeddings are no longer tied.

    Args:
        batches_per_update: number at the start of the training. A checkpoint counts updates, so another number would
            resume at another place in the corpus.
    """

    def __init__(self, batches_per_update: int):
        self.batches_per_update = batches_per_update

    def state(self) -> dict:
        return {"args": {"batches_per_update": self.batches_per_update}, "attributes": {}}

    def on_train_begin(self, args, state, control, model=None, processing_class=None, **kwargs):
        if self.batches_per_update != args.batches_per_update and not args.ignore_data_skip:
            raise UsageError(
                f"The checkpoint has {self.batches_per_update} batches per update, this training "
                f"{args.batches_per_update} ({args.world_size} processes, {args.gradient_accumulation_steps} each): "
                "it would repeat some segments and miss others. Set tokens_per_update or gradient_accumulation_steps "
                "so that the number does not change, or accept that with --ignore_data_skip true."
            )
        base = model.model
        if base.shares_embeddings and base.encoder.embed_tokens.weight is not base.decoder.embed_tokens.weight:
            raise UsageError("FSDP of Accelerate 1.14 and 1.15 unties the embeddings: pip install 'accelerate<1.14'.")
        self.batches_per_update = args.batches_per_update
        state.stateful_callbacks.setdefault(type(self).__name__, self.state())  # missing in old checkpoints
        # Transformers has just made the tokenizer's </s>, which closes a sentence, the end of the sequence.
        processing_class.configure(model)

    def on_epoch_begin(self, args, state, control, train_dataloader=None, **kwargs):
        train_dataloader.batch_sampler.set_epoch(int(state.epoch or 0))
